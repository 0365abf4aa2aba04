#include "quant/grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/half.h"
#include "quant/reduce.h"

namespace shorthand {
namespace {

constexpr int kRounds = 16;
constexpr float kLeastFactor = .740818f;        // e^-.3
constexpr float kGreatestFactor = 22026.4658f;  // e^10

float SquareOf(float deviation) { return deviation * deviation; }

float DeviationOf(float sum_of_squares, int count) {
  return count < 2 ? 0.0f : std::sqrt(sum_of_squares / static_cast<float>(count - 1));
}

class Balance {
 public:
  // x [tokens][stride]
  Balance(const float* x, int tokens, int dim, int stride)
      : x_(x),
        tokens_(tokens),
        dim_(dim),
        stride_(stride),
        y_(static_cast<size_t>(tokens) * dim),
        row_deviations_(tokens),
        column_deviations_(dim),
        row_factors_(tokens, 1.0f),
        column_factors_(dim, 1.0f),
        kept_rows_(row_factors_),
        kept_columns_(column_factors_) {}

  void Run() {
    float least = std::numeric_limits<float>::infinity(), target = 0;
    for (int round = 0; round < kRounds; ++round) {
      Divide();
      Measure();
      const auto [low, high] = DeviationRange();
      const float imbalance = high / std::max(low, 1e-12f);
      if (round == 0) target = std::clamp(low, 1e-3f, 1e3f) + 1e-6f;
      if (imbalance > least) return;
      if (imbalance < least) {
        least = imbalance;
        kept_rows_ = row_factors_;
        kept_columns_ = column_factors_;
      }
      Update(row_deviations_, target, &row_factors_);
      Update(column_deviations_, target, &column_factors_);
    }
  }

  const std::vector<float>& row_factors() const { return kept_rows_; }
  const std::vector<float>& column_factors() const { return kept_columns_; }

 private:
  void Divide() {
    for (int t = 0; t < tokens_; ++t) {
      const float* x = x_ + static_cast<size_t>(t) * stride_;
      float* y = y_.data() + static_cast<size_t>(t) * dim_;
      for (int c = 0; c < dim_; ++c) y[c] = x[c] / (row_factors_[t] * column_factors_[c]);
    }
  }

  void Measure() {
    std::vector<float> means(dim_), squares(dim_);
    for (int t = 0; t < tokens_; ++t) {
      const float* y = y_.data() + static_cast<size_t>(t) * dim_;
      const float sum = LaneReduce(dim_, 0.0f, [y](int c) { return y[c]; }, Add);
      const float mean = sum / static_cast<float>(dim_);
      const auto square = [y, mean](int c) { return SquareOf(y[c] - mean); };
      row_deviations_[t] = DeviationOf(LaneReduce(dim_, 0.0f, square, Add), dim_);
      for (int c = 0; c < dim_; ++c) means[c] += y[c];
    }
    for (float& mean : means) mean /= static_cast<float>(tokens_);
    for (int t = 0; t < tokens_; ++t) {
      const float* y = y_.data() + static_cast<size_t>(t) * dim_;
      for (int c = 0; c < dim_; ++c) squares[c] += SquareOf(y[c] - means[c]);
    }
    for (int c = 0; c < dim_; ++c) column_deviations_[c] = DeviationOf(squares[c], tokens_);
  }

  struct Range {
    float low, high;
  };
  Range DeviationRange() const {
    const auto rows = std::minmax_element(row_deviations_.begin(), row_deviations_.end());
    const auto columns = std::minmax_element(column_deviations_.begin(), column_deviations_.end());
    return {std::min(*rows.first, *columns.first), std::max(*rows.second, *columns.second)};
  }

  static void Update(const std::vector<float>& deviations, float target,
                     std::vector<float>* factors) {
    for (size_t i = 0; i < deviations.size(); ++i) {
      const float step = std::clamp(deviations[i] / target, .7f, 2.0f);
      (*factors)[i] = std::clamp((*factors)[i] * step, kLeastFactor, kGreatestFactor);
    }
  }

  const float* x_;
  int tokens_, dim_, stride_;
  std::vector<float> y_;
  std::vector<float> row_deviations_, column_deviations_;
  std::vector<float> row_factors_, column_factors_;
  std::vector<float> kept_rows_, kept_columns_;
};

}  // namespace

void BalanceGrid(const SideFormat& format, int first, float* x, float* factors) {
  if (first == kPageTokens) return;
  const int stride = format.padded_dim;
  const bool per_token = format.axis == Axis::kChannel;
  Balance balance(x + static_cast<size_t>(first) * stride, kPageTokens - first, format.dim, stride);
  balance.Run();
  const std::vector<float>& found = per_token ? balance.row_factors() : balance.column_factors();
  float* kept = factors + (per_token ? first : 0);
  std::transform(found.begin(), found.end(), kept, RoundToFiniteF16);
  for (int t = first; t < kPageTokens; ++t) {
    float* row = x + static_cast<size_t>(t) * stride;
    for (int c = 0; c < format.dim; ++c) row[c] /= factors[per_token ? t : c];
  }
}

}  // namespace shorthand
