#include "eval/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "eval/lane.h"
#include "eval/turns.h"
#include "quant/footprint.h"

namespace shorthand {
namespace {

constexpr double kQueryScale = 1 + 1e-6;

// q.k times a factor: the same as scaling the queries.
Shape WithScaledScores(Shape shape, double factor) {
  for (LayerShape& layer : shape.layers) {
    if (layer.k_dim == 0) continue;
    const double scale = layer.scale != 0 ? layer.scale : 1 / std::sqrt(double(layer.k_dim));
    layer.scale = static_cast<float>(scale * factor);
  }
  return shape;
}

Recipe Uncoded(Code code) {
  Recipe recipe;
  recipe.kv.k.code = recipe.kv.v.code = code;
  return recipe;
}

// What a lane is made of.
struct LaneSpec {
  std::string name;
  Recipe recipe;
  const Shape* shape = nullptr;
};

class Scorer {
 public:
  Scorer(Model& model, std::span<const Recipe> recipes, ScoreBook& book,
         const ScoreOptions& options);

  Status Run(std::span<const Passage> passages);
  LaneFailures TakeFailures() { return std::move(failures_); }

 private:
  using Turn = std::vector<const LaneSpec*>;
  struct OpenLane {
    const LaneSpec* spec;
    std::unique_ptr<Lane> lane;
  };

  std::unique_ptr<Lane> Open(const LaneSpec& spec) const {
    return std::make_unique<Lane>(*spec.shape, spec.recipe, options_.calibration);
  }
  uint64_t BytesOf(const LaneSpec& spec, int64_t tokens) const;
  // The lanes of a passage that the book misses, in the turns that they take.
  std::vector<Turn> TurnsOf(const Passage& passage) const;
  Status RunTurn(const Passage& passage, const Turn& turn);
  // Errors: kCancelled.
  Status Report(const Chunk& chunk) {
    return work_.Report(chunk, options_.on_progress, options_.stop);
  }
  Status Feed(const Chunk& chunk, Lane& exact, std::vector<OpenLane>& lanes);
  // Feeds the exact lane alone; the others take over its keys and values.
  Status FeedExactly(const Chunk& chunk, Lane& exact, std::vector<OpenLane>& lanes);
  // Lanes' results into the book.
  Status Keep(const Passage& passage, std::vector<OpenLane>& lanes);

  Model& model_;
  ScoreBook& book_;
  const ScoreOptions& options_;
  const Shape scaled_shape_;
  const LaneSpec exact_;
  std::vector<LaneSpec> specs_;  // the floor's, then the recipes' that can be run
  LaneFailures failures_;
  ExactLogits exact_logits_;
  std::vector<int32_t> output_rows_;  // 0, 1, ...
  WorkDone work_;
};

Scorer::Scorer(Model& model, std::span<const Recipe> recipes, ScoreBook& book,
               const ScoreOptions& options)
    : model_(model),
      book_(book),
      options_(options),
      scaled_shape_(WithScaledScores(model.shape(), kQueryScale)),
      exact_{"exact", Uncoded(Code::kF16), &model.shape()},
      specs_{{kScaledQueryLane, Uncoded(Code::kF16), &scaled_shape_},
             {kF32CacheLane, Uncoded(Code::kF32), &model.shape()}},
      exact_logits_(model.vocab().size(), model.threads()),
      output_rows_(kScoredChunkTokens) {
  std::iota(output_rows_.begin(), output_rows_.end(), 0);
  for (const Recipe& recipe : recipes) {
    LaneSpec spec = {LaneOf(recipe), recipe, &model.shape()};
    const auto same = [&](const LaneSpec& other) { return other.name == spec.name; };
    if (std::any_of(specs_.begin(), specs_.end(), same)) continue;
    const Status status = Open(spec)->status();
    if (status.ok()) {
      specs_.push_back(std::move(spec));
    } else {
      failures_[spec.name] = status;
    }
  }
  if (!failures_.empty() && specs_.size() == 2) specs_.clear();
}

uint64_t Scorer::BytesOf(const LaneSpec& spec, int64_t tokens) const {
  const auto groups = ResolveGroups(*spec.shape, spec.recipe);
  return groups.ok() ? FootprintOf(*groups, tokens, 1).allocated_bytes : 0;
}

std::vector<Scorer::Turn> Scorer::TurnsOf(const Passage& passage) const {
  const std::string id = PassageId(passage);
  const auto tokens = static_cast<int64_t>(passage.tokens.size());
  // The exact cache; the exact logits of a chunk, and a lane's.
  const uint64_t always =
      BytesOf(exact_, tokens) +
      2 * sizeof(float) * static_cast<uint64_t>(model_.vocab().size()) * kScoredChunkTokens;
  Turns<const LaneSpec*> turns(options_.memory_bytes, always);
  for (const LaneSpec& spec : specs_) {
    if (book_.Find(id, spec.name) != nullptr || failures_.contains(spec.name)) continue;
    turns.Add(&spec, BytesOf(spec, tokens));
  }
  return turns.Take();
}

Status Scorer::Run(std::span<const Passage> passages) {
  for (const Passage& passage : passages) {
    for (const Turn& turn : TurnsOf(passage)) work_.Expect(passage, turn.size() + 1);
  }
  for (const Passage& passage : passages) {
    for (const Turn& turn : TurnsOf(passage)) {
      if (Status status = RunTurn(passage, turn); !status.ok()) return status;
    }
  }
  return OkStatus();
}

Status Scorer::RunTurn(const Passage& passage, const Turn& turn) {
  const std::unique_ptr<Lane> exact = Open(exact_);
  std::vector<OpenLane> lanes;
  for (const LaneSpec* spec : turn) lanes.push_back({spec, Open(*spec)});
  for (const Chunk& chunk : ChunksOf(passage)) {
    const bool exactly = options_.protocol == Protocol::kPaper && chunk.targets.empty();
    const Status status = exactly ? FeedExactly(chunk, *exact, lanes) : Feed(chunk, *exact, lanes);
    if (!status.ok()) return status;
  }
  return Keep(passage, lanes);
}

Status Scorer::Feed(const Chunk& chunk, Lane& exact, std::vector<OpenLane>& lanes) {
  const std::span<const int32_t> outputs = std::span(output_rows_).first(chunk.targets.size());
  const std::span<const float> exact_logits = exact.Feed(model_, chunk.tokens, outputs);
  if (!exact.status().ok()) return exact.status();
  exact_logits_.Set(exact_logits, chunk.targets);
  Status status = Report(chunk);
  for (auto& [spec, lane] : lanes) {
    if (!status.ok()) break;
    lane->Score(exact_logits_, lane->Feed(model_, chunk.tokens, outputs));
    status = Report(chunk);
  }
  return status;
}

Status Scorer::FeedExactly(const Chunk& chunk, Lane& exact, std::vector<OpenLane>& lanes) {
  for (auto& [spec, lane] : lanes) lane->BeginRows(static_cast<int>(chunk.tokens.size()));
  std::vector<float> keys;
  model_.Observe([&](const ObservedRows& seen) {
    if (seen.input == AttentionInput::kKeys) keys.assign(seen.rows.begin(), seen.rows.end());
    if (seen.input != AttentionInput::kValues) return;
    for (auto& [spec, lane] : lanes) lane->CopyRows(seen.layer, keys.data(), seen.rows.data());
  });
  exact.Feed(model_, chunk.tokens, {});
  model_.Observe({});
  Status status = exact.status().ok() ? Report(chunk) : exact.status();
  for (auto& [spec, lane] : lanes) {
    lane->EndRows();
    if (status.ok()) status = Report(chunk);
  }
  return status;
}

Status Scorer::Keep(const Passage& passage, std::vector<OpenLane>& lanes) {
  for (auto& [spec, lane] : lanes) {
    if (lane->status().ok()) {
      book_.Put(PassageId(passage), spec->name, lane->TakeScores());
    } else if (spec->name == kScaledQueryLane || spec->name == kF32CacheLane) {
      return lane->status();
    } else {
      failures_[spec->name] = lane->status();
    }
  }
  return book_.Save();
}

}  // namespace

Result<LaneFailures> ScoreRecipes(Model& model, std::span<const Passage> passages,
                                  std::span<const Recipe> recipes, ScoreBook& book,
                                  const ScoreOptions& options) {
  const int64_t most = model.shape().max_context_tokens;
  for (const Passage& passage : passages) {
    if (static_cast<int64_t>(passage.tokens.size()) <= most) continue;
    return OutOfRange(fmt::format("{} tokens at once; this model was made for {} at most",
                                  passage.tokens.size(), most));
  }
  Scorer scorer(model, recipes, book, options);
  if (Status status = scorer.Run(passages); !status.ok()) return status;
  return scorer.TakeFailures();
}

}  // namespace shorthand
