#include "attention_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attention/error_bound.h"

namespace shorthand {
namespace {

// Largest score up to which errors are proportional to their causes.
constexpr double kMildScore = 16;
// What the carry of rounded weights may leave, half a step in each of 16 lanes: 16 / 2 / 255.
constexpr double kRoundedWeights = 0.032;
// Tokens in codes below which the recipe's own error is a matter of chance.
constexpr int kFewTokens = 16;
// Of an output; outputs of subnormal values are.
constexpr double kLeastError = 1e-37;

// Whether codes may be exact: for few different values, or for few channels.
bool Lucky(const Rows& rows, int dim) {
  switch (rows.filling) {
    case Filling::kNoise:
    case Filling::kLoudChannels:
    case Filling::kMean:
    case Filling::kTiny:
    case Filling::kLoud:
      return dim < 16;
    default:
      return true;
  }
}

// Whether the recipe's own error may be smaller than what rounding leaves.
bool RecipeMayBeLucky(const AttentionScenario& scenario, const Recipe& recipe) {
  const bool mean =
      scenario.v.filling == Filling::kMean || scenario.v.filling == Filling::kLoudChannels;
  if (mean && scenario.aimed_score > 0) return true;  // all hangs on one large weight
  if (recipe.sink_tokens > kPageTokens - kFewTokens) return true;
  const std::vector<LayerShape>& layers = scenario.shape.layers;
  return std::any_of(layers.begin(), layers.end(), [&](const LayerShape& layer) {
    return Lucky(scenario.k, layer.k_dim) || Lucky(scenario.v, layer.v_dim) ||
           (layer.window > 0 && layer.window <= kFewTokens);
  });
}

}  // namespace

void AttentionErrors::Add(const std::vector<float>& out, const std::vector<double>& expected,
                          const std::vector<double>& lossless, double largest_score) {
  largest_score_ = std::max(largest_score_, largest_score);
  values_ += static_cast<int64_t>(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    arithmetic_ += (out[i] - expected[i]) * (out[i] - expected[i]);
    quantization_ += (expected[i] - lossless[i]) * (expected[i] - lossless[i]);
    norm_ += lossless[i] * lossless[i];
  }
}

void AttentionErrors::Check(const AttentionScenario& scenario, const Recipe& recipe) const {
  const double share = ErrorShare(recipe);
  if (share > 0 && largest_score_ > kMildScore) return;
  // What is rounded in any case is f32, whose error grows with the scores.
  double relative = kFloatError * (1 + largest_score_);
  if (share > 0 && RecipeMayBeLucky(scenario, recipe)) relative += kRoundedWeights;
  const double arithmetic = std::sqrt(arithmetic_), quantization = std::sqrt(quantization_);
  const double norm = std::sqrt(norm_);
  const double bound = relative * norm + share * quantization +
                       kLeastError * std::sqrt(static_cast<double>(values_));
  Require(arithmetic <= bound,
          fmt::format("arithmetic errs by {:.3g}, quantization by {:.3g}, of {:.3g}, largest score "
                      "{:.3g}: {}",
                      arithmetic, quantization, norm, largest_score_, scenario.Describe()));
}

}  // namespace shorthand
