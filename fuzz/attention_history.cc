#include "attention_history.h"

#include <algorithm>
#include <cmath>

namespace shorthand {
namespace {

int FirstSeen(const LayerShape& shape, int position) {
  return shape.window > 0 ? std::max(0, position - shape.window + 1) : 0;
}

double ScaleOf(const LayerShape& shape) {
  return shape.scale != 0 ? shape.scale : 1 / std::sqrt(double(shape.k_dim));
}

}  // namespace

void AttentionHistory::Append(int64_t token) {
  for (size_t l = 0; l < layers_.size(); ++l) {
    const LayerShape& shape = scenario_->shape.layers[l];
    const int64_t row = token * 64 + static_cast<int64_t>(l);
    scenario_->k.Append(row, shape.kv_heads, shape.k_dim, &layers_[l].k);
    scenario_->v.Append(row, shape.kv_heads, shape.v_dim, &layers_[l].v);
  }
  ++tokens_;
}

void AttentionHistory::Crop(int tokens) {
  for (size_t l = 0; l < layers_.size(); ++l) {
    const LayerShape& shape = scenario_->shape.layers[l];
    layers_[l].k.resize(static_cast<size_t>(tokens) * shape.kv_heads * shape.k_dim);
    layers_[l].v.resize(static_cast<size_t>(tokens) * shape.kv_heads * shape.v_dim);
  }
  tokens_ = tokens;
}

void AttentionHistory::AppendRows(int layer, int first, int tokens, std::vector<float>* k,
                                  std::vector<float>* v) const {
  const LayerShape& shape = scenario_->shape.layers[layer];
  const auto append = [&](const std::vector<float>& from, int row_floats, std::vector<float>* to) {
    const auto begin = from.begin() + static_cast<ptrdiff_t>(first) * row_floats;
    to->insert(to->end(), begin, begin + static_cast<ptrdiff_t>(tokens) * row_floats);
  };
  append(layers_[layer].k, shape.kv_heads * shape.k_dim, k);
  append(layers_[layer].v, shape.kv_heads * shape.v_dim, v);
}

const float* AttentionHistory::KeyOf(int layer, int token, int query_head) const {
  const LayerShape& shape = scenario_->shape.layers[layer];
  const int kv_head = query_head / (shape.query_heads / shape.kv_heads);
  const size_t row = static_cast<size_t>(token) * shape.kv_heads + kv_head;
  return layers_[layer].k.data() + row * shape.k_dim;
}

void AttentionHistory::Aim(int layer, int position, double score, uint64_t seed, float* q) const {
  const LayerShape& shape = scenario_->shape.layers[layer];
  const int first = FirstSeen(shape, position);
  for (int h = 0; h < shape.query_heads; ++h, q += shape.k_dim) {
    const int token = first + static_cast<int>(Mix(seed + h) % (position + 1 - first));
    const float* k = KeyOf(layer, token, h);
    double square = 0;
    for (int c = 0; c < shape.k_dim; ++c) square += double(k[c]) * k[c];
    const double factor = square > 0 ? score / (ScaleOf(shape) * square) : 0;
    for (int c = 0; c < shape.k_dim; ++c) q[c] = static_cast<float>(factor * k[c]);
  }
}

double AttentionHistory::Attend(int layer, int position, const float* q, double* out) const {
  const LayerShape& shape = scenario_->shape.layers[layer];
  const Layer& rows = layers_[layer];
  const int first = FirstSeen(shape, position);
  const double scale = ScaleOf(shape);
  double largest = 0;
  std::vector<double> scores(position + 1);
  for (int h = 0; h < shape.query_heads; ++h) {
    const int kv_head = h / (shape.query_heads / shape.kv_heads);
    double max = scenario_->sink_logits.empty() ? -INFINITY : scenario_->sink_logits[h];
    double total = 0;
    for (int t = first; t <= position; ++t) {
      const float* k = KeyOf(layer, t, h);
      double dot = 0;
      for (int c = 0; c < shape.k_dim; ++c) dot += double(q[h * shape.k_dim + c]) * k[c];
      double& score = scores[t] = dot * scale;
      largest = std::max(largest, std::fabs(score));
      if (shape.softcap > 0) score = shape.softcap * std::tanh(score / shape.softcap);
      max = std::max(max, score);
    }
    if (!scenario_->sink_logits.empty()) total = std::exp(scenario_->sink_logits[h] - max);
    double* head = out + static_cast<size_t>(h) * shape.v_dim;
    std::fill_n(head, shape.v_dim, 0.0);
    for (int t = first; t <= position; ++t) {
      const double weight = std::exp(scores[t] - max);
      total += weight;
      const float* v =
          rows.v.data() + (static_cast<size_t>(t) * shape.kv_heads + kv_head) * shape.v_dim;
      for (int c = 0; c < shape.v_dim; ++c) head[c] += weight * v[c];
    }
    for (int c = 0; c < shape.v_dim; ++c) head[c] /= total;
  }
  return largest;
}

}  // namespace shorthand
