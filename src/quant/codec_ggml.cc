// q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl: the values of ggml's blocks of 32, whose reference quantizers
// these equal to the bit. docs/formats/ggml.md has the rules and the one deviation: scales and
// offsets beyond the f16 range saturate instead of becoming infinite.
#include <cmath>
#include <cstddef>

#include "base/half.h"
#include "quant/codecs.h"
#include "quant/groups.h"
#include "quant/levels.h"

namespace shorthand {
namespace {

// 1/d, which ggml takes before rounding d. A d so small that 1/d overflows is zero in f16: the
// codes have no meaning then.
float Inverse(float d) {
  const float inverse = d == 0 ? 0.0f : 1.0f / d;
  return std::isfinite(inverse) ? inverse : 0.0f;
}

// Of the values with the largest magnitude the first.
float SignedAbsMax(const Group& group) {
  float largest = 0;
  for (int i = 0; i < group.n; ++i) {
    if (std::fabs(group.x[i]) > std::fabs(largest)) largest = group.x[i];
  }
  return largest;
}

// Codes around the middle, the largest magnitude exactly at -middle: q4_0, q5_0.
void EncodeCentred(const SideFormat& format, const float* x, int first, CodedSide out) {
  const int middle = 1 << (format.bits - 1), top = 2 * middle - 1;
  ForEachGroup(format, x, first, out, [=](const Group& group) {
    const float d = SignedAbsMax(group) / static_cast<float>(-middle);
    const float inverse = Inverse(d);
    for (int i = 0; i < group.n; ++i) {
      const float y = group.x[i] * inverse + (static_cast<float>(middle) + 0.5f);
      group.codes[i] = static_cast<uint8_t>(std::min(top, static_cast<int>(y)));
    }
    return GroupScale{RoundToFiniteF16(d)};
  });
}

// Codes from the minimum up: q4_1, q5_1.
void EncodeFromMinimum(const SideFormat& format, const float* x, int first, CodedSide out) {
  const int top = (1 << format.bits) - 1;
  ForEachGroup(format, x, first, out, [=](const Group& group) {
    const float low = Min(group.x, group.n);
    const float d = (Max(group.x, group.n) - low) / static_cast<float>(top);
    const float inverse = Inverse(d);
    for (int i = 0; i < group.n; ++i) {
      const float y = (group.x[i] - low) * inverse + 0.5f;
      group.codes[i] = static_cast<uint8_t>(std::min(top, static_cast<int>(y)));
    }
    return GroupScale{RoundToFiniteF16(d), RoundToFiniteF16(low)};
  });
}

uint8_t NearestIq4Nl(float y) {
  const float* levels = Iq4NlLevels();
  uint8_t code = 0;
  // Strictly nearer to the lower level, or it is the upper one.
  while (code < 15 && !(y - levels[code] < levels[code + 1] - y)) ++code;
  return code;
}

}  // namespace

void EncodeQ8_0(const SideFormat& format, const float* x, int first, CodedSide out) {
  ForEachGroup(format, x, first, out, [](const Group& group) {
    const float d = AbsMax(group.x, group.n) / 127.0f;
    const float inverse = Inverse(d);
    for (int i = 0; i < group.n; ++i) {
      group.codes[i] =
          static_cast<uint8_t>(static_cast<int>(std::round(group.x[i] * inverse)) + 128);
    }
    return GroupScale{RoundToFiniteF16(d)};
  });
}

void EncodeQ5_1(const SideFormat& format, const float* x, int first, CodedSide out) {
  EncodeFromMinimum(format, x, first, out);
}

void EncodeQ5_0(const SideFormat& format, const float* x, int first, CodedSide out) {
  EncodeCentred(format, x, first, out);
}

void EncodeQ4_1(const SideFormat& format, const float* x, int first, CodedSide out) {
  EncodeFromMinimum(format, x, first, out);
}

void EncodeQ4_0(const SideFormat& format, const float* x, int first, CodedSide out) {
  EncodeCentred(format, x, first, out);
}

// Levels nearest under d0 = signed absolute maximum / -127, then the scale of least squares with
// weights x^2. Blocks below 1e-15 are zero.
void EncodeIq4Nl(const SideFormat& format, const float* x, int first, CodedSide out) {
  const float* levels = Iq4NlLevels();
  const uint8_t zero = ZeroCode(levels, format.bits);
  ForEachGroup(format, x, first, out, [=](const Group& group) {
    const float largest = SignedAbsMax(group);
    if (std::fabs(largest) < 1e-15f) {
      std::fill_n(group.codes, group.n, zero);
      return GroupScale{};
    }
    const float inverse = 1.0f / (largest / levels[0]);
    float sum_qx = 0, sum_qq = 0;
    for (int i = 0; i < group.n; ++i) {
      group.codes[i] = NearestIq4Nl(inverse * group.x[i]);
      const float q = levels[group.codes[i]], weight = group.x[i] * group.x[i];
      sum_qx += weight * q * group.x[i];
      sum_qq += weight * q * q;
    }
    return GroupScale{RoundToFiniteF16(sum_qx / sum_qq)};
  });
}

}  // namespace shorthand
