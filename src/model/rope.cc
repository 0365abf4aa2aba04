#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shorthand {
namespace {

// The pair that turns `turns` times over the original context, as a fraction.
double PairOfTurns(const RopeParams& params, double turns) {
  const double wavelengths = params.original_context_tokens / (turns * 2 * std::numbers::pi);
  return params.dims * std::log(wavelengths) / (2 * std::log(static_cast<double>(params.base)));
}

// YaRN: 1 for the pairs that keep their frequency, 0 for those that are scaled, a ramp between.
double ExtrapolatedPart(const RopeParams& params, int pair) {
  if (params.extrapolation == 0) return 0;
  const double low = std::max(0.0, std::floor(PairOfTurns(params, params.beta_fast)));
  const double high = std::min(params.dims - 1.0, std::ceil(PairOfTurns(params, params.beta_slow)));
  const double ramp = (pair - low) / std::max(0.001, high - low);
  return (1 - std::clamp(ramp, 0.0, 1.0)) * params.extrapolation;
}

}  // namespace

Rope RopeOf(const RopeParams& params, std::span<const float> factors) {
  Rope rope;
  rope.pairs = params.style == GGML_ROPE_TYPE_NORMAL ? RopePairs::kAdjacent : RopePairs::kHalves;
  for (int i = 0; i < params.dims / 2; ++i) {
    const double factor = factors.empty() ? 1 : factors[i];
    const double base = params.base;
    const double frequency = std::pow(base, -2.0 * i / params.dims) / factor;
    const double kept = ExtrapolatedPart(params, i);
    rope.frequencies.push_back(static_cast<float>(frequency * (params.scale * (1 - kept) + kept)));
  }
  return rope;
}

}  // namespace shorthand
