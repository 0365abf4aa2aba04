#include "eval/layers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/half.h"
#include "base/parallel.h"
#include "cache/view.h"
#include "eval/lane.h"
#include "eval/passage.h"
#include "quant/footprint.h"
#include "quant/slice.h"

namespace shorthand {
namespace {

constexpr int64_t kQueries = 64;

// Even distances over the second half, the last token included.
std::vector<int64_t> QueryPositions(int64_t tokens) {
  const int64_t count = std::min(kQueries, tokens - tokens / 2);
  std::vector<int64_t> positions;
  for (int64_t i = 1; i <= count; ++i) {
    positions.push_back(tokens / 2 - 1 + (tokens - tokens / 2) * i / count);
  }
  return positions;
}

// Keeps what the observer shows of one chunk.
class Capturer {
 public:
  Capturer(LayerCapture& capture, int64_t first_token)
      : capture_(capture), first_token_(first_token) {}

  void See(const ObservedRows& seen) {
    CapturedLayer& layer = capture_.layers[seen.layer];
    if (seen.input == AttentionInput::kQueries) return SeeQueries(seen, layer.q);
    // Attention reads f16.
    std::vector<float>& rows = seen.input == AttentionInput::kKeys ? layer.k : layer.v;
    for (const float x : seen.rows) rows.push_back(RoundToF16(x));
  }

 private:
  void SeeQueries(const ObservedRows& seen, std::vector<float>& rows) {
    const size_t row = static_cast<size_t>(seen.heads) * seen.dim;
    for (const int64_t position : capture_.query_positions) {
      const int64_t at = position - first_token_;
      if (at < 0 || static_cast<size_t>(at + 1) * row > seen.rows.size()) continue;
      const auto query = seen.rows.subspan(at * row, row);
      rows.insert(rows.end(), query.begin(), query.end());
    }
  }

  LayerCapture& capture_;
  int64_t first_token_;
};

double Dot(const float* a, const float* b, int dim) {
  double sum = 0;
  for (int i = 0; i < dim; ++i) sum += double{a[i]} * b[i];
  return sum;
}

void Softmax(std::vector<double>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (double& x : logits) sum += x = std::exp(x - largest);
  for (double& x : logits) x /= sum;
}

double Correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double count = static_cast<double>(a.size());
  double mean_a = 0, mean_b = 0;
  for (size_t i = 0; i < a.size(); ++i) mean_a += a[i] / count, mean_b += b[i] / count;
  double aa = 0, bb = 0, ab = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
    ab += (a[i] - mean_a) * (b[i] - mean_b);
  }
  if (aa == 0 && bb == 0) return 1;
  return aa == 0 || bb == 0 ? 0 : ab / std::sqrt(aa * bb);
}

// One layer under one recipe.
class LayerDiagnosis {
 public:
  LayerDiagnosis(const LayerShape& shape, const LayerGroup& group, const LayerFormat& format,
                 const LayerCapture& capture, const CapturedLayer& rows)
      : shape_(shape), group_(group), format_(format), capture_(capture), rows_(rows) {}

  LayerScore Run() {
    if (group_.never_sealed) return {};
    for (int head = 0; head < shape_.kv_heads; ++head) {
      keys_ = RowsOfHead(rows_.k, head, shape_.kv_heads, shape_.k_dim);
      values_ = RowsOfHead(rows_.v, head, shape_.kv_heads, shape_.v_dim);
      const int64_t sealed = capture_.tokens / kPageTokens * kPageTokens;
      const int64_t first = std::min<int64_t>(group_.sink_tokens, sealed);
      read_keys_ = ReadBack(format_.k, format_.k_tables[head], keys_, first, sealed);
      read_values_ = ReadBack(format_.v, format_.v_tables[head], values_, first, sealed);
      const int per_head = shape_.query_heads / shape_.kv_heads;
      for (size_t query = 0; query < capture_.query_positions.size(); ++query) {
        for (int i = 0; i < per_head; ++i) Attend(query, head * per_head + i);
      }
    }
    if (queries_ == 0) return {};
    return {.sealed = true,
            .logit_correlation = correlation_ / queries_,
            .attention_kl = kl_ / queries_,
            .k_nsr = signal_ > 0 ? k_noise_ / signal_ : 0,
            .v_nsr = signal_ > 0 ? v_noise_ / signal_ : 0};
  }

 private:
  bool SeenSealed(int64_t token, int64_t position) const {
    return token >= group_.sink_tokens &&
           ViewOf(group_, token / kPageTokens, position / kPageTokens) == View::kSealed;
  }

  double Logit(const float* query, const float* key) const {
    const double scale = shape_.scale != 0 ? shape_.scale : 1 / std::sqrt(double(shape_.k_dim));
    const double logit = scale * Dot(query, key, shape_.k_dim);
    return shape_.softcap > 0 ? shape_.softcap * std::tanh(logit / shape_.softcap) : logit;
  }

  void Attend(size_t query_index, int head) {
    const int64_t position = capture_.query_positions[query_index];
    const int64_t first =
        shape_.window > 0 ? std::max<int64_t>(0, position + 1 - shape_.window) : 0;
    const float* query = rows_.q.data() + (query_index * shape_.query_heads + head) * shape_.k_dim;
    std::vector<double> exact, read, sealed_exact, sealed_read;
    for (int64_t token = first; token <= position; ++token) {
      exact.push_back(Logit(query, keys_.data() + token * shape_.k_dim));
      read.push_back(exact.back());
      if (!SeenSealed(token, position)) continue;
      read.back() = Logit(query, read_keys_.data() + token * shape_.k_dim);
      sealed_exact.push_back(exact.back());
      sealed_read.push_back(read.back());
    }
    if (sealed_exact.empty()) return;
    ++queries_;
    correlation_ += Correlation(sealed_exact, sealed_read);
    Softmax(exact);
    Softmax(read);
    for (size_t i = 0; i < exact.size(); ++i) {
      if (exact[i] > 0 && read[i] > 0) kl_ += exact[i] * std::log(exact[i] / read[i]);
    }
    AddOutput(exact, read, first, position);
  }

  // The exact output's size, and what the errors of sealed keys and of sealed values add to it.
  void AddOutput(const std::vector<double>& weights, const std::vector<double>& read_weights,
                 int64_t first, int64_t position) {
    std::vector<double> output(shape_.v_dim), of_keys(shape_.v_dim), of_values(shape_.v_dim);
    for (int64_t token = first; token <= position; ++token) {
      const bool sealed = SeenSealed(token, position);
      const double weight = weights[token - first];
      const double weight_error = read_weights[token - first] - weight;
      const float* value = values_.data() + token * shape_.v_dim;
      const float* read = read_values_.data() + token * shape_.v_dim;
      for (int i = 0; i < shape_.v_dim; ++i) {
        output[i] += weight * value[i];
        of_keys[i] += weight_error * value[i];
        if (sealed) of_values[i] += weight * (double{read[i]} - value[i]);
      }
    }
    for (int i = 0; i < shape_.v_dim; ++i) {
      signal_ += output[i] * output[i];
      k_noise_ += of_keys[i] * of_keys[i];
      v_noise_ += of_values[i] * of_values[i];
    }
  }

  const LayerShape& shape_;
  const LayerGroup& group_;
  const LayerFormat& format_;
  const LayerCapture& capture_;
  const CapturedLayer& rows_;
  std::vector<float> keys_, values_, read_keys_, read_values_;  // of one KV head
  double queries_ = 0, correlation_ = 0, kl_ = 0, signal_ = 0, k_noise_ = 0, v_noise_ = 0;
};

}  // namespace

std::vector<float> RowsOfHead(std::span<const float> rows, int head, int heads, int dim) {
  std::vector<float> result;
  for (size_t at = static_cast<size_t>(head) * dim; at < rows.size();
       at += static_cast<size_t>(heads) * dim) {
    const auto row = rows.subspan(at, dim);
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

Result<LayerCapture> CaptureLayers(Model& model, std::span<const Token> tokens,
                                   const std::function<void(double)>& on_progress) {
  LayerCapture capture;
  capture.tokens = static_cast<int64_t>(tokens.size());
  capture.query_positions = QueryPositions(capture.tokens);
  capture.layers.resize(model.shape().layers.size());
  Recipe f16;
  f16.kv.k.code = f16.kv.v.code = Code::kF16;
  Lane exact(model.shape(), f16);
  for (int64_t at = 0; at < capture.tokens;) {
    const int64_t count = std::min(kPromptTokensAtOnce, capture.tokens - at);
    Capturer capturer(capture, at);
    model.Observe([&capturer](const ObservedRows& seen) { capturer.See(seen); });
    // Without an output row the last layer's queries would not be computed.
    const auto last = static_cast<int32_t>(count - 1);
    exact.Feed(model, tokens.subspan(at, count), {&last, 1});
    model.Observe({});
    if (!exact.status().ok()) return exact.status();
    at += count;
    if (on_progress) on_progress(static_cast<double>(at) / static_cast<double>(capture.tokens));
  }
  return capture;
}

Result<std::vector<LayerScore>> DiagnoseLayers(const Shape& shape, const Recipe& recipe,
                                               const Calibration* calibration,
                                               const LayerCapture& capture, int threads) {
  auto groups = ResolveGroups(shape, recipe);
  if (!groups.ok()) return groups.status();
  Recipe named = recipe;
  if (Status status = UseCalibration(shape, calibration, &named, &*groups); !status.ok()) {
    return status;
  }
  std::vector<std::pair<const LayerGroup*, const LayerFormat*>> formats;
  for (const LayerGroup& group : *groups) {
    for (const LayerFormat& format : group.layers) formats.emplace_back(&group, &format);
  }
  std::vector<LayerScore> scores(shape.layers.size());
  ForEach(formats.size(), threads, [&](size_t i) {
    const auto& [group, format] = formats[i];
    const int layer = format->layer;
    scores[layer] =
        LayerDiagnosis(shape.layers[layer], *group, *format, capture, capture.layers[layer]).Run();
  });
  return scores;
}

}  // namespace shorthand
