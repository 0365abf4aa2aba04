// e4m3 and e5m2: 8-bit floats under one scale. docs/formats/fp8.md
#include <cmath>

#include "base/half.h"
#include "quant/codecs.h"
#include "quant/head_tables.h"
#include "quant/levels.h"
#include "quant/reduce.h"

namespace shorthand {
namespace {

struct Fp8 {
  float max;
  uint8_t (*encode)(float);
};

float PageScale(const SideFormat& format, const Fp8& fp8, const float* x, int first) {
  float largest = 0;
  for (int t = first; t < kPageTokens; ++t) {
    largest = Larger(largest, AbsMax(x + t * format.padded_dim, format.dim));
  }
  return largest / fp8.max;
}

void Encode(const SideFormat& format, const Fp8& fp8, const float* x, int first, CodedSide out) {
  const float given = GivenScale(format, *out.tables);
  const float scale = given > 0 ? given : PageScale(format, fp8, x, first);
  out.scales[0] = scale;
  if (scale == 0) return;
  uint32_t clipped = 0;
  for (int t = first; t < kPageTokens; ++t) {
    const int row = t * format.padded_dim;
    for (int c = 0; c < format.dim; ++c) {
      const float y = x[row + c] / scale;
      clipped += std::fabs(y) > fp8.max;
      out.codes[row + c] = fp8.encode(y);
    }
  }
  if (given > 0) *out.clipped += clipped;
}

}  // namespace

void EncodeE4m3(const SideFormat& format, const float* x, int first, CodedSide out) {
  Encode(format, {LargestFloat8(Code::kE4m3), F32ToE4m3}, x, first, out);
}

void EncodeE5m2(const SideFormat& format, const float* x, int first, CodedSide out) {
  Encode(format, {LargestFloat8(Code::kE5m2), F32ToE5m2}, x, first, out);
}

}  // namespace shorthand
