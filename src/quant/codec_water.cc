// wN: channels with widths of their own. docs/formats/planes.md
#include <array>

#include "base/half.h"
#include "quant/codecs.h"
#include "quant/groups.h"
#include "quant/reduce.h"

namespace shorthand {
namespace {

// Widths whose range is narrowed by squared error, and by how much.
constexpr int kMaxClippedBits = 3;
constexpr std::array<float, 6> kRatios = {1.0f, .9f, .8f, .7f, .6f, .5f};

struct Coded {
  GroupScale scale;
  float error;
};

// Codes of a group whose range is narrowed about its middle.
Coded EncodeRange(const Group& group, ValueRange range, float ratio, int bits) {
  const int top = (1 << bits) - 1;
  const float middle = (range.low + range.high) / 2;
  const float half = (range.high - range.low) / 2 * ratio;
  const float low = ratio == 1 ? range.low : middle - half;
  const float high = ratio == 1 ? range.high : middle + half;
  const float scale = RoundToFiniteF16((high - low) / static_cast<float>(top));
  const float offset = RoundToFiniteF16(low);
  for (int i = 0; i < group.n; ++i) {
    const int code = scale == 0 ? 0 : RoundToRange((group.x[i] - offset) / scale, 0, top);
    group.codes[i] = static_cast<uint8_t>(code);
  }
  const float error = Reduce(
      group.order, group.n, 0.0f,
      [&](int i) {
        const float e = group.x[i] - std::fma(scale, static_cast<float>(group.codes[i]), offset);
        return e * e;
      },
      Add);
  return {{scale, offset}, error};
}

GroupScale EncodeChannel(const Group& group, int bits) {
  const ValueRange range = ClippedRange(group, 1);
  if (bits > kMaxClippedBits) return EncodeRange(group, range, 1, bits).scale;
  float best_ratio = kRatios[0], least = 0;
  for (const float ratio : kRatios) {
    const float error = EncodeRange(group, range, ratio, bits).error;
    if (ratio != kRatios[0] && !(error < least)) continue;
    best_ratio = ratio;
    least = error;
  }
  return EncodeRange(group, range, best_ratio, bits).scale;
}

}  // namespace

void EncodeWater(const SideFormat& format, const float* x, int first, CodedSide out) {
  ForEachGroup(format, x, first, out, [&](const Group& group) {
    return EncodeChannel(group, out.widths[group.index / 4]);
  });
}

}  // namespace shorthand
