// Sealing, second part: what a group's values have in common. Extremes, and sums in the order of
// quant/reduce.h: over channels in 16 strided lanes and a tree, over tokens one after the other.
// Compiled per target, after that target's ops file.
//
// The 16 lanes of a tile are tokens (keys) or channels (values), its positions the other axis. A
// group runs along the positions, so that each lane has a scale, or along the lanes, so that each
// position has one. In the latter case 16 positions are transposed at a time: either way results
// come as vectors over the scales of a group.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_SEAL_GROUPS_INL_H_
#define SHORTHAND_KERNELS_SEAL_GROUPS_INL_H_

#include "kernels/elements-inl.h"
#include "kernels/seal.h"

namespace shorthand {
namespace {

// [begin, end).
struct Span {
  int begin, end;
};

// One side as the sealing kernels see it, its arrays being [lanes / 16][positions][16].
struct SealView {
  int lanes, positions;  // padded
  Span valid_lanes, valid_positions;
  bool per_lane;  // a scale for each lane of a group, else for each position
  bool in_turn;   // the group runs along tokens, which are added one after the other
  int group;
  int groups;

  int width() const { return per_lane ? lanes : positions; }  // scales of a group
  Span valid_width() const { return per_lane ? valid_lanes : valid_positions; }
  size_t tile_size() const { return SealTileFloats(positions); }
  // Where 16 elements stand.
  size_t At(int lane, int position) const {
    return lane / kLanes * tile_size() + static_cast<size_t>(position) * kLanes;
  }
  // The group of a lane or position of the grouped axis; padding belongs to the last one.
  int GroupAt(int i) const { return i / group < groups ? i / group : groups - 1; }
  // Lanes or positions of the g-th group that take part.
  Span GroupSpan(int g) const {
    const Span valid = per_lane ? valid_positions : valid_lanes;
    const int begin = g * group, end = begin + group;
    return {begin > valid.begin ? begin : valid.begin, end < valid.end ? end : valid.end};
  }
};

inline SealView ViewOf(const SealJob& job) {
  SealView view;
  const Span tokens = {job.first_token, kPageSlots}, channels = {0, job.dim};
  view.lanes = job.key ? kPageSlots : job.padded_dim;
  view.positions = job.key ? job.padded_dim : kPageSlots;
  view.valid_lanes = job.key ? tokens : channels;
  view.valid_positions = job.key ? channels : tokens;
  view.per_lane = job.key != job.per_channel;
  view.in_turn = job.per_channel;
  view.group = job.group;
  view.groups = job.per_channel ? kPageSlots / job.group : job.dim / job.group;
  return view;
}

// All ones in the lanes of `span`, the first lane being number `lane`.
inline U32 LanesWithin(Span span, int lane) {
  const F32 number = Add(Iota(), Set(static_cast<float>(lane)));
  const F32 ones = FloatOf(SetBits(~0u)), none = FloatOf(SetBits(0));
  const F32 before_end = IfLess(number, Set(static_cast<float>(span.end)), ones, none);
  return BitsOf(IfLess(number, Set(static_cast<float>(span.begin)), none, before_end));
}
inline F32 Choose(U32 mask, F32 yes, F32 no) {
  return FloatOf(Xor(BitsOf(no), And(mask, Xor(BitsOf(yes), BitsOf(no)))));
}

// Folds 16 vectors: 0 with 8, 1 with 9, ..., then 0 with 4, and so on.
template <typename Fold>
inline F32 FoldTree(F32 (&v)[kLanes], Fold fold) {
#pragma GCC unroll 4
  for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) v[i] = fold(v[i], v[i + half]);
  }
  return v[0];
}

struct Extremes {
  F32 low, high;
};

// A group of 16 scales as a walk over vectors: 16 scales on the lanes and one position after the
// other, or 16 positions, each of them a row of lane tiles.
struct GroupWalk {
  Span span;     // along the group
  size_t start;  // of position 0, or of lane tile 0
  size_t step;   // to the next position, or to the next lane tile

  GroupWalk(const SealView& view, int g, int at)
      : span(view.GroupSpan(g)),
        start(view.per_lane ? view.At(at, 0) : view.At(0, at)),
        step(view.per_lane ? kLanes : view.tile_size()) {}
};

// Least and largest value of the g-th group for the 16 scales from `at` on. Infinite, with low
// above high, for an empty group.
inline Extremes ExtremesOf(const SealView& view, const float* x, int g, int at) {
  const GroupWalk walk(view, g, at);
  const Span span = walk.span;
  const F32 highest = Set(__builtin_inff()), lowest = Set(-__builtin_inff());
  F32 low[kLanes], high[kLanes];
  const auto fold = [&] {
    return Extremes{FoldTree(low, [](F32 a, F32 b) { return Min(a, b); }),
                    FoldTree(high, [](F32 a, F32 b) { return Max(a, b); })};
  };
  const float* from = x + walk.start;
  if (view.per_lane) {
    constexpr int kChains = 4;
    for (int i = 0; i < kLanes; ++i) low[i] = highest, high[i] = lowest;
    for (int p = span.begin; p < span.end; ++p) {
      const F32 value = Load(from + p * walk.step);
      low[p % kChains] = Min(value, low[p % kChains]);
      high[p % kChains] = Max(value, high[p % kChains]);
    }
    return fold();
  }
  const int first_tile = span.begin / kLanes, end_tile = (span.end + kLanes - 1) / kLanes;
  const int whole_end = span.end / kLanes;
  for (int i = 0; i < kLanes; ++i, from += kLanes) {
    F32 least = highest, largest = lowest;
    for (int tile = first_tile; tile < end_tile; ++tile) {
      const F32 value = Load(from + tile * walk.step);
      if (tile * kLanes >= span.begin && tile < whole_end) {
        least = Min(value, least);
        largest = Max(value, largest);
      } else {
        const U32 mask = LanesWithin(span, tile * kLanes);
        least = Min(Choose(mask, value, highest), least);
        largest = Max(Choose(mask, value, lowest), largest);
      }
    }
    low[i] = least;
    high[i] = largest;
  }
  Transpose(low);
  Transpose(high);
  return fold();
}

// Sums of a * b over the g-th group for the 16 scales from `at` on.
inline F32 DotOf(const SealView& view, const float* a, const float* b, int g, int at) {
  const GroupWalk walk(view, g, at);
  const Span span = walk.span;
  a += walk.start;
  b += walk.start;
  const auto add = [](F32 x, F32 y) { return Add(x, y); };
  F32 sum = Set(0.0f);
  if (view.per_lane && view.in_turn) {
    for (int p = span.begin; p < span.end; ++p) {
      sum = Add(sum, Mul(Load(a + p * walk.step), Load(b + p * walk.step)));
    }
    return sum;
  }
  F32 sums[kLanes];
  for (F32& s : sums) s = Set(0.0f);
  if (view.per_lane) {
    for (int p = span.begin; p < span.end; p += kLanes) {
      const int n = span.end - p < kLanes ? span.end - p : kLanes;
      for (int i = 0; i < n; ++i) {
        const size_t from = (p + i) * walk.step;
        sums[i] = Add(sums[i], Mul(Load(a + from), Load(b + from)));
      }
    }
    return FoldTree(sums, add);
  }
  const int first_tile = span.begin / kLanes, end_tile = (span.end + kLanes - 1) / kLanes;
  const int whole_end = span.end / kLanes;
  if (!view.in_turn) {
    for (int i = 0; i < kLanes; ++i, a += kLanes, b += kLanes) {
      F32 strided = Set(0.0f);
      for (int tile = first_tile; tile < end_tile; ++tile) {
        F32 term = Mul(Load(a + tile * walk.step), Load(b + tile * walk.step));
        if (tile * kLanes < span.begin || tile >= whole_end) {
          term = Choose(LanesWithin(span, tile * kLanes), term, Set(0.0f));
        }
        strided = Add(strided, term);
      }
      sums[i] = strided;
    }
    Transpose(sums);
    return FoldTree(sums, add);
  }
  for (int tile = first_tile; tile < end_tile; ++tile) {
    for (int i = 0; i < kLanes; ++i) {
      const size_t from = tile * walk.step + i * kLanes;
      sums[i] = Mul(Load(a + from), Load(b + from));
    }
    Transpose(sums);
    const int before = span.begin - tile * kLanes;
    for (int i = before > 0 ? before : 0; i < kLanes; ++i) sum = Add(sum, sums[i]);
  }
  return sum;
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SEAL_GROUPS_INL_H_
