// Ranges of least squared error: the clip that the tune `mse` asks for, docs/formats/uniform.md,
// and where the fit of wN begins, docs/formats/planes.md.
//
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_CLIP_SEARCH_H_
#define SHORTHAND_QUANT_CLIP_SEARCH_H_

#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "quant/groups.h"

namespace shorthand {

// Parts of a group's range that are tried.
inline std::span<const float> ClipRatios(int bits) {
  static constexpr float kCoarse[] = {1, .9f, .8f, .7f, .6f, .5f};
  static constexpr float kMiddle[] = {1, .92f, .84f, .76f, .68f, .6f};
  static constexpr float kFine[] = {1, .96f, .92f, .88f};
  if (bits <= 3) return kCoarse;
  if (bits == 4) return kMiddle;
  return kFine;
}

// wN: the part of a group's range that codes of so many bits span before scale and offset are
// fitted to them, and how often that is done. 1: they are not.
inline constexpr std::array<float, 9> kFirstRatios = {1, 1, .65f, .82f, 1, 1, 1, 1, 1};
inline constexpr int kFitRounds = 2;

// A range narrowed about its middle.
inline ValueRange Narrowed(ValueRange range, float ratio) {
  if (ratio == 1) return range;
  const float middle = (range.low + range.high) / 2;
  const float half = (range.high - range.low) / 2 * ratio;
  return {middle - half, middle + half};
}

// What the group's codes leave of its values, squared and summed.
inline float SquaredError(const Group& group, const float* levels, GroupScale s) {
  const auto square = [&](int i) {
    const float error = group.x[i] - std::fma(s.scale, levels[group.codes[i]], s.offset);
    return error * error;
  };
  return Reduce(group.order, group.n, 0.0f, square, Add);
}

// Encodes by encode(ValueRange) -> GroupScale, which fills in the codes, with the first part of
// `range` that leaves the least squared error.
template <typename Encode>
GroupScale EncodeLeastError(const Group& group, int bits, const float* levels, ValueRange range,
                            Encode encode) {
  float best = 1, least = std::numeric_limits<float>::infinity();
  for (const float ratio : ClipRatios(bits)) {
    const float error = SquaredError(group, levels, encode(Narrowed(range, ratio)));
    if (!(error < least)) continue;
    least = error;
    best = ratio;
  }
  return encode(Narrowed(range, best));
}

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_CLIP_SEARCH_H_
