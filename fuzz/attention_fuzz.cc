// attention_fuzz: a cache lives through an input's steps, and at every query all targets must agree
// to the bit with each other, and in size with double precision.
//
// What is demanded stands at the functions below; docs/fuzzing.md says how to run it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "attention/plan_impl.h"
#include "attention/reference.h"
#include "attention_errors.h"
#include "attention_history.h"
#include "attention_scenario.h"
#include "kernels/dispatch.h"
#include "page_checks.h"
#include "quant/head_tables.h"
#include "shorthand/attention.h"
#include "shorthand/cache.h"

namespace shorthand {
namespace {

// Beyond this a product may overflow f32, and a batch may fail.
constexpr double kCertainlyFinite = 1e30;
class Runner {
 public:
  explicit Runner(const AttentionScenario& scenario)
      : scenario_(scenario), what_(scenario.Describe()) {}

  // False if the recipe does not fit the shape, or its parts each other.
  bool Open() {
    auto recipe = Recipe::Parse(scenario_.recipe);
    if (!recipe.ok()) return false;
    for (std::unique_ptr<Cache>* cache : {&cache_, &other_}) {
      const Calibration calibration = NeutralCalibration(scenario_.shape);
      auto opened = Cache::Open(scenario_.shape, *recipe, {.calibration = &calibration});
      if (!opened.ok()) return false;
      *cache = *std::move(opened);
    }
    sequences_.push_back({cache_->Create(), other_->Create(), AttentionHistory(scenario_)});
    return true;
  }

  void Run() {
    for (const Step& step : scenario_.steps) {
      if (!Do(step)) return;
      Require(cache_->Stats().stored_bytes == other_->Stats().stored_bytes,
              "chunks change what is stored: " + what_);
    }
    errors_.Check(scenario_, cache_->recipe());
    while (!sequences_.empty()) Release(0);
    Require(cache_->Stats().stored_bytes == 0, "pages are left of nothing: " + what_);
  }

 private:
  struct Live {
    SequenceId id, other_id;
    AttentionHistory history;
  };
  using Items = std::vector<BatchItem>;

  bool Do(const Step& step) {
    const size_t at = step.sequence % sequences_.size();
    switch (step.kind) {
      case Step::kAppend:
        return Append(sequences_[at], step);
      case Step::kQuery:
        return Query(step.tokens);
      case Step::kCrop:
        Crop(sequences_[at], step.tokens % (sequences_[at].history.tokens() + 1));
        return true;
      case Step::kFork:
        if (sequences_.size() < 3) Fork(sequences_[at]);
        return true;
      case Step::kRelease:
        if (sequences_.size() > 1) Release(at);
        return true;
    }
    return true;
  }

  // To both caches, each in chunks of its own. False if the rows do not fit the exact form.
  bool Append(Live& live, const Step& step) {
    const int first = live.history.tokens();
    for (int i = 0; i < step.tokens; ++i) live.history.Append(next_token_++);
    const bool fits = Feed(*cache_, live.id, live.history, first, step.chunk);
    const bool other_fits = Feed(*other_, live.other_id, live.history, first, step.other_chunk);
    Require(fits == other_fits, "chunks decide whether rows fit: " + what_);
    return fits;
  }

  // The tokens of `history` from `first` on.
  bool Feed(Cache& cache, SequenceId id, const AttentionHistory& history, int first, int chunk) {
    for (; first < history.tokens(); first += chunk) {
      const int tokens = std::min(chunk, history.tokens() - first);
      auto batch = Begin(cache, {{id, tokens}});
      Write(*batch, {{&history, first, tokens}});
      if (!CommitOrExplain(*batch)) return false;
    }
    return true;
  }

  std::unique_ptr<Batch> Begin(Cache& cache, const Items& items) {
    auto batch = cache.Begin(items);
    Require(batch.ok(), batch.status().message() + ": " + what_);
    return *std::move(batch);
  }

  // A run of tokens that an item appends.
  struct Part {
    const AttentionHistory* history;
    int first, tokens;
  };

  void Write(Batch& batch, const std::vector<Part>& parts) {
    for (int layer = 0; layer < Layers(); ++layer) {
      std::vector<float> k, v;
      for (const Part& part : parts) {
        part.history->AppendRows(layer, part.first, part.tokens, &k, &v);
      }
      batch.Write(layer, k.data(), v.data(), 0, 1);
      batch.Seal(layer, 0, 1);
      if (batch.status().ok()) CheckWrittenRows(*batch.impl(), layer, k.data(), v.data(), what_);
    }
    const std::vector<BatchImpl::Row>& rows = batch.impl()->rows();
    const bool completes_page =
        std::any_of(rows.begin(), rows.end(),
                    [](const BatchImpl::Row& row) { return row.slot == kPageTokens - 1; });
    if (batch.status().ok() && completes_page) CheckSealedPages(*batch.impl(), what_);
  }

  // Rows may be refused only if they are too large, and with a sentence.
  bool CommitOrExplain(Batch& batch) {
    const Status status = batch.Commit();
    if (status.ok()) return true;
    Require(!status.message().empty(), "refused without a sentence: " + what_);
    const bool huge =
        scenario_.k.filling == Filling::kHuge || scenario_.v.filling == Filling::kHuge;
    Require(huge, status.message() + ": " + what_);
    return false;
  }

  void Crop(Live& live, int tokens) {
    const Status status = cache_->Crop(live.id, tokens);
    const Status other = other_->Crop(live.other_id, tokens);
    Require(status.code() == other.code(), "chunks decide about a crop: " + what_);
    if (status.ok()) live.history.Crop(tokens);
  }

  void Fork(const Live& live) {
    auto fork = cache_->Fork(live.id), other = other_->Fork(live.other_id);
    Require(fork.ok() && other.ok(), "a fork was refused: " + what_);
    const Live copy{*fork, *other, live.history};
    sequences_.push_back(copy);
  }

  void Release(size_t at) {
    Require(
        cache_->Release(sequences_[at].id).ok() && other_->Release(sequences_[at].other_id).ok(),
        "a release was refused: " + what_);
    sequences_.erase(sequences_.begin() + static_cast<ptrdiff_t>(at));
  }

  // Every sequence grows by `tokens` in one batch of each cache. False if the batch has failed.
  bool Query(int tokens) {
    Items items, other_items;
    std::vector<Part> parts;
    for (Live& live : sequences_) {
      parts.push_back({&live.history, live.history.tokens(), tokens});
      for (int i = 0; i < tokens; ++i) live.history.Append(next_token_++);
      items.push_back({live.id, tokens});
      other_items.push_back({live.other_id, tokens});
    }
    auto batch = Begin(*cache_, items), other = Begin(*other_, other_items);
    Write(*batch, parts);
    Write(*other, parts);
    if (!batch->status().ok()) return CommitOrExplain(*batch);
    CheckSealedPages(*batch->impl(), what_);
    bool finite = true;
    for (int layer = 0; layer < Layers() && finite; ++layer) {
      finite = QueryLayer(*batch, *other, layer, tokens);
    }
    if (!finite) return false;
    return CommitOrExplain(*batch) && CommitOrExplain(*other);
  }

  // All targets and both caches give the same bits, all of them finite. False if scores overflow.
  bool QueryLayer(Batch& batch, Batch& other, int layer, int tokens) {
    const std::vector<float> q = Queries(layer, tokens);
    const std::vector<const KernelTable*> targets = RunnableTargets();
    const std::vector<float> out = Outputs(batch, *targets.back(), layer, q);
    const bool finite = batch.status().ok();
    std::vector<double> lossless(out.size());
    const double largest = Lossless(layer, tokens, q, &lossless);
    Require(finite || largest > kCertainlyFinite,
            fmt::format("{} (largest score {}): {}", batch.status().message(), largest, what_));
    for (const KernelTable* target : targets) {
      Require(SameBits(Outputs(batch, *target, layer, q), out),
              fmt::format("{} gives other bits than scalar: {}", target->name, what_));
    }
    Require(SameBits(Outputs(other, *targets.front(), layer, q), out),
            "chunks change bits: " + what_);
    if (!finite) return false;
    for (const float x : out) Require(std::isfinite(x), "not finite, and no error: " + what_);
    std::vector<double> expected(out.size());
    ReferenceAttention(batch, Args(layer, q, nullptr), expected.data());
    errors_.Add(out, expected, lossless, largest);
    return true;
  }

  // Of the last `tokens` tokens of every sequence.
  std::vector<float> Queries(int layer, int tokens) const {
    const LayerShape& shape = scenario_.shape.layers[layer];
    std::vector<float> q;
    for (const Live& live : sequences_) {
      for (int t = live.history.tokens() - tokens; t < live.history.tokens(); ++t) {
        const int64_t row = next_token_ * 64 + static_cast<int64_t>(q.size());
        const size_t at = q.size();
        scenario_.q.Append(row, shape.query_heads, shape.k_dim, &q);
        if (scenario_.aimed_score == 0) continue;
        live.history.Aim(layer, t, scenario_.aimed_score, Mix(row), q.data() + at);
      }
    }
    return q;
  }

  AttentionArgs Args(int layer, const std::vector<float>& q, float* out) const {
    return {layer, q.data(), out,
            scenario_.sink_logits.empty() ? nullptr : scenario_.sink_logits.data()};
  }

  std::vector<float> Outputs(Batch& batch, const KernelTable& kernels, int layer,
                             const std::vector<float>& q) const {
    const LayerShape& shape = scenario_.shape.layers[layer];
    std::vector<float> out(static_cast<size_t>(batch.rows()) * shape.query_heads * shape.v_dim);
    AttentionPlanImpl(batch.impl(), &kernels).Run(Args(layer, q, out.data()), 0, 1);
    return out;
  }

  // What a cache that loses nothing gives for the batch, and the largest score.
  double Lossless(int layer, int tokens, const std::vector<float>& q, std::vector<double>* out) {
    const LayerShape& shape = scenario_.shape.layers[layer];
    double largest = 0;
    size_t row = 0;
    for (const Live& live : sequences_) {
      for (int t = live.history.tokens() - tokens; t < live.history.tokens(); ++t, ++row) {
        const double score =
            live.history.Attend(layer, t, q.data() + row * shape.query_heads * shape.k_dim,
                                out->data() + row * shape.query_heads * shape.v_dim);
        largest = std::max(largest, score);
      }
    }
    return largest;
  }

  static bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
      return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) ||
             (std::isnan(x) && std::isnan(y));
    });
  }

  int Layers() const { return static_cast<int>(scenario_.shape.layers.size()); }

  const AttentionScenario& scenario_;
  const std::string what_;
  std::unique_ptr<Cache> cache_, other_;
  std::vector<Live> sequences_;
  int64_t next_token_ = 0;
  AttentionErrors errors_;
};

}  // namespace
}  // namespace shorthand

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shorthand;
  const AttentionScenario scenario{FuzzInput({data, size})};
  Runner runner(scenario);
  if (runner.Open()) runner.Run();
  return 0;
}
