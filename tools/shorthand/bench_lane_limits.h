// How much a lane of `shorthand bench attention` reads, and for how long.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_BENCH_LANE_LIMITS_H_
#define SHORTHAND_TOOLS_BENCH_LANE_LIMITS_H_

#include <algorithm>
#include <cstdint>

#include "bench_attention_lanes.h"

namespace shorthand {

// More than the largest last-level caches hold.
inline constexpr uint64_t kStreamedBytes = uint64_t{600} << 20;
inline constexpr uint64_t kMaxLayers = 64;
// A sample is repeated until it has taken so long.
inline constexpr double kLeastSampleSeconds = 0.01;

inline int LayersFor(WorkingSet working_set, uint64_t bytes_per_layer) {
  if (working_set == WorkingSet::kResident) return 1;
  const uint64_t layers = (kStreamedBytes + bytes_per_layer - 1) / bytes_per_layer;
  return static_cast<int>(std::min(layers, kMaxLayers));
}

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_BENCH_LANE_LIMITS_H_
