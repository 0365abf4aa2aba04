// Folding: queries and softmax weights, multiplied by the scales that a page keeps beside its
// codes, rounded to bytes. Compiled per target, after that target's ops file.
//
// Everything is 16 lanes with fixed trees and explicit rounding, so that all targets make the same
// bytes.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_FOLD_INL_H_
#define SHORTHAND_KERNELS_FOLD_INL_H_

#include "kernels/codes.h"
#include "kernels/elements-inl.h"

namespace shorthand {
namespace {

inline constexpr int kMaxDim = 1024;
// Largest magnitudes of one and of two limbs. A low limb may be -128, so the high one stays 127.
inline constexpr float kOneLimb = 127.0f;
inline constexpr float kTwoLimbs = 127.0f * 256.0f + 127.0f;
inline constexpr float kOneWeightLimb = 255.0f;
inline constexpr float kTwoWeightLimbs = 65535.0f;
// Below it a reciprocal could overflow; such rows count as zero.
inline constexpr float kLeastScale = 0x1p-100f;
// The square of rho's limit, 1/4.
inline constexpr float kRhoLimitSquared = 0.0625f;

inline F32 Magnitude(F32 a) { return FloatOf(And(BitsOf(a), SetBits(0x7fffffffu))); }

template <typename Byte>
inline int32_t SumOfBytes(const Byte* p, int n) {
  int32_t sum = 0;
  for (int i = 0; i < n; ++i) sum += p[i];
  return sum;
}

// x [dim] to one limb in `low`, or two. Values are at most `limit` after multiplication.
inline void RoundQuery(const float* x, int dim, float reciprocal, bool two, int8_t* low,
                       int8_t* high) {
  const F32 factor = Set(reciprocal);
  for (int c = 0; c < dim; c += kLanes) {
    const U32 rounded = Round(Mul(Load(x + c), factor));
    StoreBytes(rounded, reinterpret_cast<uint8_t*>(low + c));
    // The low limb is read as signed: what it takes away above 127 the high one gains.
    const U32 upper = two ? ShiftRight<8>(AddBits(rounded, SetBits(128))) : SetBits(0);
    StoreBytes(upper, reinterpret_cast<uint8_t*>(high + c));
  }
}

// One fold of one row. `scales`, `offsets`: [dim] of the fold's channels; null for keys with scales
// per token.
inline void FoldQueryOnce(const CodedSide8& k, const float* q, const float* scales,
                          const float* offsets, float code_rms, int row, int rows, int fold,
                          FoldedQueries* out) {
  alignas(64) float x[kMaxDim];
  F32 top = Set(0.0f), squares = Set(0.0f), constant = Set(0.0f);
  for (int c = 0; c < k.dim; c += kLanes) {
    F32 value = Load(q + c);
    if (scales != nullptr) {
      const F32 scale = Load(scales + c);
      F32 offset = Mul(scale, Set(k.shift * k.unit));
      if (offsets != nullptr) offset = Add(offset, Load(offsets + c));
      constant = Fma(value, offset, constant);
      value = Mul(value, scale);
    }
    top = Max(Magnitude(value), top);
    squares = Fma(value, value, squares);
    Store(value, x + c);
  }
  const float max = MaxOfLanes(top);
  const float sum = SumOfLanes(squares);
  const float rho_squared_times_sum =
      static_cast<float>(k.dim) * max * max * (code_rms * code_rms / (127.0f * 127.0f));
  const bool two = rho_squared_times_sum > kRhoLimitSquared * sum;
  const float limit = two ? kTwoLimbs : kOneLimb;
  int8_t* low = out->bytes + (static_cast<size_t>(fold) * kMaxLimbs * rows + row) * k.dim;
  int8_t* high = low + static_cast<size_t>(rows) * k.dim;
  const bool zero = max < kLeastScale;
  RoundQuery(x, k.dim, zero ? 0.0f : limit / max, two, low, high);
  out->scale[fold][row] = zero ? 0.0f : max / limit * k.unit;
  out->constant[fold][row] = SumOfLanes(constant);
  if (two && out->limbs < 2) out->limbs = 2;
}

// Folds row `row` of `rows`. REQUIRES: out->limbs is 1 before the first row.
void FoldQuery(const CodedSide8& k, const float* q, float code_rms, int row, int rows,
               FoldedQueries* out) {
  const auto start = [&](int at, int fold, int first, int channels) {
    const int8_t* low =
        out->bytes + (static_cast<size_t>(fold) * kMaxLimbs * rows + row) * k.dim + first;
    const int8_t* high = low + static_cast<size_t>(rows) * k.dim;
    out->start[at][0][row] = -k.base * SumOfBytes(low, channels);
    out->start[at][1][row] = -k.base * SumOfBytes(high, channels);
  };
  if (k.per_channel) {
    const int folds = kPageSlots / k.group;
    const int stride = k.dim * (k.has_offset ? 2 : 1);
    for (int f = 0; f < folds; ++f) {
      const float* scales = k.meta + f * stride;
      FoldQueryOnce(k, q, scales, k.has_offset ? scales + k.dim : nullptr, code_rms, row, rows, f,
                    out);
      start(f, f, 0, k.dim);
    }
    return;
  }
  FoldQueryOnce(k, q, nullptr, nullptr, code_rms, row, rows, 0, out);
  for (int g = 0; g * k.group < k.dim; ++g) {
    const int first = g * k.group;
    const int channels = k.group < k.dim - first ? k.group : k.dim - first;
    F32 sum = Set(0.0f);
    for (int c = 0; c < channels; c += kLanes) sum = Add(sum, Load(q + first + c));
    out->sum[g][row] = SumOfLanes(sum);
    start(g, 0, first, channels);
  }
}

// x [128] -> bytes, each lane carrying what rounding left to its next token.
inline void RoundWeights(const float* x, float reciprocal, bool two, uint8_t* low, uint8_t* high) {
  const F32 factor = Set(reciprocal);
  const F32 most = Set(two ? kTwoWeightLimbs : kOneWeightLimb);
  F32 residue = Set(0.0f);
  for (int t = 0; t < kPageSlots; t += kLanes) {
    const F32 wanted = Fma(Load(x + t), factor, residue);
    const U32 rounded = Round(Max(Min(wanted, most), Set(0.0f)));
    residue = Sub(wanted, Convert(rounded));
    StoreBytes(rounded, low + t);
    if (two) StoreBytes(ShiftRight<8>(rounded), high + t);
  }
}

// One channel group of one row. `scales`, `offsets`: [128] of its tokens; null for values with
// scales per channel.
inline void FoldWeightsOnce(const CodedSide8& v, const float* weights, const float* scales,
                            const float* offsets, int row, int rows, int group,
                            FoldedWeights* out) {
  alignas(64) float x[kPageSlots];
  F32 top = Set(0.0f), offset_sum = Set(0.0f);
  for (int t = 0; t < kPageSlots; t += kLanes) {
    F32 value = Load(weights + t);
    if (scales != nullptr) {
      const F32 scale = Load(scales + t);
      F32 offset = Mul(scale, Set(v.shift * v.unit));
      if (offsets != nullptr) offset = Add(offset, Load(offsets + t));
      offset_sum = Fma(value, offset, offset_sum);
      value = Mul(value, scale);
    }
    top = Max(value, top);
    Store(value, x + t);
  }
  const float max = MaxOfLanes(top);
  const bool two = out->limbs == 2;
  const float limit = two ? kTwoWeightLimbs : kOneWeightLimb;
  uint8_t* low = out->bytes + (static_cast<size_t>(group) * kMaxLimbs * rows + row) * kPageSlots;
  uint8_t* high = low + static_cast<size_t>(rows) * kPageSlots;
  const bool zero = max < kLeastScale;
  RoundWeights(x, zero ? 0.0f : limit / max, two, low, high);
  out->scale[group][row] = zero ? 0.0f : max / limit * v.unit;
  out->offset[group][row] = SumOfLanes(offset_sum);
  const int token_groups = v.per_channel ? kPageSlots / v.group : 1;
  const int tokens = kPageSlots / token_groups;
  for (int t = 0; t < token_groups; ++t) {
    out->start[group][t][0][row] = -v.base * SumOfBytes(low + t * tokens, tokens);
    out->start[group][t][1][row] = two ? -v.base * SumOfBytes(high + t * tokens, tokens) : 0;
  }
}

// Folds row `row` of `rows`: weights [128], zero where the row sees nothing.
// REQUIRES: out->limbs is set; scales are not negative.
void FoldWeights(const CodedSide8& v, const float* weights, int row, int rows, FoldedWeights* out) {
  if (v.per_channel) {
    FoldWeightsOnce(v, weights, nullptr, nullptr, row, rows, 0, out);
    const int tokens = v.group;
    for (int t = 0; t * tokens < kPageSlots; ++t) {
      F32 sum = Set(0.0f);
      for (int i = 0; i < tokens; i += kLanes) sum = Add(sum, Load(weights + t * tokens + i));
      out->total[t][row] = SumOfLanes(sum);
    }
    return;
  }
  const int stride = kPageSlots * (v.has_offset ? 2 : 1);
  for (int g = 0; g * v.group < v.dim; ++g) {
    const float* scales = v.meta + g * stride;
    FoldWeightsOnce(v, weights, scales, v.has_offset ? scales + kPageSlots : nullptr, row, rows, g,
                    out);
  }
}

// f16 to f32: a page's metadata at once. n is a multiple of 16.
void Widen(const void* halves, int n, float* x) {
  const auto* from = static_cast<const uint16_t*>(halves);
  for (int i = 0; i < n; i += kLanes) Store(LoadF16(from + i), x + i);
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_FOLD_INL_H_
