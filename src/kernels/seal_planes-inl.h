// Sealing, channels of keys with widths of their own: which a page promotes, their order, the fit
// of wN, codes to planes. docs/formats/planes.md. Compiled per target, after that target's ops
// file.
//
// The places of the coded space are the positions of a SealView.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_SEAL_PLANES_INL_H_
#define SHORTHAND_KERNELS_SEAL_PLANES_INL_H_

#include "kernels/seal_codes-inl.h"
#include "kernels/seal_scales-inl.h"

namespace shorthand {
namespace {

// hiX: the page's own order and widths, from the sums of each channel's magnitudes.
inline void ChoosePlanes(const SealJob& job, const float* loudness, const SealScratch& s) {
  bool promoted[kMaxDim] = {};
  for (int n = 0; n < job.promoted; ++n) {
    int loudest = -1;
    for (int c = 0; c < job.dim; ++c) {
      if (promoted[c]) continue;
      if (loudest < 0 || loudness[c] > loudness[loudest]) loudest = c;
    }
    promoted[loudest] = true;
  }
  uint16_t* first = s.order;
  uint16_t* rest = s.order + job.promoted;
  for (int c = 0; c < job.padded_dim; ++c) {
    *(promoted[c] ? first++ : rest++) = static_cast<uint16_t>(c);
  }
  for (int p = 0; p < job.padded_dim; p += kQuad) {
    s.widths[p / kQuad] = static_cast<uint8_t>(p < job.promoted ? 2 * job.bits : job.bits);
  }
}

// Channels to their places, by way of s.chosen. REQUIRES: all of the side is in s.x.
inline void Reorder(const SealJob& job, const SealView& view, const SealScratch& s) {
  for (int lane = 0; lane < view.lanes; lane += kLanes) {
    float* x = s.x + view.At(lane, 0);
    for (int p = 0; p < view.positions; ++p) Store(Load(x + p * kLanes), s.chosen + p * kLanes);
    for (int p = 0; p < view.positions; ++p) {
      Store(Load(s.chosen + job.order[p] * kLanes), x + p * kLanes);
    }
  }
}

// Scales and offsets of 16 places.
struct Lines {
  F32 scale, offset;
};

// Sums over the tokens of 16 places, token t in lane t mod 16.
struct CodeSums {
  F32 codes[kLanes], squares[kLanes], products[kLanes];  // products of codes and values
};

// The sums of one place, whose codes up to `top` are fma(x, inverse, start) rounded.
inline void SumCodes(const SealView& view, const float* x, Span tokens, F32 inverse, F32 start,
                     F32 top, int i, CodeSums* sums) {
  const F32 zero = Set(0.0f);
  F32 codes = zero, squares = zero, products = zero;
  ForEachLaneTile(tokens, [&](int tile, auto lanes) {
    const F32 value = ChooseLanes(lanes, Load(x + tile * view.tile_size), zero);
    const F32 steps = Min(Max(Fma(value, inverse, start), zero), top);
    const F32 code = ChooseLanes(lanes, Convert(Round(steps)), zero);
    codes = Add(codes, code);
    squares = Fma(code, code, squares);  // exact: integers
    products = Fma(value, code, products);
  });
  sums->codes[i] = codes;
  sums->squares[i] = squares;
  sums->products[i] = products;
}

// Lines of least squared error through the codes that `lines` make at the 16 places from `at` on;
// the same as before where there are none, and where the width asks for no fit.
//   sum: of the values
inline Lines LinesThroughCodes(const SealJob& job, const SealView& view, int at, F32 sum,
                               const Lines& lines, const SealScratch& s) {
  const F32 zero = Set(0.0f), one = Set(1.0f);
  const Span tokens = view.GroupSpan(0);
  float inverses[kLanes], starts[kLanes];
  const F32 inverse = IfLess(zero, lines.scale, Div(one, lines.scale), zero);
  Store(inverse, inverses);
  Store(Sub(zero, Mul(lines.offset, inverse)), starts);
  CodeSums sums;
  for (int i = 0; i < kLanes; ++i) {
    const int width = job.widths[(at + i) / kQuad];
    const Span span = job.first_ratios[width] < 1 ? tokens : Span{0, 0};
    SumCodes(view, s.x + view.At(0, at + i), span, Set(inverses[i]), Set(starts[i]),
             Set(static_cast<float>((1 << width) - 1)), i, &sums);
  }
  const F32 n = Set(static_cast<float>(tokens.end - tokens.begin));
  const F32 codes = SumsOfLanes(sums.codes);
  const F32 covariance = Sub(Mul(n, SumsOfLanes(sums.products)), Mul(sum, codes));
  const F32 variance = Sub(Mul(n, SumsOfLanes(sums.squares)), Mul(codes, codes));
  const F32 scale = Div(covariance, variance), offset = Div(Sub(sum, Mul(scale, codes)), n);
  const auto if_fitted = [&](F32 yes, F32 no) {
    return IfLess(zero, covariance, IfLess(zero, variance, yes, no), no);
  };
  return {if_fitted(scale, lines.scale), if_fitted(offset, lines.offset)};
}

// kWater: scales and offsets of the 16 places from `at` on, whose values lie in `range`.
inline void FitPlaces(const SealJob& job, const SealView& view, const Extremes& range, U32 mask,
                      int at, const SealScratch& s) {
  const F32 ratio = AtPlaces(job, at, [&](int width) { return job.first_ratios[width]; });
  const auto [low, high] = Narrowed(range, ratio);
  Lines lines = {Div(Sub(high, low), TopCodes(job, at)), low};
  bool any = false;
  for (int i = 0; i < kLanes; i += kQuad) any |= job.first_ratios[job.widths[(at + i) / kQuad]] < 1;
  if (any) {
    const F32 sum = SumStrided(view, 0, at, [&](size_t i, int) { return Load(s.x + i); });
    for (int round = 0; round < job.fit_rounds; ++round) {
      lines = LinesThroughCodes(job, view, at, sum, lines, s);
    }
  }
  StoreScales(lines.scale, lines.offset, mask, at, s);
}

// The codes of places [begin, end), in whole quads: the eight token tiles of a quad are packed
// together.
template <typename Coder>
inline void CodePlanes(const SealJob& job, const SealView& view, const CodeTask& task,
                       const Coder& any_width, Span places) {
  const U32 zero = SetBits(task.zero_word);
  uint8_t* lines = task.lines;
  for (int p = 0; p < places.begin; p += kQuad) lines += job.widths[p / kQuad] * kLine;
  for (int p = places.begin; p < places.end; p += kQuad) {
    const int width = job.widths[p / kQuad];
    const Coder coder = any_width.OfWidth(width);
    const bool whole =
        view.valid_lanes.Contains({0, view.lanes}) && view.valid_positions.Contains({p, p + kQuad});
    U32 tiles[kGroupTiles];
    for (int g = 0; g < view.groups; ++g) {
      const TileUnits<false> units(view, task, g, 0, p);
      for (int lane = g * view.group; lane < (g + 1) * view.group; lane += kLanes) {
        const U32 codes = CodeTile(view, task, coder, units, lane, p);
        tiles[lane / kLanes] = whole ? codes : Masked(view, zero, codes, lane, p);
      }
    }
    PackTiles(width, tiles, lines);
    lines += width * kLine;
  }
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SEAL_PLANES_INL_H_
