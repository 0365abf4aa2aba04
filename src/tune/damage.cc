#include "tune/damage.h"

#include <algorithm>
#include <cmath>

#include "quant/footprint.h"
#include "tune/rungs.h"

namespace shorthand {
namespace {

// KL in nats for each unit of noise in one layer's output: geometric means over the layers of
// smollm2, qwen and gemma, where models lie within a factor of two. docs/tuning.md
constexpr double kKlOfKeyNoise = 0.12;
constexpr double kKlOfValueNoise = 0.055;

// Layers differ less in what they cost than in their noise: this power of it fits the three models
// best, and makes none worse than layers that are taken as alike. docs/tuning.md
constexpr double kTrust = 0.6;
constexpr double kTrustBits = 3;  // where layers are compared

// Noise of layers that show none; keeps logarithms finite.
constexpr double kLeastNoise = 1e-12;

// What is known of one side of the layers before it becomes damage.
struct SideNoise {
  const std::vector<Rung>& rungs;
  std::span<const double> measured_bits;
  double kl_of_noise;
  std::vector<float> LayerStatistics::* noise;

  double At(const LayerStatistics& layer, double bits) const {
    return NoiseAt(measured_bits, layer.*noise, bits);
  }

  // [layer][rung]; empty for layers that take no part.
  std::vector<std::vector<double>> Damages(const Calibration& calibration,
                                           const std::vector<int>& layers) const {
    double mean_log = 0;
    for (const int l : layers) {
      mean_log += std::log(At(calibration.layers[l], kTrustBits)) / double(layers.size());
    }
    std::vector<std::vector<double>> damages(calibration.layers.size());
    for (const int l : layers) {
      const LayerStatistics& layer = calibration.layers[l];
      const double towards_mean =
          std::exp((1 - kTrust) * (mean_log - std::log(At(layer, kTrustBits))));
      for (const Rung& rung : rungs) {
        damages[l].push_back(kl_of_noise * towards_mean * At(layer, rung.bits));
      }
    }
    return damages;
  }
};

}  // namespace

double NoiseAt(std::span<const double> measured_bits, std::span<const float> noise, double bits) {
  const auto log_noise = [&](size_t i) {
    return std::log(std::max<double>(noise[i], kLeastNoise));
  };
  if (bits >= measured_bits.back()) {
    return std::exp(log_noise(noise.size() - 1)) * std::pow(4.0, measured_bits.back() - bits);
  }
  size_t i = 0;
  while (bits >= measured_bits[i + 1]) ++i;
  const double share = (bits - measured_bits[i]) / (measured_bits[i + 1] - measured_bits[i]);
  return std::exp((1 - share) * log_noise(i) + share * log_noise(i + 1));
}

Result<Damage> PredictDamage(const Shape& shape, const Calibration& calibration) {
  if (Status status = calibration.CheckFits(shape); !status.ok()) return status;
  // Which layers are sealed at all does not depend on the rung.
  Recipe recipe;
  recipe.kv = {KeyRungs().front().side, ValueRungs().front().side};
  const auto groups = ResolveGroups(shape, recipe);
  if (!groups.ok()) return groups.status();
  std::vector<int> layers;
  for (const LayerGroup& group : *groups) {
    if (group.never_sealed) continue;
    for (const LayerFormat& format : group.layers) {
      const LayerStatistics& layer = calibration.layers[format.layer];
      if (layer.k_noise.empty() || layer.v_noise.empty()) {
        return FailedPrecondition(
            "the calibration's text has fewer than 256 tokens, too few to tell layers apart; a "
            "choice by layer needs a longer one");
      }
      layers.push_back(format.layer);
    }
  }
  const SideNoise keys = {KeyRungs(), kKeyNoiseBits, kKlOfKeyNoise, &LayerStatistics::k_noise};
  const SideNoise values = {ValueRungs(), kValueNoiseBits, kKlOfValueNoise,
                            &LayerStatistics::v_noise};
  return Damage{.k = keys.Damages(calibration, layers), .v = values.Damages(calibration, layers)};
}

}  // namespace shorthand
