#include "model/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "quant/rope_pairs.h"
#include "quant/rotation.h"

namespace shorthand {
namespace {

constexpr int64_t kMostKeptTokens = 2048;
constexpr double kLowShare = 0.005, kHighShare = 0.995;
constexpr double kOutlierShare = 0.01;

// Tokens of the page at `position` that are left out.
int SkippedOf(int64_t position) { return position == 0 ? kSkippedTokens : 0; }

// Between the two values that are nearest in rank; `values` are reordered.
float Percentile(std::vector<float>& values, double share) {
  const double rank = share * static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.end());
  const double below = *at;
  if (at + 1 == values.end()) return *at;
  const double above = *std::min_element(at + 1, values.end());
  return static_cast<float>(below + (above - below) * (rank - std::floor(rank)));
}

// Appends a channel whose first `skipped` values count only for the extremes.
void AppendChannel(std::vector<float> values, int skipped, KeyRange* range) {
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  range->min.push_back(*min);
  range->max.push_back(*max);
  values.erase(values.begin(), values.begin() + skipped);
  double sum = 0;
  for (const float x : values) sum += x;
  range->mean.push_back(static_cast<float>(sum / static_cast<double>(values.size())));
  range->low.push_back(Percentile(values, kLowShare));
  range->high.push_back(Percentile(values, kHighShare));
}

// How far each value of a group lies from its mean, in standard deviations.
void AppendDeviations(std::span<const float> group, std::vector<float>* deviations) {
  const auto n = static_cast<double>(group.size());
  double sum = 0, squares = 0;
  for (const float x : group) {
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  const double mean = sum / n;
  const double variance = squares / n - mean * mean;
  for (const float x : group) {
    const double r = variance > 0 ? std::fabs(x - mean) / std::sqrt(variance) : 0;
    deviations->push_back(static_cast<float>(r));
  }
}

// Kept rows that belong to the tokens left out.
int SkippedRows(int64_t stride) { return static_cast<int>((kSkippedTokens + stride - 1) / stride); }

// Keys [tokens][heads][k_dim], `stride` apart, as before RoPE.
std::vector<float> BeforeRope(const LayerShape& shape, int64_t stride, std::vector<float> keys) {
  const int row_floats = shape.kv_heads * shape.k_dim;
  const int64_t rows = static_cast<int64_t>(keys.size()) / row_floats;
  for (int64_t row = 0; row < rows;) {
    const int64_t page = row * stride / kPageTokens;
    const Rotation rotation(shape.rope, page * kPageTokens);
    for (; row < rows && row * stride / kPageTokens == page; ++row) {
      for (int h = 0; h < shape.kv_heads; ++h) {
        rotation.Undo(static_cast<int>(row * stride % kPageTokens),
                      keys.data() + row * row_floats + h * shape.k_dim);
      }
    }
  }
  return keys;
}

}  // namespace

Statistics::Statistics(const Shape& shape, int64_t tokens)
    : shape_(shape),
      tokens_(tokens),
      stride_((tokens + kMostKeptTokens - 1) / kMostKeptTokens),
      layers_(shape.layers.size()) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerShape& layer = shape.layers[i];
    const std::vector<double> zeros(layer.k_dim, 0.0);
    layers_[i].heads.assign(layer.kv_owner >= 0 ? 0 : layer.kv_heads, HeadSums{zeros, zeros, 0});
  }
}

void Statistics::Add(const ObservedRows& seen, int64_t first_position) {
  if (layers_[seen.layer].heads.empty()) return;  // the keys are another layer's
  switch (seen.input) {
    case AttentionInput::kKeys:
      return AddKeys(seen, first_position);
    case AttentionInput::kValues:
      return AddValues(seen, first_position);
    case AttentionInput::kQueries:
      return AddQueries(seen, first_position);
  }
}

void Statistics::AddKeys(const ObservedRows& seen, int64_t first_position) {
  const int skipped = SkippedOf(first_position);
  const int row_floats = seen.heads * seen.dim;
  const int rows = static_cast<int>(seen.rows.size()) / row_floats;
  LayerSums& layer = layers_[seen.layer];
  for (int r = 0; r < rows; ++r) {
    if ((first_position + r) % stride_ != 0) continue;
    const float* row = seen.rows.data() + static_cast<size_t>(r) * row_floats;
    layer.keys.insert(layer.keys.end(), row, row + row_floats);
  }
  for (size_t h = 0; h < layer.heads.size(); ++h) {
    for (int c = 0; c < seen.dim; ++c) {
      const float* at = seen.rows.data() + h * seen.dim + c;
      double sum = 0, squares = 0;
      for (int r = skipped; r < rows; ++r) {
        const double x = at[static_cast<size_t>(r) * row_floats];
        sum += x;
        squares += x * x;
      }
      const double variance = squares - sum * sum / (rows - skipped);
      layer.heads[h].k_variance[c] += std::max(variance, 0.0);
    }
  }
}

void Statistics::AddQueries(const ObservedRows& seen, int64_t first_position) {
  const LayerShape& shape = shape_.layers[seen.layer];
  std::vector<HeadSums>& heads = layers_[seen.layer].heads;
  const int group = shape.query_heads / shape.kv_heads;
  const size_t row_floats = static_cast<size_t>(seen.heads) * seen.dim;
  for (size_t at = SkippedOf(first_position) * row_floats; at < seen.rows.size();
       at += row_floats) {
    for (int h = 0; h < seen.heads; ++h) {
      for (int c = 0; c < seen.dim; ++c) {
        const double x = seen.rows[at + h * seen.dim + c];
        heads[h / group].q_squares[c] += x * x;
      }
    }
  }
}

void Statistics::AddValues(const ObservedRows& seen, int64_t first_position) {
  LayerSums& layer = layers_[seen.layer];
  const int row_floats = seen.heads * seen.dim;
  const int rows = static_cast<int>(seen.rows.size()) / row_floats;
  for (int h = 0; h < seen.heads; ++h) {
    const float* from = seen.rows.data() + h * seen.dim;
    double magnitudes = 0;
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < seen.dim; ++c) {
        const float x = std::fabs(from[static_cast<size_t>(r) * row_floats + c]);
        layer.heads[h].v_max = std::max(layer.heads[h].v_max, x);
        magnitudes += x;
      }
    }
    // The cache refuses rows that are not finite.
    if (!std::isfinite(magnitudes)) continue;
    LearnValues(from, row_floats, SkippedOf(first_position), seen.dim, &layer);
  }
}

// One head of a page, its tokens `row_floats` apart.
void Statistics::LearnValues(const float* rows, int row_floats, int first, int dim,
                             LayerSums* sums) {
  std::vector<float> deviations;
  for (int t = first; t < kPageTokens; ++t) {
    AppendDeviations({rows + static_cast<size_t>(t) * row_floats, static_cast<size_t>(dim)},
                     &deviations);
  }
  std::vector<float> ranked = deviations;
  const auto outliers =
      static_cast<ptrdiff_t>(std::ceil(kOutlierShare * static_cast<double>(ranked.size())));
  std::nth_element(ranked.begin(), ranked.end() - outliers, ranked.end());
  const float cut = *(ranked.end() - outliers);
  std::vector<double> others;
  for (int t = first; t < kPageTokens; ++t) {
    others.clear();
    for (int c = 0; c < dim; ++c) {
      if (deviations[(t - first) * dim + c] >= cut) continue;
      others.push_back(rows[static_cast<size_t>(t) * row_floats + c]);
    }
    if (others.empty()) continue;
    const auto [min, max] = std::minmax_element(others.begin(), others.end());
    const double middle = (*max + *min) / 2, half = (*max - *min) / 2;
    if (half == 0) continue;
    for (const double x : others) {
      sums->v_levels.Add(std::clamp((x - middle) / half, -1.0, 1.0), half * half);
    }
  }
}

HeadStatistics Statistics::HeadOf(int layer, int head) const {
  const LayerShape& shape = shape_.layers[layer];
  const HeadSums& sums = layers_[layer].heads[head];
  const auto count = static_cast<double>(tokens_ - kSkippedTokens);
  const double queries = count * (shape.query_heads / shape.kv_heads);
  HeadStatistics result;
  result.v_max = sums.v_max;
  for (int c = 0; c < shape.k_dim; ++c) {
    result.k_spread.push_back(static_cast<float>(std::sqrt(sums.k_variance[c] / count)));
    result.q_rms.push_back(static_cast<float>(std::sqrt(sums.q_squares[c] / queries)));
  }
  return result;
}

void Statistics::SetRanges(const LayerShape& shape, const std::vector<float>& keys,
                           KeyRange HeadStatistics::* range, LayerStatistics* layer) const {
  const size_t row_floats = static_cast<size_t>(shape.kv_heads) * shape.k_dim;
  std::vector<float> channel(keys.size() / row_floats);
  for (int h = 0; h < shape.kv_heads; ++h) {
    for (int c = 0; c < shape.k_dim; ++c) {
      for (size_t row = 0; row < channel.size(); ++row) {
        channel[row] = keys[row * row_floats + h * shape.k_dim + c];
      }
      AppendChannel(channel, SkippedRows(stride_), &(layer->heads[h].*range));
    }
  }
}

// The squared error of a score is that of the key times the square of the query.
LearnedLevels Statistics::LearnKeys(const LayerShape& shape, const std::vector<float>& keys,
                                    const LayerStatistics& layer) const {
  LevelLearner learner;
  const size_t row_floats = static_cast<size_t>(shape.kv_heads) * shape.k_dim;
  for (int h = 0; h < shape.kv_heads; ++h) {
    const KeyRange& range = layer.heads[h].keys_before_rope;
    const std::vector<double> query = PairSquares(layer, layer.heads[h].q_rms);
    for (int c = 0; c < shape.k_dim; ++c) {
      const double low = range.low[c], high = range.high[c];
      const double middle = (high + low) / 2, half = (high - low) / 2;
      if (half == 0) continue;
      for (size_t at = SkippedRows(stride_) * row_floats + h * shape.k_dim + c; at < keys.size();
           at += row_floats) {
        const double z = (keys[at] - middle) / half;
        if (std::fabs(z) <= 1) learner.Add(z, query[c] * half * half);
      }
    }
  }
  return learner.AllLevels();
}

Result<std::vector<LayerStatistics>> Statistics::Finish() const {
  std::vector<LayerStatistics> result;
  const auto finite = [](const std::vector<float>& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
  };
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerShape& shape = shape_.layers[i];
    LayerStatistics layer;
    layer.rope_pairs = shape.rope.pairs;
    layer.rope_dims = 2 * static_cast<int>(shape.rope.frequencies.size());
    for (size_t h = 0; h < layers_[i].heads.size(); ++h) {
      layer.heads.push_back(HeadOf(static_cast<int>(i), static_cast<int>(h)));
      const HeadStatistics& head = layer.heads.back();
      if (finite(head.k_spread) && finite(head.q_rms) && std::isfinite(head.v_max)) continue;
      return DataLoss(fmt::format(
          "keys, values or queries of layer {} are not finite on this text; nothing is calibrated",
          i));
    }
    if (!layer.heads.empty()) {
      const std::vector<float> before_rope = BeforeRope(shape, stride_, layers_[i].keys);
      SetRanges(shape, layers_[i].keys, &HeadStatistics::keys, &layer);
      SetRanges(shape, before_rope, &HeadStatistics::keys_before_rope, &layer);
      layer.k_levels = LearnKeys(shape, before_rope, layer);
      layer.v_levels = layers_[i].v_levels.AllLevels();
    }
    result.push_back(std::move(layer));
  }
  return result;
}

}  // namespace shorthand
