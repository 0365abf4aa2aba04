#include "attention/noise.h"

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/parallel.h"
#include "shorthand/attention.h"
#include "shorthand/cache.h"

namespace shorthand {
namespace {

// Of every layer, [kPageTokens][query_heads][v_dim].
using Outputs = std::vector<std::vector<float>>;

// The rows of a text through one cache: all but the last page, then that page with its queries.
class Pass {
 public:
  Pass(const Shape& shape, const TextRows& text, int threads)
      : shape_(shape), text_(text), threads_(std::max(threads, 1)) {}

  Result<Outputs> Run(const Recipe& recipe, const Calibration* calibration) {
    auto cache = Cache::Open(shape_, recipe, {.calibration = calibration});
    if (!cache.ok()) return cache.status();
    const SequenceId sequence = (*cache)->Create();
    Outputs outputs;
    const int before = text_.tokens - kPageTokens;
    if (before > 0) {
      const Status status = Append(**cache, {sequence, before}, 0, nullptr);
      if (!status.ok()) return status;
    }
    for (const LayerShape& layer : shape_.layers) {
      outputs.emplace_back(static_cast<size_t>(kPageTokens) * layer.query_heads * layer.v_dim);
    }
    const Status status = Append(**cache, {sequence, kPageTokens}, before, &outputs);
    if (!status.ok()) return status;
    return outputs;
  }

 private:
  // Rows from `first` on; attends if there is a place for outputs.
  Status Append(Cache& cache, const BatchItem& item, int first, Outputs* outputs) {
    auto batch = cache.Begin({&item, 1});
    if (!batch.ok()) return batch.status();
    auto plan = AttentionPlan::Create(**batch);
    if (!plan.ok()) return plan.status();
    std::barrier stage(threads_);
    ForEach(threads_, threads_, [&](size_t index) {
      const int worker = static_cast<int>(index);
      for (int l = 0; l < static_cast<int>(shape_.layers.size()); ++l) {
        const LayerShape& layer = shape_.layers[l];
        const LayerRows& rows = text_.layers[l];
        if (layer.kv_owner < 0) {
          const size_t at = static_cast<size_t>(first) * layer.kv_heads;
          (*batch)->Write(l, rows.k.data() + at * layer.k_dim, rows.v.data() + at * layer.v_dim,
                          worker, threads_);
          stage.arrive_and_wait();
          (*batch)->Seal(l, worker, threads_);
          stage.arrive_and_wait();
        }
        if (outputs == nullptr) continue;
        (*plan)->Run({.layer = l, .q = rows.q.data(), .out = (*outputs)[l].data()}, worker,
                     threads_);
        stage.arrive_and_wait();
      }
    });
    return (*batch)->Commit();
  }

  const Shape& shape_;
  const TextRows& text_;
  const int threads_;
};

double SquaredSize(const std::vector<float>& a) {
  double sum = 0;
  for (const float x : a) sum += double{x} * x;
  return sum;
}

double SquaredDistance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = double{a[i]} - b[i];
    sum += difference * difference;
  }
  return sum;
}

}  // namespace

Result<std::vector<std::vector<double>>> AttentionNoise(const Shape& shape,
                                                        std::span<const Recipe> recipes,
                                                        const Calibration* calibration,
                                                        const TextRows& text, int threads,
                                                        const std::stop_token& stop) {
  Pass pass(shape, text, threads);
  Recipe f32;
  f32.kv.k.code = f32.kv.v.code = Code::kF32;
  const auto exact = pass.Run(f32, nullptr);
  if (!exact.ok()) return exact.status();
  std::vector<double> signals;
  for (const std::vector<float>& layer : *exact) signals.push_back(SquaredSize(layer));
  std::vector<std::vector<double>> noise;
  for (const Recipe& recipe : recipes) {
    if (stop.stop_requested()) return Status(StatusCode::kCancelled, "it was stopped");
    const auto outputs = pass.Run(recipe, calibration);
    if (!outputs.ok()) return outputs.status();
    std::vector<double>& of_recipe = noise.emplace_back(shape.layers.size(), 0.0);
    for (size_t l = 0; l < shape.layers.size(); ++l) {
      if (signals[l] == 0) continue;
      const int owner = shape.layers[l].kv_owner;
      of_recipe[owner >= 0 ? owner : l] += SquaredDistance((*outputs)[l], (*exact)[l]) / signals[l];
    }
  }
  return noise;
}

}  // namespace shorthand
