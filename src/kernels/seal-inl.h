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
        return ScalesFromRange(job, range, mask, i, s);
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

// Mean, scales and offsets in the order of docs/formats/page.md, zeros to the end of the line.
inline void WriteMeta(const SealJob& job, const SealView& view, const SealScratch& s,
                      uint8_t* meta) {
  uint8_t* to = meta;
  if (job.mean) WriteHalves(s.mean, job.padded_dim, &to);
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
    KeySteps(job, view, exact, s.means, tokens, channels, s.x);
  } else {
    ValueSteps(job, view, exact, tokens, channels, s.x);
  }
}

// Seals one side, exact f16 elements [8][padded_dim][16] (keys) or [128][padded_dim] (values),
// kSealChunk scales at a time. `largest_code`: of formats with a page scale.
template <typename Coder>
inline SealResult SealBy(const SealJob& job, const Coder& coder, float largest_code,
                         const uint16_t* exact, uint8_t* meta, uint8_t* codes,
                         const SealScratch& s) {
  SealView view = ViewOf(job);
  SealResult result = {};
  if (job.mean) KeyMeans(exact, job.padded_dim, job.first_token, s.means, s.mean);
  for (int c = 0; c < job.padded_dim; c += kLanes) {
    const F32 given = job.means == nullptr ? Set(0.0f) : Load(job.means + c);
    Store(job.mean ? LoadF16(s.mean + c) : given, s.means + c);
  }
  const Span tokens = {0, kPageSlots}, channels = {0, job.padded_dim};
  if (SealsAtOnce(job)) Steps(job, view, exact, tokens, channels, s);
  if (HasPageScale(job)) {
    result = PageScale(job, view, largest_code, s);
    if (result.page_scale == 0) view.valid_lanes = {0, 0};
  }
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
