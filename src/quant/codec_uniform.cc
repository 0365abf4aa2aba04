// uB and iB: equally spaced levels. docs/formats/uniform.md
#include "base/half.h"
#include "quant/clip_search.h"
#include "quant/codecs.h"
#include "quant/groups.h"
#include "quant/levels.h"

namespace shorthand {
namespace {

// A group of iB whose greatest magnitude counts as `top_value`.
GroupScale EncodeSignedGroup(const Group& group, int bits, float top_value) {
  const int middle = 1 << (bits - 1);
  const int top = middle - 1;
  const float scale = RoundToFiniteF16(top_value / static_cast<float>(top));
  for (int i = 0; i < group.n; ++i) {
    const int level = scale == 0 ? 0 : RoundToRange(group.x[i] / scale, -top, top);
    group.codes[i] = static_cast<uint8_t>(level + middle);
  }
  return {scale};
}

GroupScale EncodeUnsignedLeastError(const Group& group, int bits) {
  return EncodeLeastError(
      group, bits, UnsignedLevels(), ClippedRange(group, 1),
      [&](ValueRange range) { return EncodeUnsignedGroup(group, bits, range); });
}

}  // namespace

GroupScale EncodeUnsignedGroup(const Group& group, int bits, ValueRange range) {
  const auto top = static_cast<float>((1 << bits) - 1);
  return EncodeUnsignedBy(group, bits, {(range.high - range.low) / top, range.low});
}

GroupScale EncodeUnsignedBy(const Group& group, int bits, GroupScale exact) {
  const int top = (1 << bits) - 1;
  const float scale = RoundToFiniteF16(exact.scale);
  const float offset = RoundToFiniteF16(exact.offset);
  for (int i = 0; i < group.n; ++i) {
    const int code = scale == 0 ? 0 : RoundToRange((group.x[i] - offset) / scale, 0, top);
    group.codes[i] = static_cast<uint8_t>(code);
  }
  return {scale, offset};
}

void EncodeUnsigned(const SideFormat& format, const float* x, int first, CodedSide out) {
  const float clip = ClipOf(format);
  ForEachGroup(format, x, first, out, [&](const Group& group) {
    const int bits = format.planes() ? out.widths[group.index / 4] : format.bits;
    return format.tunes.mse ? EncodeUnsignedLeastError(group, bits)
                            : EncodeUnsignedGroup(group, bits, ClippedRange(group, clip));
  });
}

void EncodeSigned(const SideFormat& format, const float* x, int first, CodedSide out) {
  const float clip = ClipOf(format);
  ForEachGroup(format, x, first, out, [&](const Group& group) {
    const float largest = AbsMax(group.x, group.n);
    if (!format.tunes.mse) return EncodeSignedGroup(group, format.bits, clip * largest);
    return EncodeLeastError(
        group, format.bits, SignedLevels(format.bits), {-largest, largest},
        [&](ValueRange range) { return EncodeSignedGroup(group, format.bits, range.high); });
  });
}

}  // namespace shorthand
