#include "eval/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "eval/lane.h"
#include "quant/footprint.h"

namespace shorthand {
namespace {

// Tokens fed at once: before the first scored position, and from there on. The second bounds the
// logits that are held: gemma's 262144 entries of 128 positions are 128 MiB.
constexpr int64_t kChunkTokens = 512;
constexpr int64_t kScoredChunkTokens = 128;

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

class Evaluator {
 public:
  Evaluator(Model& model, std::span<const Recipe> recipes, const EvaluateOptions& options);

  // Whether there is a recipe to run.
  bool Useful() const;
  Status Run(std::span<const Window> windows);
  Evaluation Finish(std::span<const Recipe> recipes, int64_t window_tokens) const;

 private:
  Status RunWindow(const Window& window);
  // Feeds one chunk to every lane; `targets` follow its tokens if its positions are scored.
  Status Feed(std::span<const Token> tokens, std::span<const Token> targets);

  Model& model_;
  const EvaluateOptions& options_;
  ExactLogits exact_logits_;
  Lane exact_, scaled_query_, f32_cache_;
  std::vector<Lane> rows_;            // [recipes]
  std::vector<Lane*> compared_;       // all but the exact one
  std::vector<int32_t> output_rows_;  // 0, 1, ...
  int64_t fed_tokens_ = 0;
  int64_t all_tokens_ = 0;
};

Evaluator::Evaluator(Model& model, std::span<const Recipe> recipes, const EvaluateOptions& options)
    : model_(model),
      options_(options),
      exact_logits_(model.vocab().size(), model.threads()),
      exact_(model.shape(), Uncoded(Code::kF16)),
      scaled_query_(WithScaledScores(model.shape(), kQueryScale), Uncoded(Code::kF16)),
      f32_cache_(model.shape(), Uncoded(Code::kF32)),
      compared_{&scaled_query_, &f32_cache_},
      output_rows_(kScoredChunkTokens) {
  for (const Recipe& recipe : recipes)
    rows_.emplace_back(model.shape(), recipe, options.calibration);
  for (Lane& row : rows_) compared_.push_back(&row);
  std::iota(output_rows_.begin(), output_rows_.end(), 0);
}

bool Evaluator::Useful() const {
  return rows_.empty() ||
         std::any_of(rows_.begin(), rows_.end(), [](const Lane& row) { return row.status().ok(); });
}

Status Evaluator::Run(std::span<const Window> windows) {
  for (const Window& window : windows) all_tokens_ += static_cast<int64_t>(window.size()) - 1;
  for (const Window& window : windows) {
    if (Status status = RunWindow(window); !status.ok()) return status;
  }
  return OkStatus();
}

Status Evaluator::RunWindow(const Window& window) {
  exact_.StartWindow();
  for (Lane* lane : compared_) lane->StartWindow();
  // The last token's prediction lies beyond the window: it is only a target.
  const std::span<const Token> tokens = std::span(window).first(window.size() - 1);
  const size_t first_scored = static_cast<size_t>(FirstScored(window.size()));
  for (size_t at = 0; at < tokens.size();) {
    const bool scored = at >= first_scored;
    const size_t end = scored ? std::min(tokens.size(), at + kScoredChunkTokens)
                              : std::min(first_scored, at + kChunkTokens);
    const size_t count = end - at;
    const std::span<const Token> targets = std::span(window).subspan(at + 1, scored ? count : 0);
    if (Status status = Feed(tokens.subspan(at, count), targets); !status.ok()) return status;
    at = end;
  }
  return OkStatus();
}

Status Evaluator::Feed(std::span<const Token> tokens, std::span<const Token> targets) {
  const double lanes = static_cast<double>(compared_.size() + 1);
  const auto report = [&](double lanes_done) {
    if (!options_.on_progress) return;
    const double done = fed_tokens_ + lanes_done / lanes * static_cast<double>(tokens.size());
    options_.on_progress(done / static_cast<double>(all_tokens_));
  };
  const std::span<const int32_t> outputs = std::span(output_rows_).first(targets.size());
  const std::span<const float> exact = exact_.Feed(model_, tokens, outputs);
  if (!exact_.status().ok()) return exact_.status();
  exact_logits_.Set(exact, targets);
  for (size_t i = 0; i < compared_.size(); ++i) {
    report(static_cast<double>(i + 1));
    const std::span<const float> logits = compared_[i]->Feed(model_, tokens, outputs);
    compared_[i]->Score(exact_logits_, logits);
  }
  fed_tokens_ += static_cast<int64_t>(tokens.size());
  report(0);
  if (!scaled_query_.status().ok()) return scaled_query_.status();
  return f32_cache_.status();
}

Evaluation Evaluator::Finish(std::span<const Recipe> recipes, int64_t window_tokens) const {
  Evaluation result;
  if (!scaled_query_.scores().empty()) {
    result.floor = {Summarize(scaled_query_.scores()), Summarize(f32_cache_.scores())};
    result.positions = result.floor.f32_cache.positions;
    result.ppl_exact = result.floor.f32_cache.ppl_exact;
  }
  for (size_t i = 0; i < recipes.size(); ++i) {
    EvaluationRow row = {.recipe = recipes[i], .status = rows_[i].status()};
    if (row.status.ok()) {
      const auto groups = ResolveGroups(model_.shape(), row.recipe);
      const Footprint footprint = FootprintOf(*groups, window_tokens, 1);
      row.bits = footprint.bits;
      row.true_bits = footprint.true_bits;
      row.summary = Summarize(rows_[i].scores());
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

}  // namespace

Result<Evaluation> Evaluate(Model& model, std::span<const Window> windows,
                            std::span<const Recipe> recipes, const EvaluateOptions& options) {
  const int64_t window_tokens = static_cast<int64_t>(windows.front().size());
  const int64_t most = model.shape().max_context_tokens;
  if (window_tokens > most) {
    return OutOfRange(fmt::format("windows of {} tokens; this model was made for {} at most",
                                  window_tokens, most));
  }
  Evaluator evaluator(model, recipes, options);
  if (evaluator.Useful()) {
    if (Status status = evaluator.Run(windows); !status.ok()) return status;
  }
  return evaluator.Finish(recipes, window_tokens);
}

}  // namespace shorthand
