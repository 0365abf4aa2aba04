// Sealing, the scales: what groups have in common becomes scales, offsets, and units to divide by.
// Compiled per target, after that target's ops file.
//
// Every float operation is the codec's own, in its order: divisions are divisions, products are
// rounded before they are added.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_SEAL_SCALES_INL_H_
#define SHORTHAND_KERNELS_SEAL_SCALES_INL_H_

#include "kernels/seal_coders-inl.h"
#include "kernels/seal_groups-inl.h"
#include "kernels/seal_steps-inl.h"
#include "kernels/unpack-inl.h"

namespace shorthand {
namespace {

// The working memory of a seal, cut out of one buffer.
struct SealScratch {
  float* x;       // as SealView places elements
  float* chosen;  // same shape: the levels of the codes
  float* units;   // [groups][width], as all up to the means
  float* inverses;
  float* offsets;
  float* squares;       // sums of squares
  uint16_t* stored[2];  // scales and offsets in f16
  KeyFactors keys;      // each [padded_dim]
  uint16_t* order;      // of a page that promotes channels: [padded_dim]
  uint8_t* widths;      // likewise: [padded_dim / 4]

  SealScratch(const SealJob& job, float* at) {
    const auto take = [&at](size_t floats) {
      float* piece = at;
      at += floats;
      return piece;
    };
    const size_t slots = SealWindowFloats(job);
    const size_t scales = SealScaleCount(job);
    x = take(slots);
    chosen = take(slots);
    units = take(scales);
    inverses = take(scales);
    offsets = take(scales);
    squares = take(scales);
    for (auto& part : stored) part = reinterpret_cast<uint16_t*>(take(scales));
    const auto take_channels = [&] { return take(job.padded_dim); };
    keys.means = take_channels();
    keys.smooth = take_channels();
    keys.inverse_smooth = take_channels();
    keys.mean_f16 = reinterpret_cast<uint16_t*>(take_channels());
    keys.smooth_f16 = reinterpret_cast<uint16_t*>(take_channels());
    order = reinterpret_cast<uint16_t*>(take_channels());
    widths = reinterpret_cast<uint8_t*>(order + job.padded_dim);
  }
};

// Stores the f16 nearest to x, zero outside `mask`, and returns it widened again.
inline F32 StoreScale(F32 x, U32 mask, uint16_t* p) {
  StoreFiniteF16(Choose(mask, x, Set(0.0f)), p);
  return LoadF16(p);
}

// What values are divided by, and its inverse: with both 0 all values are taken for zero.
inline void StoreUnit(F32 unit, int i, const SealScratch& s) {
  const F32 zero = Set(0.0f);
  Store(unit, s.units + i);
  Store(IfLess(zero, unit, Div(Set(1.0f), unit), zero), s.inverses + i);
}

// Scale, offset and unit of the 16 groups whose scales stand at `i`.
inline void StoreScales(F32 scale, F32 offset, U32 mask, int i, const SealScratch& s) {
  StoreUnit(StoreScale(scale, mask, s.stored[0] + i), i, s);
  Store(StoreScale(offset, mask, s.stored[1] + i), s.offsets + i);
}

// What levels have to cover, from a group's extremes: about zero where there is no offset.
inline Extremes RangeOf(const SealJob& job, const Extremes& extremes) {
  // Adding 0 gives a zero its positive sign.
  const F32 clip = Set(job.clip), zero = Set(0.0f);
  const F32 least = Add(extremes.low, zero), most = Add(extremes.high, zero);
  if (HasOffset(job)) return {Mul(clip, least), Mul(clip, most)};
  const F32 magnitude = Mul(clip, Max(most, Sub(zero, least)));
  return {Sub(zero, magnitude), magnitude};
}

// A range narrowed about its middle.
inline Extremes Narrowed(const Extremes& range, F32 ratio) {
  const F32 one = Set(1.0f), two = Set(2.0f);
  const F32 middle = Div(Add(range.low, range.high), two);
  const F32 part = Mul(Div(Sub(range.high, range.low), two), ratio);
  return {IfLess(ratio, one, Sub(middle, part), range.low),
          IfLess(ratio, one, Add(middle, part), range.high)};
}

inline constexpr int kQuad = 4;  // places that share a width

// What follows from the width at each of 16 places: of(width).
template <typename OfWidth>
inline F32 AtPlaces(const SealJob& job, int place, OfWidth of) {
  float numbers[kLanes];
  for (int i = 0; i < kLanes; ++i) numbers[i] = of(job.widths[(place + i) / kQuad]);
  return Load(numbers);
}

// The largest codes of uB and wN, of the scales from `at` on.
inline F32 TopCodes(const SealJob& job, int at) {
  const auto top = [](int bits) { return static_cast<float>((1 << bits) - 1); };
  return job.widths == nullptr ? Set(top(job.bits)) : AtPlaces(job, at, top);
}

// Scales of the g-th group that follow from the range.
inline void ScalesFromRange(const SealJob& job, const SealView& view, const Extremes& range,
                            U32 mask, int g, int at, const SealScratch& s) {
  const auto [low, high] = range;
  const F32 zero = Set(0.0f);
  const int i = g * view.width() + at;
  switch (job.rule) {
    case SealRule::kUnsigned:
      return StoreScales(Div(Sub(high, low), TopCodes(job, at)), low, mask, i, s);
    case SealRule::kRangeNormalised:
      return StoreScales(Mul(Div(Sub(high, low), Set(2.0f)), Set(job.step)),
                         Div(Add(high, low), Set(2.0f)), mask, i, s);
    case SealRule::kSigned:
      return StoreScales(Div(high, Set(static_cast<float>((1 << (job.bits - 1)) - 1))), zero, mask,
                         i, s);
    default:
      return StoreScales(Mul(high, Set(job.step)), zero, mask, i, s);
  }
}

// What the codes of the 16 groups whose scales stand at `i` leave of their values, squared and
// summed.
template <bool kPerLane, typename Coder>
inline F32 ErrorOf(const SealView& view, const Coder& coder, int g, int at, int i,
                   const SealScratch& s) {
  return SumOf(view, g, at, [&](size_t where, int scale) {
    const int from = i + scale;
    const Unit unit = {Factor<kPerLane>(s.offsets + from), Factor<kPerLane>(s.units + from),
                       Factor<kPerLane>(s.inverses + from)};
    const F32 x = Load(s.x + where);
    const F32 error = Sub(x, Fma(unit.size, coder.Level(coder(x, unit, where)), unit.offset));
    return Mul(error, error);
  });
}

// Scales that follow from the range, narrowed about its middle by the first of the job's ratios
// that leaves the least error.
template <typename Coder>
inline void ScalesOfLeastError(const SealJob& job, const SealView& view, const Coder& coder,
                               const Extremes& range, U32 mask, int g, int at,
                               const SealScratch& s) {
  const int i = g * view.width() + at;
  F32 best = Set(1.0f), least = Set(__builtin_inff());
  for (int r = 0; r < job.ratio_count; ++r) {
    const F32 ratio = Set(job.ratios[r]);
    ScalesFromRange(job, view, Narrowed(range, ratio), mask, g, at, s);
    const F32 error = view.per_lane ? ErrorOf<true>(view, coder, g, at, i, s)
                                    : ErrorOf<false>(view, coder, g, at, i, s);
    best = IfLess(error, least, ratio, best);
    least = IfLess(error, least, error, least);
  }
  ScalesFromRange(job, view, Narrowed(range, best), mask, g, at, s);
}

// ggml's blocks of a group: codes by the inverse of the scale before it is rounded, which counts as
// 0 if it is not finite, and by the offset before it is rounded.
inline void BlockScales(const SealJob& job, const SealView& view, U32 mask, int g, int at,
                        const SealScratch& s) {
  const int i = g * view.width() + at, middle = 1 << (job.bits - 1);
  const F32 zero = Set(0.0f);
  F32 scale, offset = zero;
  if (job.rule == SealRule::kBlockCentred) {
    scale = Div(LoudestOf(view, s.x, g, at), Set(static_cast<float>(-middle)));
  } else {
    const Extremes extremes = ExtremesOf(view, s.x, g, at);
    if (job.rule == SealRule::kBlockSigned) {
      const F32 magnitude = Max(extremes.high, Sub(zero, extremes.low));
      scale = Div(magnitude, Set(static_cast<float>(middle - 1)));
    } else {
      scale = Div(Sub(extremes.high, extremes.low), Set(static_cast<float>(2 * middle - 1)));
      offset = extremes.low;
    }
  }
  const F32 inverse = Div(Set(1.0f), scale);
  Store(IfLess(Magnitude(inverse), Set(__builtin_inff()), inverse, zero), s.inverses + i);
  Store(offset, s.offsets + i);
  StoreScale(scale, mask, s.stored[0] + i);
  StoreScale(offset, mask, s.stored[1] + i);
}

// Calls f(g, at, mask) for every 16 of the scales [begin, end) of every group; `mask` has those
// that are stored.
template <typename Function>
inline void ForEachScales(const SealView& view, Span scales, Function f) {
  for (int g = 0; g < view.groups; ++g) {
    const Span span = view.GroupSpan(g);
    for (int at = scales.begin; at < scales.end; at += kLanes) {
      f(g, at, span.begin < span.end ? LanesWithin(view.valid_width(), at) : SetBits(0));
    }
  }
}

// kE4m3, kE5m2: the page's scale, for every token.
inline SealResult PageScale(const SealJob& job, const SealView& view, float largest_code,
                            const SealScratch& s) {
  const F32 zero = Set(0.0f);
  F32 top = zero, clipped = zero;
  ForEachScales(view, {0, kPageSlots}, [&](int g, int at, U32 mask) {
    const Extremes extremes = ExtremesOf(view, s.x, g, at);
    top = Max(Choose(mask, Max(extremes.high, Sub(zero, extremes.low)), zero), top);
    if (job.page_scale == 0) return;
    const auto beyond = [&](size_t i, int) {
      const F32 y = Div(Load(s.x + i), Set(job.page_scale));
      return IfLess(Set(largest_code), Magnitude(y), Set(1.0f), zero);
    };
    const auto add = [](F32 a, F32 b) { return Add(a, b); };
    clipped = Add(clipped, Choose(mask, FoldStrided(view, g, at, zero, beyond, add), zero));
  });
  const float scale = job.page_scale > 0 ? job.page_scale : MaxOfLanes(top) / largest_code;
  for (int i = 0; i < kPageSlots; i += kLanes) {
    StoreUnit(Set(scale), i, s);
    Store(zero, s.offsets + i);
  }
  return {scale, static_cast<uint32_t>(SumOfLanes(clipped))};
}

// kLloydMax: units before the codes are chosen.
inline void UnitsFromSquares(const SealJob& job, F32 squares, float count, int i,
                             const SealScratch& s) {
  const F32 sigma = Sqrt(Div(squares, Set(count)));
  StoreUnit(Mul(sigma, Set(job.step)), i, s);
  Store(Set(0.0f), s.offsets + i);
  Store(squares, s.squares + i);
}

// kLloydMax: scales fitted to the levels chosen; 0 where all values are.
inline void FitScales(const SealJob& job, const SealView& view, U32 mask, int g, int at,
                      const SealScratch& s) {
  const int i = g * view.width() + at;
  const F32 squares = Load(s.squares + i), zero = Set(0.0f);
  // Levels are integers up to 63: sums of up to 1024 squares are exact in any order.
  SealView any_order = view;
  any_order.in_turn = false;
  const auto level_squares = [&] { return DotOf(any_order, s.chosen, s.chosen, g, at); };
  const auto product = [&] { return DotOf(view, s.x, s.chosen, g, at); };
  const F32 scale = job.fit == SealFit::kNorm       ? Sqrt(Div(squares, level_squares()))
                    : job.fit == SealFit::kUnbiased ? Div(squares, product())
                                                    : Div(product(), level_squares());
  StoreScale(IfLess(zero, squares, scale, zero), mask, s.stored[0] + i);
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SEAL_SCALES_INL_H_
