// uB and iB: equally spaced levels. docs/formats/uniform.md
#include "base/half.h"
#include "quant/codecs.h"
#include "quant/groups.h"

namespace shorthand {
void EncodeUnsigned(const SideFormat& format, const float* x, int first, CodedSide out) {
  const int top = (1 << format.bits) - 1;
  const float clip = ClipOf(format);
  ForEachGroup(format, x, first, out, [=](const Group& group) {
    const auto [low, high] = ClippedRange(group, clip);
    const float scale = RoundToFiniteF16((high - low) / static_cast<float>(top));
    const float offset = RoundToFiniteF16(low);
    for (int i = 0; i < group.n; ++i) {
      const int code = scale == 0 ? 0 : RoundToRange((group.x[i] - offset) / scale, 0, top);
      group.codes[i] = static_cast<uint8_t>(code);
    }
    return GroupScale{scale, offset};
  });
}

void EncodeSigned(const SideFormat& format, const float* x, int first, CodedSide out) {
  const int middle = 1 << (format.bits - 1);
  const int top = middle - 1;
  const float clip = ClipOf(format);
  ForEachGroup(format, x, first, out, [=](const Group& group) {
    const float scale = RoundToFiniteF16(clip * AbsMax(group.x, group.n) / static_cast<float>(top));
    for (int i = 0; i < group.n; ++i) {
      const int level = scale == 0 ? 0 : RoundToRange(group.x[i] / scale, -top, top);
      group.codes[i] = static_cast<uint8_t>(level + middle);
    }
    return GroupScale{scale};
  });
}

}  // namespace shorthand
