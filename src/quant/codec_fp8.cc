// e4m3 and e5m2: 8-bit floats under one scale a page. docs/formats/fp8.md
#include <cmath>

#include "base/half.h"
#include "quant/codecs.h"
#include "quant/reduce.h"

namespace shorthand {
namespace {

struct Fp8 {
  float max;
  uint8_t (*encode)(float);
};

float PageScale(const SideFormat& format, const Fp8& fp8, const float* x, int first) {
  if (format.tunes.one) return 1.0f;
  float largest = 0;
  for (int t = first; t < kPageTokens; ++t) {
    largest = Larger(largest, AbsMax(x + t * format.padded_dim, format.dim));
  }
  return largest / fp8.max;
}

void Encode(const SideFormat& format, const Fp8& fp8, const float* x, int first, CodedSide out) {
  const float scale = PageScale(format, fp8, x, first);
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
  if (format.tunes.one) *out.clipped += clipped;
}

}  // namespace

void EncodeE4m3(const SideFormat& format, const float* x, int first, CodedSide out) {
  Encode(format, {448.0f, F32ToE4m3}, x, first, out);
}

void EncodeE5m2(const SideFormat& format, const float* x, int first, CodedSide out) {
  Encode(format, {57344.0f, F32ToE5m2}, x, first, out);
}

}  // namespace shorthand
