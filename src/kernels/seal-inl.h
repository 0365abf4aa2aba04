// Sealing one side of a page: steps, scales, codes, metadata; the bytes that the codecs of
// src/quant write. Compiled per target, after that target's ops file.
//
// Every float operation is the codec's own, in its order: divisions are divisions, products are
// rounded before they are added.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_SEAL_INL_H_
#define SHORTHAND_KERNELS_SEAL_INL_H_

#include "kernels/seal_codes-inl.h"
#include "kernels/seal_groups-inl.h"
#include "kernels/seal_steps-inl.h"

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
  float* means;         // [padded_dim]
  uint16_t* mean;       // the same in f16

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
    means = take(job.padded_dim);
    mean = reinterpret_cast<uint16_t*>(take(job.padded_dim));
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

// Scales, offsets and units of the 16 scales at `i` that follow from the group's extremes.
inline void ScalesFromExtremes(const SealJob& job, const Extremes& extremes, U32 mask, int i,
                               const SealScratch& s) {
  // Adding 0 gives a zero its positive sign.
  const F32 clip = Set(job.clip), zero = Set(0.0f);
  const F32 least = Add(extremes.low, zero), most = Add(extremes.high, zero);
  const F32 low = Mul(clip, least), high = Mul(clip, most);
  const F32 magnitude = Max(most, Sub(zero, least));
  const int top = (1 << job.bits) - 1;
  F32 scale = zero, offset = zero;
  switch (job.rule) {
    case SealRule::kUnsigned:
      scale = Div(Sub(high, low), Set(static_cast<float>(top)));
      offset = low;
      break;
    case SealRule::kRangeNormalised:
      scale = Mul(Div(Sub(high, low), Set(2.0f)), Set(job.step));
      offset = Div(Add(high, low), Set(2.0f));
      break;
    case SealRule::kSigned:
      scale = Div(Mul(clip, magnitude), Set(static_cast<float>(top / 2)));
      break;
    default:
      scale = Mul(magnitude, Set(job.step));
  }
  StoreUnit(StoreScale(scale, mask, s.stored[0] + i), i, s);
  Store(StoreScale(offset, mask, s.stored[1] + i), s.offsets + i);
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
  const F32 level_squares = DotOf(any_order, s.chosen, s.chosen, g, at);
  const F32 scale = job.norm ? Sqrt(Div(squares, level_squares))
                             : Div(DotOf(view, s.x, s.chosen, g, at), level_squares);
  StoreScale(IfLess(zero, squares, scale, zero), mask, s.stored[0] + i);
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

inline void ChooseUnits(const SealJob& job, const SealView& view, Span scales,
                        const SealScratch& s) {
  ForEachScales(view, scales, [&](int g, int at, U32 mask) {
    const int i = g * view.width() + at;
    if (job.rule == SealRule::kLloydMax) {
      const Span span = view.GroupSpan(g);
      UnitsFromSquares(job, DotOf(view, s.x, s.x, g, at), static_cast<float>(span.end - span.begin),
                       i, s);
    } else {
      ScalesFromExtremes(job, ExtremesOf(view, s.x, g, at), mask, i, s);
    }
  });
}

// Scales and codes of the scales [begin, end) of every group.
template <typename Coder>
inline void SealScales(const SealJob& job, const SealView& view, const Coder& coder, Span scales,
                       const SealScratch& s, uint8_t* codes) {
  ChooseUnits(job, view, scales, s);
  const CodeTask task = {
      s.x, s.offsets, s.units, s.inverses, job.bits, job.zero_code * 0x01010101u, codes};
  CodeScales(view, task, coder, scales);
  if (job.rule != SealRule::kLloydMax) return;
  ForEachScales(view, scales,
                [&](int g, int at, U32 mask) { FitScales(job, view, mask, g, at, s); });
}

inline void WriteHalves(const uint16_t* from, int count, uint8_t** to) {
  __builtin_memcpy(*to, from, count * sizeof(uint16_t));
  *to += count * sizeof(uint16_t);
}

// Mean, scales and offsets in the order of docs/formats/page.md, zeros to the end of the line.
inline void WriteMeta(const SealJob& job, const SealView& view, const SealScratch& s,
                      uint8_t* meta) {
  uint8_t* to = meta;
  if (job.mean) WriteHalves(s.mean, job.padded_dim, &to);
  const bool has_offset = job.rule == SealRule::kUnsigned || job.rule == SealRule::kRangeNormalised;
  const int width = view.width();
  const int run = job.key && !job.per_channel ? 2 * kLanes : width;
  for (int start = 0; start < width; start += run) {
    for (int g = 0; g < view.groups; ++g) {
      for (int part = 0; part < (has_offset ? 2 : 1); ++part) {
        WriteHalves(s.stored[part] + g * width + start, run, &to);
      }
    }
  }
  while ((to - meta) % kLine != 0) *to++ = 0;
}

inline void Steps(const SealJob& job, const SealView& view, const uint16_t* exact, Span tokens,
                  Span channels, const SealScratch& s) {
  if (job.key) {
    KeySteps(job, view, exact, s.means, tokens, channels, s.x);
  } else {
    ValueSteps(job, view, exact, tokens, channels, s.x);
  }
}

// Seals one side, exact f16 elements [8][padded_dim][16] (keys) or [128][padded_dim] (values),
// kSealChunk scales at a time.
template <typename Coder>
inline void SealBy(const SealJob& job, const Coder& coder, const uint16_t* exact, uint8_t* meta,
                   uint8_t* codes, const SealScratch& s) {
  SealView view = ViewOf(job);
  if (job.mean) KeyMeans(exact, job.padded_dim, job.first_token, s.means, s.mean);
  for (int c = 0; c < job.padded_dim; c += kLanes) {
    Store(job.mean ? LoadF16(s.mean + c) : Set(0.0f), s.means + c);
  }
  const Span tokens = {0, kPageSlots}, channels = {0, job.padded_dim};
  if (SealsAtOnce(job)) Steps(job, view, exact, tokens, channels, s);
  for (int first = 0; first < view.width(); first += kSealChunk) {
    const int left = view.width() - first;
    const Span scales = {first, first + (left < kSealChunk ? left : kSealChunk)};
    if (!SealsAtOnce(job)) {
      (view.per_lane ? view.first_lane : view.first_position) = first;
      Steps(job, view, exact, job.per_channel ? tokens : scales,
            job.per_channel ? scales : channels, s);
    }
    SealScales(job, view, coder, scales, s, codes);
  }
  WriteMeta(job, view, s, meta);
}

void Seal(const SealJob& job, const void* exact, uint8_t* meta, uint8_t* codes, float* scratch) {
  const SealScratch s(job, scratch);
  const auto* elements = static_cast<const uint16_t*>(exact);
  if (job.levels == nullptr) return SealBy(job, UniformCoder(job), elements, meta, codes, s);
  const bool fitted = job.rule == SealRule::kLloydMax;
  SealBy(job, TableCoder(job, fitted ? s.chosen : nullptr), elements, meta, codes, s);
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SEAL_INL_H_
