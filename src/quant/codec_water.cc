// wN: channels with widths of their own. docs/formats/planes.md
#include <array>
#include <cmath>

#include "quant/clip_search.h"
#include "quant/codecs.h"
#include "quant/groups.h"

namespace shorthand {
namespace {

// Sums over values x and their codes c: of x, c, c^2 and x c.
struct Sums {
  float x = 0, c = 0, cc = 0, xc = 0;

  void Add(float value, float code) {
    x += value;
    c += code;
    cc += code * code;
    xc = std::fma(value, code, xc);
  }
  void Add(const Sums& other) {
    x += other.x;
    c += other.c;
    cc += other.cc;
    xc += other.xc;
  }
};

// The scale and offset that leave the least squared error of the codes that `line` makes; `line`
// itself where no others do. REQUIRES: the group ends where its page does.
GroupScale LineThroughCodes(const Group& group, int top, GroupScale line) {
  const float inverse = line.scale > 0 ? 1 / line.scale : 0;
  const float start = 0 - line.offset * inverse;
  std::array<Sums, kLanes> lanes;  // token t in lane t mod 16
  const int first_lane = kPageTokens - group.n;
  for (int i = 0; i < group.n; ++i) {
    const float y = std::fma(group.x[i], inverse, start);
    const auto code = static_cast<float>(RoundToRange(y, 0, top));
    lanes[(first_lane + i) % kLanes].Add(group.x[i], code);
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i].Add(lanes[i + half]);
  }
  const Sums& sum = lanes[0];
  const auto n = static_cast<float>(group.n);
  const float covariance = n * sum.xc - sum.x * sum.c, variance = n * sum.cc - sum.c * sum.c;
  if (!(covariance > 0 && variance > 0)) return line;
  const float scale = covariance / variance;
  return {scale, (sum.x - scale * sum.c) / n};
}

}  // namespace

void EncodeWater(const SideFormat& format, const float* x, int first, CodedSide out) {
  ForEachGroup(format, x, first, out, [&](const Group& group) {
    const int bits = out.widths[group.index / 4], top = (1 << bits) - 1;
    const ValueRange range = Narrowed(ClippedRange(group, 1), kFirstRatios[bits]);
    GroupScale line = {(range.high - range.low) / static_cast<float>(top), range.low};
    const int rounds = kFirstRatios[bits] == 1 ? 0 : kFitRounds;
    for (int round = 0; round < rounds; ++round) line = LineThroughCodes(group, top, line);
    return EncodeUnsignedBy(group, bits, line);
  });
}

}  // namespace shorthand
