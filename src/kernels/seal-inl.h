// Sealing one side of a page: steps, scales, codes, metadata; the bytes that the codecs of
// src/quant write. Compiled per target, after that target's ops file.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_SEAL_INL_H_
#define SHORTHAND_KERNELS_SEAL_INL_H_

#include "kernels/seal_codes-inl.h"
#include "kernels/seal_planes-inl.h"
#include "kernels/seal_scales-inl.h"

namespace shorthand {
namespace {

template <typename Coder>
inline void ChooseUnits(const SealJob& job, const SealView& view, const Coder& coder, Span scales,
                        const SealScratch& s) {
  ForEachScales(view, scales, [&](int g, int at, U32 mask) {
    const int i = g * view.width() + at;
    switch (job.rule) {
      case SealRule::kE4m3:
      case SealRule::kE5m2:
        return;
      case SealRule::kBlockMinimum:
      case SealRule::kBlockCentred:
      case SealRule::kBlockSigned:
        return BlockScales(job, view, mask, g, at, s);
      case SealRule::kLloydMax: {
        const Span span = view.GroupSpan(g);
        return UnitsFromSquares(job, DotOf(view, s.x, s.x, g, at),
                                static_cast<float>(span.end - span.begin), i, s);
      }
      case SealRule::kWater:
        return FitPlaces(job, view, RangeOf(job, ExtremesOf(view, s.x, g, at)), mask, at, s);
      default: {
        const Extremes range = RangeOf(job, ExtremesOf(view, s.x, g, at));
        if constexpr (requires(U32 code) { coder.Level(code); }) {
          if (job.ratio_count > 0) {
            return ScalesOfLeastError(job, view, coder, range, mask, g, at, s);
          }
        }
        return ScalesFromRange(job, view, range, mask, g, at, s);
      }
    }
  });
}

// Scales and codes of the scales [begin, end) of every group.
template <typename Coder>
inline void SealScales(const SealJob& job, const SealView& view, const Coder& coder, Span scales,
                       const SealScratch& s, uint8_t* codes) {
  ChooseUnits(job, view, coder, scales, s);
  const CodeTask task = {
      s.x, s.offsets, s.units, s.inverses, job.bits, job.zero_code * 0x01010101u, codes};
  if constexpr (requires { coder.OfWidth(0); }) {
    if (job.widths != nullptr) return CodePlanes(job, view, task, coder, scales);
  }
  CodeScales(view, task, coder, scales);
  if (job.rule != SealRule::kLloydMax) return;
  ForEachScales(view, scales,
                [&](int g, int at, U32 mask) { FitScales(job, view, mask, g, at, s); });
}

inline void WriteHalves(const uint16_t* from, int count, uint8_t** to) {
  __builtin_memcpy(*to, from, count * sizeof(uint16_t));
  *to += count * sizeof(uint16_t);
}

// Lines of codes that no quad takes.
inline void ClearLines(const SealJob& job, uint8_t* codes) {
  int lines = 0;
  for (int quad = 0; quad < job.padded_dim / kQuad; ++quad) lines += job.widths[quad];
  for (int i = lines * kLine; i < job.plane_lines * kLine; ++i) codes[i] = 0;
}

// Mean, factors, promoted channels, scales and offsets as docs/formats/page.md orders them, zeros
// to the end of the line.
inline void WriteMeta(const SealJob& job, const SealView& view, const SealScratch& s,
                      uint8_t* meta) {
  uint8_t* to = meta;
  if (job.mean) WriteHalves(s.keys.mean_f16, job.padded_dim, &to);
  if (job.smooth) WriteHalves(s.keys.smooth_f16, job.dim / 2, &to);
  if (job.promoted > 0) WriteHalves(job.order, job.promoted, &to);
  const int width = HasPageScale(job) ? 0 : view.width();
  const int run = job.key && !job.per_channel ? 2 * kLanes : width;
  for (int start = 0; start < width; start += run) {
    for (int g = 0; g < view.groups; ++g) {
      for (int part = 0; part < (HasOffset(job) ? 2 : 1); ++part) {
        WriteHalves(s.stored[part] + g * width + start, run, &to);
      }
    }
  }
  while ((to - meta) % kLine != 0) *to++ = 0;
}

inline void Steps(const SealJob& job, const SealView& view, const uint16_t* exact, Span tokens,
                  Span channels, const SealScratch& s) {
  if (job.key) {
    KeySteps(job, view, exact, s.keys, tokens, channels, s.x);
  } else {
    ValueSteps(job, view, exact, tokens, channels, s.x);
  }
}

// Where the working memory does not hold all of a side: the values of some scales.
inline void StepsOf(const SealJob& job, const uint16_t* exact, Span scales, SealView* view,
                    const SealScratch& s) {
  (view->per_lane ? view->first_lane : view->first_position) = scales.begin;
  Steps(job, *view, exact, job.per_channel ? Span{0, kPageSlots} : scales,
        job.per_channel ? scales : Span{0, job.padded_dim}, s);
}

// Calls f(scales) for kSealChunk scales at a time.
template <typename Function>
inline void ForEachChunk(const SealView& view, Function f) {
  for (int first = 0; first < view.width(); first += kSealChunk) {
    const int left = view.width() - first;
    f(Span{first, first + (left < kSealChunk ? left : kSealChunk)});
  }
}

// hiX: finds out which channels of the page are the loudest, and puts them first. REQUIRES: all of
// the side is in s.x if the job seals at once.
inline void Promote(const uint16_t* exact, const SealView& view, const SealScratch& s,
                    SealJob* job) {
  float loudness[kMaxDim];
  SealView page = view;
  page.group = kPageSlots;
  page.groups = 1;
  ForEachChunk(page, [&](Span channels) {
    if (!SealsAtOnce(*job)) StepsOf(*job, exact, channels, &page, s);
    for (int c = channels.begin; c < channels.end; c += kLanes) {
      const auto size = [&](size_t i, int) { return Magnitude(Load(s.x + i)); };
      Store(SumOf(page, 0, c, size), loudness + c);
    }
  });
  ChoosePlanes(*job, loudness, s);
  job->order = s.order;
  job->widths = s.widths;
  if (SealsAtOnce(*job)) Reorder(*job, view, s);
}

// Seals one side, exact f16 elements [8][padded_dim][16] (keys) or [128][padded_dim] (values),
// kSealChunk scales at a time. `largest_code`: of formats with a page scale.
template <typename Coder>
inline SealResult SealBy(SealJob job, const Coder& coder, float largest_code, const uint16_t* exact,
                         uint8_t* meta, uint8_t* codes, const SealScratch& s) {
  SealView view = ViewOf(job);
  SealResult result = {};
  if (job.key) MeasureKeys(job, exact, s.keys);
  if (SealsAtOnce(job)) Steps(job, view, exact, {0, kPageSlots}, {0, job.padded_dim}, s);
  if (job.promoted > 0) Promote(exact, view, s, &job);
  if (HasPageScale(job)) {
    result = PageScale(job, view, largest_code, s);
    if (result.page_scale == 0) view.valid_lanes = {0, 0};
  }
  ForEachChunk(view, [&](Span scales) {
    if (!SealsAtOnce(job)) StepsOf(job, exact, scales, &view, s);
    SealScales(job, view, coder, scales, s, codes);
  });
  WriteMeta(job, view, s, meta);
  if (job.widths != nullptr) ClearLines(job, codes);
  return result;
}

SealResult Seal(const SealJob& job, const void* exact, uint8_t* meta, uint8_t* codes,
                float* scratch) {
  const SealScratch s(job, scratch);
  const auto seal = [&](const auto& coder, float largest_code = 0) {
    return SealBy(job, coder, largest_code, static_cast<const uint16_t*>(exact), meta, codes, s);
  };
  switch (job.rule) {
    case SealRule::kUnsigned:
    case SealRule::kSigned:
    case SealRule::kWater:
      return seal(UniformCoder(job));
    case SealRule::kBlockMinimum:
    case SealRule::kBlockCentred:
    case SealRule::kBlockSigned:
      return seal(BlockCoder(job));
    case SealRule::kE4m3:
      return seal(E4m3Coder(), E4m3Coder::kMax);
    case SealRule::kE5m2:
      return seal(E5m2Coder(), E5m2Coder::kMax);
    default:
      return seal(TableCoder(job, job.rule == SealRule::kLloydMax ? s.chosen : nullptr));
  }
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SEAL_INL_H_
