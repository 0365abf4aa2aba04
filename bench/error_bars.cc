// Attention's arithmetic on captured queries, keys and values of a real model, layer by layer and
// without the model: every recipe and target against double precision on the same pages.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attention/error_bound.h"
#include "attention/plan_impl.h"
#include "attention/reference.h"
#include "eval/lane.h"
#include "kernels/dispatch.h"
#include "model_bars.h"
#include "quant/every_side.h"
#include "quant/head_tables.h"
#include "quant/presets.h"
#include "shorthand/cache.h"

namespace shorthand {
namespace {

// A sequence with sealed pages, an entry that a crop has cut short, and an exact tail. The queries
// of its last tokens are judged, in batches of these sizes.
constexpr int kFirstTokens = 600;
constexpr int kCropTokens = 300;
constexpr std::array kJudgedTokens = {1, 2, 5};
constexpr int kJudgedFrom = kErrorTextTokens - 8;

// One layer of a model and what its attention was given.
struct Layer {
  int number = 0;
  Shape shape = {};                                        // of this layer alone
  std::map<AttentionInput, std::vector<float>> rows = {};  // [tokens][heads][dim]
};

Result<std::vector<Layer>> Capture(Model& model, std::span<const Token> text) {
  std::vector<Layer> layers;
  model.Observe([&](const ObservedRows& seen) {
    if (layers.empty() || layers.back().number != seen.layer) {
      layers.push_back({.number = seen.layer});
      layers.back().shape.layers = {model.shape().layers[seen.layer]};
    }
    layers.back().rows[seen.input].assign(seen.rows.begin(), seen.rows.end());
  });
  Lane lane(model.shape(), *Recipe::Parse("f32"));
  lane.Feed(model, text, std::array{static_cast<int32_t>(text.size()) - 1});
  model.Observe({});
  if (!lane.status().ok()) return lane.status();
  return layers;
}

// Passes of rows over a page, each of which folds the page's scales into the queries.
struct Folds {
  int64_t all = 0;
  int64_t two_limbs = 0;
};

// The kernels of a target, counting: a table is functions without state, so the state is here.
struct CountedKernels {
  static inline const KernelTable* counted = nullptr;
  static inline Folds folds;

  static void FoldQuery(const CodedSide8& k, const float* q, float code_rms, int rows,
                        FoldedQueries* out) {
    counted->fold_query(k, q, code_rms, rows, out);
    ++folds.all;
    folds.two_limbs += out->limbs == 2;
  }
  static KernelTable Of(const KernelTable& kernels) {
    counted = &kernels;
    KernelTable table = kernels;
    table.fold_query = FoldQuery;
    return table;
  }
};

// Attention of the judged rows over one layer's cache.
struct Outputs {
  std::vector<double> reference;
  std::vector<std::vector<float>> kernels;  // [target]
};

// Feeds a layer to a cache of its own and attends with the last of its queries.
class LayerRun {
 public:
  LayerRun(const Layer& layer, std::unique_ptr<Cache> cache)
      : layer_(layer), cache_(std::move(cache)), sequence_(cache_->Create()) {}

  Result<Outputs> Attend(std::span<const KernelTable> targets) {
    if (Status status = Append(0, kFirstTokens); !status.ok()) return status;
    if (Status status = cache_->Crop(sequence_, kCropTokens); !status.ok()) return status;
    if (Status status = Append(kCropTokens, kJudgedFrom); !status.ok()) return status;
    Outputs outputs;
    outputs.kernels.resize(targets.size());
    int at = kJudgedFrom;
    for (const int tokens : kJudgedTokens) {
      const auto batch = Write(at, at + tokens);
      if (!batch.ok()) return batch.status();
      Judge(**batch, Row(AttentionInput::kQueries, at), targets, &outputs);
      if (Status status = (*batch)->Commit(); !status.ok()) return status;
      at += tokens;
    }
    return outputs;
  }

 private:
  const float* Row(AttentionInput input, int token) const {
    const std::vector<float>& rows = layer_.rows.at(input);
    return rows.data() + rows.size() / kErrorTextTokens * token;
  }

  Result<std::unique_ptr<Batch>> Write(int first, int end) {
    const BatchItem item = {.sequence = sequence_, .tokens = end - first};
    Result<std::unique_ptr<Batch>> batch = cache_->Begin({&item, 1});
    if (!batch.ok()) return batch;
    (*batch)->Write(0, Row(AttentionInput::kKeys, first), Row(AttentionInput::kValues, first), 0,
                    1);
    (*batch)->Seal(0, 0, 1);
    return batch;
  }

  Status Append(int first, int end) {
    const auto batch = Write(first, end);
    return batch.ok() ? (*batch)->Commit() : batch.status();
  }

  void Judge(Batch& batch, const float* q, std::span<const KernelTable> targets,
             Outputs* outputs) const {
    const LayerShape& shape = layer_.shape.layers[0];
    const size_t before = outputs->reference.size();
    outputs->reference.resize(before +
                              static_cast<size_t>(batch.rows()) * shape.query_heads * shape.v_dim);
    ReferenceAttention(batch, {.q = q}, outputs->reference.data() + before);
    for (size_t t = 0; t < targets.size(); ++t) {
      std::vector<float>& out = outputs->kernels[t];
      out.resize(outputs->reference.size());
      AttentionPlanImpl(batch.impl(), &targets[t]).Run({.q = q, .out = out.data() + before}, 0, 1);
    }
  }

  const Layer& layer_;
  std::unique_ptr<Cache> cache_;
  SequenceId sequence_;
};

template <typename A, typename B>
double Distance(const std::vector<A>& a, const std::vector<B>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - double{b[i]}, 2);
  return std::sqrt(sum);
}

// Relative to the norm of the exact output.
struct Errors {
  std::string recipe;
  int layer = 0;
  double arithmetic = 0;  // of the first target's kernels
  double own = 0;         // of the recipe
  double bound = 0;
  double used() const { return arithmetic / bound; }
};

double Median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class ErrorBars {
 public:
  ErrorBars(std::vector<Layer> layers, BarReport& report)
      : layers_(std::move(layers)), report_(report) {
    for (const KernelTable* table : RunnableTargets()) {
      targets_.push_back(targets_.empty() ? CountedKernels::Of(*table) : *table);
      if (!names_.empty()) names_ += ", ";
      names_ += table->name;
    }
  }

  Status RunExact() {
    const Recipe exact = *Recipe::Parse("f32");
    for (const Layer& layer : layers_) {
      Result<Outputs> outputs = LayerRun(layer, *Cache::Open(layer.shape, exact)).Attend({});
      if (!outputs.ok()) return outputs.status();
      exact_.push_back(std::move(outputs->reference));
    }
    return OkStatus();
  }

  // One bar for all of `recipes`; those that do not fit the model are left out.
  Status Measure(const std::string& name, const std::vector<std::string>& recipes) {
    fmt::print(stderr, "errors: {}\n", name);
    std::vector<Errors> errors;
    CountedKernels::folds = {};
    for (const std::string& text : recipes) {
      const Recipe recipe = *Recipe::Parse(text);
      for (size_t i = 0; i < layers_.size(); ++i) {
        const Calibration calibration = NeutralCalibration(layers_[i].shape);
        auto cache = Cache::Open(layers_[i].shape, recipe, {.calibration = &calibration});
        if (!cache.ok()) continue;
        const auto outputs = LayerRun(layers_[i], *std::move(cache)).Attend(targets_);
        if (!outputs.ok()) return outputs.status();
        errors.push_back(Judge(text, recipe, i, *outputs));
      }
    }
    if (!errors.empty()) Print(name, errors);
    return OkStatus();
  }

  void PrintTargets() {
    report_.Print(fmt::format("attention on captured data, targets {}", names_),
                  fmt::format("{} outputs differ in their bits", differing_outputs_), "none",
                  AtMost(static_cast<double>(differing_outputs_), 0));
  }

 private:
  Errors Judge(const std::string& text, const Recipe& recipe, size_t i, const Outputs& outputs) {
    const double norm = Distance(exact_[i], std::vector<double>(exact_[i].size()));
    Errors errors{.recipe = text, .layer = layers_[i].number};
    errors.own = Distance(outputs.reference, exact_[i]) / norm;
    errors.bound = ErrorBound(recipe, errors.own);
    const std::vector<float>& first = outputs.kernels.front();
    errors.arithmetic = Distance(first, outputs.reference) / norm;
    for (const std::vector<float>& out : outputs.kernels) {
      for (size_t o = 0; o < out.size(); ++o) differing_outputs_ += out[o] != first[o];
    }
    return errors;
  }

  void Print(const std::string& name, const std::vector<Errors>& errors) {
    const auto by_used = [](const Errors& a, const Errors& b) { return a.used() < b.used(); };
    const Errors& worst = *std::max_element(errors.begin(), errors.end(), by_used);
    const auto beyond = std::count_if(errors.begin(), errors.end(),
                                      [](const Errors& e) { return !(e.used() <= 1); });
    std::vector<double> arithmetic, own;
    for (const Errors& e : errors) {
      arithmetic.push_back(e.arithmetic);
      own.push_back(e.own);
    }
    const Folds& folds = CountedKernels::folds;
    const std::string limbs =
        folds.all == 0 ? "none is folded"
                       : fmt::format("two limbs in {:.1f} % of passes",
                                     100.0 * folds.two_limbs / static_cast<double>(folds.all));
    report_.Print(fmt::format("attention error, {}", name),
                  fmt::format("{:.1e} beside the recipe's {:.1e} at worst ({}, layer {}), median "
                              "{:.1e} beside {:.1e}, {} of {} beyond the bar, {}",
                              worst.arithmetic, worst.own, worst.recipe, worst.layer,
                              Median(arithmetic), Median(own), beyond, errors.size(), limbs),
                  fmt::format("{:.0e} + {} of the recipe's", kFloatError,
                              ErrorShare(*Recipe::Parse(worst.recipe))),
                  AtMost(static_cast<double>(beyond), 0));
  }

  const std::vector<Layer> layers_;
  BarReport& report_;
  std::vector<KernelTable> targets_;
  std::string names_;
  std::vector<std::vector<double>> exact_;  // [layer], over an f32 cache
  int64_t differing_outputs_ = 0;
};

}  // namespace

Status MeasureErrors(Model& model, std::span<const Token> text, BarReport& report) {
  Result<std::vector<Layer>> layers = Capture(model, text);
  if (!layers.ok()) return layers.status();
  ErrorBars bars(*std::move(layers), report);
  if (Status status = bars.RunExact(); !status.ok()) return status;
  for (const Preset& preset : Presets()) {
    const std::string name(preset.name);
    if (Status status = bars.Measure(name, {name}); !status.ok()) return status;
  }
  for (const Codec& codec : Registry()) {
    std::vector<std::string> recipes;
    for (const std::string& side : EverySide(codec)) recipes.push_back("kv=" + side + ",sink=3");
    const std::string name = fmt::format("{} in every group", codec.name);
    if (Status status = bars.Measure(name, recipes); !status.ok()) return status;
  }
  bars.PrintTargets();
  return OkStatus();
}

}  // namespace shorthand
