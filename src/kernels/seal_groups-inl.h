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
  bool Contains(Span other) const { return other.begin >= begin && other.end <= end; }
};

// One side as the sealing kernels see it. What of it is in the working memory is [lane tiles]
// [positions][16] from `first_lane` and `first_position` on.
struct SealView {
  int lanes, positions;  // padded
  int first_lane, first_position;
  size_t tile_size;
  Span valid_lanes, valid_positions;
  bool per_lane;  // a scale for each lane of a group, else for each position
  bool in_turn;   // the group runs along tokens, which are added one after the other
  int group;
  int groups;

  int width() const { return per_lane ? lanes : positions; }  // scales of a group
  Span valid_width() const { return per_lane ? valid_lanes : valid_positions; }
  // Where 16 elements stand.
  size_t At(int lane, int position) const {
    return (lane - first_lane) / kLanes * tile_size +
           static_cast<size_t>(position - first_position) * kLanes;
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
  view.first_lane = view.first_position = 0;
  view.tile_size = SealTileFloats(SealWindowOf(job).positions);
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

// A group of 16 scales as a walk over vectors: 16 scales on the lanes and one position after the
// other, or 16 positions, each of them a row of lane tiles.
struct GroupWalk {
  Span span;     // along the group
  size_t start;  // of position 0, or of lane tile 0
  size_t step;   // to the next position, or to the next lane tile

  GroupWalk(const SealView& view, int g, int at)
      : span(view.GroupSpan(g)),
        start(view.per_lane ? view.At(at, 0) : view.At(0, at)),
        step(view.per_lane ? kLanes : view.tile_size) {}
};

// Calls f(number, where) for what a span along the lanes has of lane tiles: f(tile, nothing) for
// whole ones, f(tile, mask) for others.
struct Whole {};
template <typename Function>
inline void ForEachLaneTile(Span span, Function f) {
  int tile = span.begin / kLanes;
  if (span.begin % kLanes != 0 && span.begin < span.end) {
    f(tile, LanesWithin(span, tile * kLanes));
    ++tile;
  }
  for (; (tile + 1) * kLanes <= span.end; ++tile) f(tile, Whole{});
  if (tile * kLanes < span.end) f(tile, LanesWithin(span, tile * kLanes));
}
inline F32 ChooseLanes(Whole, F32 yes, F32) { return yes; }
inline F32 ChooseLanes(U32 mask, F32 yes, F32 no) { return Choose(mask, yes, no); }

// Folds what term(where, scale) gives for every vector of the g-th group, for the 16 scales from
// `at` on, as quant/reduce.h folds over channels: 16 strided results, then a tree. `scale` is the
// one of 16 that the vector belongs to; 0 where each lane has its own.
template <typename Term, typename Fold>
inline F32 FoldStrided(const SealView& view, int g, int at, F32 neutral, Term term, Fold fold) {
  const GroupWalk walk(view, g, at);
  const Span span = walk.span;
  F32 results[kLanes];
  if (view.per_lane) {
    for (F32& r : results) r = neutral;
    int p = span.begin;
    for (; p + kLanes <= span.end; p += kLanes) {
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        results[i] = fold(results[i], term(walk.start + (p + i) * walk.step, 0));
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (p + i < span.end) {
        results[i] = fold(results[i], term(walk.start + (p + i) * walk.step, 0));
      }
    }
    return FoldTree(results, fold);
  }
  // Rows whose chains of folds run side by side.
  constexpr int kRows = kAccumulators < kLanes ? 4 : kLanes;
  for (int row = 0; row < kLanes; row += kRows) {
    F32 folded[kRows];
    for (F32& f : folded) f = neutral;
    ForEachLaneTile(span, [&](int tile, auto lanes) {
      const size_t start = walk.start + tile * walk.step + row * kLanes;
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const F32 terms = term(start + i * kLanes, row + i);
        folded[i] = fold(folded[i], ChooseLanes(lanes, terms, neutral));
      }
    });
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) results[row + i] = folded[i];
  }
  Transpose(results);
  return FoldTree(results, fold);
}

// The same, as over tokens: one after the other.
template <typename Term, typename Fold>
inline F32 FoldInTurn(const SealView& view, int g, int at, F32 neutral, Term term, Fold fold) {
  const GroupWalk walk(view, g, at);
  const Span span = walk.span;
  F32 result = neutral;
  if (view.per_lane) {
    for (int p = span.begin; p < span.end; ++p) {
      result = fold(result, term(walk.start + p * walk.step, 0));
    }
    return result;
  }
  for (int first = span.begin / kLanes * kLanes; first < span.end; first += kLanes) {
    F32 terms[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      terms[i] = term(walk.start + first / kLanes * walk.step + i * kLanes, i);
    }
    Transpose(terms);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (first + i >= span.begin && first + i < span.end) result = fold(result, terms[i]);
    }
  }
  return result;
}

struct Extremes {
  F32 low, high;
};

// Least and largest value of the g-th group for the 16 scales from `at` on. Infinite, with low
// above high, for an empty group. Zeros of both signs: the order of folding decides.
inline Extremes ExtremesOf(const SealView& view, const float* x, int g, int at) {
  const F32 infinity = Set(__builtin_inff()), minus_infinity = Set(-__builtin_inff());
  const auto value = [x](size_t i, int) { return Load(x + i); };
  return {FoldStrided(view, g, at, infinity, value, [](F32 a, F32 b) { return Min(b, a); }),
          FoldStrided(view, g, at, minus_infinity, value, [](F32 a, F32 b) { return Max(b, a); })};
}

// Of the g-th group's values the first of those with the largest magnitude.
inline F32 LoudestOf(const SealView& view, const float* x, int g, int at) {
  return FoldInTurn(
      view, g, at, Set(0.0f), [x](size_t i, int) { return Load(x + i); },
      [](F32 loudest, F32 value) {
        return IfLess(Magnitude(loudest), Magnitude(value), value, loudest);
      });
}

// Sums of term(where, scale) over the g-th group for the 16 scales from `at` on: as over channels,
// or as the view says.
template <typename Term>
inline F32 SumStrided(const SealView& view, int g, int at, Term term) {
  return FoldStrided(view, g, at, Set(0.0f), term, [](F32 x, F32 y) { return Add(x, y); });
}
template <typename Term>
inline F32 SumOf(const SealView& view, int g, int at, Term term) {
  if (!view.in_turn) return SumStrided(view, g, at, term);
  return FoldInTurn(view, g, at, Set(0.0f), term, [](F32 x, F32 y) { return Add(x, y); });
}

// Sums of a * b.
inline F32 DotOf(const SealView& view, const float* a, const float* b, int g, int at) {
  return SumOf(view, g, at, [a, b](size_t i, int) { return Mul(Load(a + i), Load(b + i)); });
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SEAL_GROUPS_INL_H_
