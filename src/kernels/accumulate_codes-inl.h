// Weighted sums of up to 8 rows over the codes of one page of values. Lane = channel. Compiled per
// target, after that target's ops file.
//
// Integer dot products of folded weights and levels over the tokens of a scale group, then one
// multiply-add of floats for each output and group.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_ACCUMULATE_CODES_INL_H_
#define SHORTHAND_KERNELS_ACCUMULATE_CODES_INL_H_

#include "kernels/code_tiles-inl.h"

namespace shorthand {
namespace {

// Adds the sums [rows][limbs][dim] over one token group of values with scales per token to
// out [rows][dim], which shrinks first.
template <int kLimbs>
inline void AddTokenValues(const CodedSide8& v, const FoldedWeights& w, const float* shrink,
                           int rows, const int32_t* sums, float* out) {
  const int dim = v.dim;
  for (int r = 0; r < rows; ++r) {
    const F32 factor = Set(shrink[r]);
    for (int c = 0, group = 0; c < dim; ++group) {
      const F32 scale = Set(w.scale[group][r]), offset = Set(w.offset[group][r]);
      U32 start[kLimbs];
      LoadStarts(w.start[group][0], r, start);
      for (const int end = c + v.group < dim ? c + v.group : dim; c < end; c += kLanes) {
        float* to = out + static_cast<size_t>(r) * dim + c;
        const F32 sum =
            JoinLimbs<kLimbs>(sums + static_cast<size_t>(r) * kLimbs * dim + c, dim, start);
        Store(Add(Mul(sum, scale), Fma(Load(to), factor, offset)), to);
      }
    }
  }
}

// The same for a token group of values with scales per channel.
template <int kLimbs>
inline void AddChannelValues(const CodedSide8& v, const FoldedWeights& w, const float* shrink,
                             int rows, int token_group, const int32_t* sums, float* out) {
  const int dim = v.dim;
  const bool has_offset = v.has_offset;
  const float* meta = v.meta + static_cast<size_t>(token_group) * dim * (has_offset ? 2 : 1);
  const F32 shift = Set(v.shift * v.unit);
  for (int r = 0; r < rows; ++r) {
    const F32 factor = Set(token_group == 0 ? shrink[r] : 1.0f);
    const F32 row_scale = Set(w.scale[0][r]), total = Set(w.total[token_group][r]);
    U32 start[kLimbs];
    LoadStarts(w.start[0][token_group], r, start);
    for (int c = 0; c < dim; c += kLanes) {
      const F32 scale = Load(meta + c);
      const F32 offset = CentredOffset(scale, shift, has_offset ? meta + dim + c : nullptr);
      float* to = out + static_cast<size_t>(r) * dim + c;
      const F32 sum =
          JoinLimbs<kLimbs>(sums + static_cast<size_t>(r) * kLimbs * dim + c, dim, start);
      Store(Fma(Mul(sum, row_scale), scale, Fma(total, offset, Mul(Load(to), factor))), to);
    }
  }
}

template <int kLimbs>
inline void AddValues(const CodedSide8& v, const FoldedWeights& w, const float* shrink, int rows,
                      int token_group, const int32_t* sums, float* out) {
  if (v.per_channel) {
    AddChannelValues<kLimbs>(v, w, shrink, rows, token_group, sums, out);
  } else {
    AddTokenValues<kLimbs>(v, w, shrink, rows, sums, out);
  }
}

// The sums of all streams over tokens [first, end) for kWidth tiles of channels.
template <int kBits, int kWidth, typename Codes>
inline void SumTokens(const CodedSide8& v, const Codes& codes, const FoldedWeights& w, int rows,
                      int first, int end, int channel, int32_t* sums) {
  constexpr int kStep = 4 * kGroupTiles / kWidth;  // tokens of eight tiles
  const int group = v.per_channel ? 0 : channel / v.group;
  const int from = first / kStep * kStep;
  // A channel tile is 32 tiles of codes, 4 * kBits lines; pairs alternate but lie together.
  const int lines = channel / kLanes * 4 * kBits + from / kStep * kBits;
  SumStreams<CodesOf::kValues, kBits, kWidth>(
      {v.lines + static_cast<size_t>(lines) * kLine,
       w.bytes + static_cast<size_t>(group) * rows * kMaxLimbs * kPageSlots + from,
       static_cast<size_t>(kPageSlots) * (kMaxLimbs / w.limbs), end - from, sums + channel,
       static_cast<size_t>(v.dim), group * kPageSlots + from, v.ahead},
      rows * w.limbs, codes);
}

inline void AccumulateCodes(const CodedSide8& v, const FoldedWeights& w, const float* shrink,
                            int first, int end, int rows, float* out) {
  alignas(64) int32_t sums[kVectorRows * kMaxLimbs * kMaxDim];
  const int tokens = v.per_channel ? v.group : kPageSlots;
  const int paired = v.dim / (2 * kLanes) * 2 * kLanes;
  WithCodes<CodesOf::kValues>(v, [&](auto bits, const auto& codes) {
    constexpr int kBits = decltype(bits)::value;
    for (int t = 0, group = 0; t < kPageSlots; t += tokens, ++group) {
      const int from = t > first ? t : first, to = t + tokens < end ? t + tokens : end;
      for (int channel = 0; channel < paired; channel += 2 * kLanes) {
        SumTokens<kBits, 2>(v, codes, w, rows, from, to, channel, sums);
      }
      if (paired < v.dim) SumTokens<kBits, 1>(v, codes, w, rows, from, to, paired, sums);
      WithLimbs(w.limbs, [&](auto limbs) {
        AddValues<decltype(limbs)::value>(v, w, shrink, rows, group, sums, out);
      });
    }
  });
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_ACCUMULATE_CODES_INL_H_
