// mxfp4 and nvfp4: e2m1 values under one-byte scales, with ggml's rules. docs/formats/mx.md
//
// Levels are doubled, so a stored scale s stands for s / 2 of level units.
#include <cmath>

#include "quant/codecs.h"
#include "quant/groups.h"
#include "quant/levels.h"

namespace shorthand {
namespace {

// The e2m1 code nearest to x in units of `scale`; of equally near ones the first, so ties go
// towards zero.
uint8_t NearestE2m1(float x, float scale) {
  const float* levels = E2m1Levels();
  uint8_t best = 0;
  float least = std::fabs(levels[0] * scale - x);
  for (uint8_t code = 1; code < 16; ++code) {
    const float error = std::fabs(levels[code] * scale - x);
    if (error < least) {
      best = code;
      least = error;
    }
  }
  return best;
}

// The nearest unsigned e4m3, halves upwards, as ggml rounds: whatever reaches 256 becomes 448, and
// nothing below 2^-6 rounds up to it.
float RoundToUe4m3(float x) {
  constexpr float kMax = 448.0f;
  if (!(x > 0)) return 0;
  const int exponent = std::ilogb(x);
  if (exponent >= 8) return kMax;
  const float ulp = std::ldexp(1.0f, std::max(exponent, -6) - 3);
  const float rounded = std::floor(x / ulp + 0.5f) * ulp;
  if (exponent < -6) return std::min(rounded, 7 * ulp);
  return rounded < 256.0f ? rounded : kMax;
}

}  // namespace

void EncodeMxfp4(const SideFormat& format, const float* x, int first, CodedSide out) {
  ForEachGroup(format, x, first, out, [](const Group& group) {
    const float largest = AbsMax(group.x, group.n);
    // The stored exponent is that of the block's largest value minus 2, biased by 127.
    const int stored = largest > 0 ? std::clamp(std::ilogb(largest) - 2 + 127, 0, 254) : 0;
    const float scale = std::ldexp(1.0f, stored - 128);
    for (int i = 0; i < group.n; ++i) group.codes[i] = NearestE2m1(group.x[i], scale);
    return GroupScale{scale};
  });
}

void EncodeNvfp4(const SideFormat& format, const float* x, int first, CodedSide out) {
  ForEachGroup(format, x, first, out, [](const Group& group) {
    const float scale = RoundToUe4m3(AbsMax(group.x, group.n) / 6.0f) / 2;
    for (int i = 0; i < group.n; ++i) group.codes[i] = NearestE2m1(group.x[i], scale);
    return GroupScale{scale};
  });
}

}  // namespace shorthand
