// Groups: the values that share a scale, handed to a codec one group at a time and contiguous.
//
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_GROUPS_H_
#define SHORTHAND_QUANT_GROUPS_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "quant/format.h"
#include "quant/reduce.h"

namespace shorthand {

struct Group {
  const float* x;  // [n]
  int n;
  Order order;     // of reductions over the group
  uint8_t* codes;  // [n], to be filled
  int index;       // of the token or channel that has the scale
};

struct GroupScale {
  float scale = 0;
  float offset = 0;
};

namespace internal {

// Along channels: a group is contiguous in a row.
template <typename Encode>
void ForEachTokenGroup(const SideFormat& format, const float* x, int first, CodedSide out,
                       Encode encode) {
  for (int t = first; t < kPageTokens; ++t) {
    for (int g = 0; g < format.groups(); ++g) {
      const int at = t * format.padded_dim + g * format.group;
      const GroupScale s = encode(Group{x + at, format.group, Order::kLanes, out.codes + at, t});
      out.scales[g * kPageTokens + t] = s.scale;
      if (format.has_offset) out.offsets[g * kPageTokens + t] = s.offset;
    }
  }
}

// Along tokens: a group is a piece of a column, gathered and scattered.
template <typename Encode>
void ForEachChannelGroup(const SideFormat& format, const float* x, int first, CodedSide out,
                         Encode encode) {
  const int stride = format.padded_dim;
  float column[kPageTokens];
  uint8_t codes[kPageTokens];
  for (int g = 0; g < format.groups(); ++g) {
    const int begin = std::max(first, g * format.group), end = (g + 1) * format.group;
    if (begin >= end) continue;
    for (int c = 0; c < format.dim; ++c) {
      for (int t = begin; t < end; ++t) column[t - begin] = x[t * stride + c];
      const GroupScale s = encode(Group{column, end - begin, Order::kSequential, codes, c});
      for (int t = begin; t < end; ++t) out.codes[t * stride + c] = codes[t - begin];
      out.scales[g * stride + c] = s.scale;
      if (format.has_offset) out.offsets[g * stride + c] = s.offset;
    }
  }
}

}  // namespace internal

// Calls encode(Group) -> GroupScale for every group that has a token from `first` on.
template <typename Encode>
void ForEachGroup(const SideFormat& format, const float* x, int first, CodedSide out,
                  Encode encode) {
  if (format.axis == Axis::kChannel) {
    internal::ForEachChannelGroup(format, x, first, out, encode);
  } else {
    internal::ForEachTokenGroup(format, x, first, out, encode);
  }
}

// The factor that narrows a group's range.
inline float ClipOf(const SideFormat& format) {
  return format.tunes.clip.millionths == 0 ? 1.0f : static_cast<float>(format.tunes.clip.value());
}

// Least and largest value of a group, each times `clip`. A zero is positive, whatever the signs and
// the order of the zeros among the values.
struct ValueRange {
  float low;
  float high;
};
inline ValueRange ClippedRange(const Group& group, float clip) {
  return {clip * (0.0f + Min(group.x, group.n)), clip * (0.0f + Max(group.x, group.n))};
}

// The integer nearest to x, ties to even. REQUIRES: |x| < 2^22.
inline int RoundToInt(float x) {
  constexpr float kMagic = 0x1.8p23f;  // its unit in the last place is 1
  return std::bit_cast<int32_t>(x + kMagic) - std::bit_cast<int32_t>(kMagic);
}

// `x` rounded to an integer within [low, high]; NaN becomes low.
inline int RoundToRange(float x, int low, int high) {
  if (!(x > static_cast<float>(low))) return low;
  return x < static_cast<float>(high) ? RoundToInt(x) : high;
}

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_GROUPS_H_
