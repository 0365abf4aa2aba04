// wN: channels with widths of their own. docs/formats/planes.md
#include "quant/codecs.h"
#include "quant/groups.h"

namespace shorthand {
namespace {

constexpr int kMaxClippedBits = 3;

}  // namespace

void EncodeWater(const SideFormat& format, const float* x, int first, CodedSide out) {
  ForEachGroup(format, x, first, out, [&](const Group& group) {
    const int bits = out.widths[group.index / 4];
    return bits <= kMaxClippedBits ? EncodeUnsignedLeastError(group, bits)
                                   : EncodeUnsignedGroup(group, bits, ClippedRange(group, 1));
  });
}

}  // namespace shorthand
