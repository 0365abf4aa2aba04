// Folding: queries and softmax weights, multiplied by the scales that a page keeps beside its
// codes, rounded to bytes. Compiled per target, after that target's ops file.
//
// Everything is 16 lanes with fixed trees and explicit rounding, so that all targets make the same
// bytes.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_FOLD_INL_H_
#define SHORTHAND_KERNELS_FOLD_INL_H_

#include "kernels/coded_side-inl.h"

namespace shorthand {
namespace {

// Largest magnitudes of one and of two limbs. A low limb may be -128, so the high one stays 127.
inline constexpr float kOneLimb = 127.0f;
inline constexpr float kTwoLimbs = 127.0f * 256.0f + 127.0f;
// One below what fits, so that a carried half does not overflow.
inline constexpr float kOneWeightLimb = 254.0f;
inline constexpr float kTwoWeightLimbs = 65534.0f;
// Below it a reciprocal could overflow; such rows count as zero.
inline constexpr float kLeastScale = 0x1p-100f;
// The square of rho's limit, 0.08.
inline constexpr float kRhoLimitSquared = 0.0064f;

// Sums of the bytes of each limb. Of a row that is not finite they are anything, and may wrap.
struct LimbSums {
  uint32_t low, high;
};

// x [n] to one limb in `low`, or two. Values are within the limit after multiplication.
inline LimbSums RoundQuery(const float* x, int n, float reciprocal, bool two, int8_t* low,
                           int8_t* high) {
  const F32 factor = Set(reciprocal);
  U32 total = SetBits(0), upper_total = SetBits(0);
  for (int c = 0; c < n; c += kLanes) {
    const U32 rounded = Round(Mul(Load(x + c), factor));
    StoreBytes(rounded, reinterpret_cast<uint8_t*>(low + c));
    total = AddBits(total, rounded);
    if (!two) {
      __builtin_memset(high + c, 0, kLanes);
      continue;
    }
    // The low limb is read as signed: what it takes away above 127 the high one gains.
    const U32 upper = AddBits(ShiftRight<8>(AddBits(rounded, SetBits(0x8080))), SetBits(-0x80u));
    StoreBytes(upper, reinterpret_cast<uint8_t*>(high + c));
    upper_total = AddBits(upper_total, upper);
  }
  const uint32_t high_sum = two ? static_cast<uint32_t>(SumOfWords(upper_total)) : 0;
  return {static_cast<uint32_t>(SumOfWords(total)) - 256 * high_sum, high_sum};
}

inline float SumOf(const float* x, int n) {
  F32 sum = Set(0.0f);
  for (int i = 0; i < n; i += kLanes) sum = Add(sum, Load(x + i));
  return SumOfLanes(sum);
}

// What folding finds out about a row: of the products with the scales, and the sum of the products
// with the offsets.
struct FoldedRow {
  float max, square_sum, offset_sum;
};

// kRows rows of queries or weights [kRows][n] times the scales of one fold or channel group, to
// x [kRows][n]. `scales`, `offsets`: [n]; null where the side's scales lie on the other axis.
// shift_at(i): what centring moved of 16 offsets, in scales.
template <int kRows, typename ShiftAt>
inline void ScaleRows(const CodedSide8& side, const float* from, int n, const float* scales,
                      const float* offsets, ShiftAt shift_at, float* x, FoldedRow* rows) {
  F32 top[kRows], squares[kRows], offset_sum[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) top[r] = squares[r] = offset_sum[r] = Set(0.0f);
  for (int i = 0; i < n; i += kLanes) {
    Step(side.ahead);
    F32 scale = Set(1.0f), offset = Set(0.0f);
    if (scales != nullptr) {
      scale = Load(scales + i);
      offset = CentredOffset(scale, shift_at(i), offsets != nullptr ? offsets + i : nullptr);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      F32 value = Load(from + r * n + i);
      offset_sum[r] = Fma(value, offset, offset_sum[r]);
      value = Mul(value, scale);
      top[r] = Max(Magnitude(value), top[r]);
      squares[r] = Fma(value, value, squares[r]);
      Store(value, x + r * n + i);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    rows[r] = {MaxOfLanes(top[r]), SumOfLanes(squares[r]), SumOfLanes(offset_sum[r])};
  }
}

// The same shift for all.
inline auto UniformShift(const CodedSide8& side) {
  return [shift = Set(side.shift * side.unit)](int) { return shift; };
}

// One fold of all rows; `group` channels share the start of their sums, numbers from `first_start`.
inline void FoldQueriesOnce(const CodedSide8& k, const float* q, const float* scales,
                            const float* offsets, float code_rms, int rows, int fold, int group,
                            int first_start, FoldedQueries* out) {
  alignas(64) float x[4 * kMaxDim];
  const float rho_factor =
      static_cast<float>(k.dim) * (code_rms * code_rms / (kOneLimb * kOneLimb));
  ForFours(rows, [&](int first_row, auto block) {
    constexpr int kRows = decltype(block)::value;
    FoldedRow folded[kRows];
    ScaleRows<kRows>(k, q + first_row * k.dim, k.dim, scales, offsets, UniformShift(k), x, folded);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const int row = first_row + r;
      const float max = folded[r].max;
      const bool two = max * max * rho_factor > kRhoLimitSquared * folded[r].square_sum;
      const float limit = two ? kTwoLimbs : kOneLimb;
      const bool zero = max < kLeastScale;
      if (two) out->limbs = 2;
      out->scale[fold][row] = zero ? 0.0f : max / limit * k.unit;
      out->constant[fold][row] = folded[r].offset_sum;
      int8_t* low = out->bytes + (static_cast<size_t>(fold) * rows + row) * kMaxLimbs * k.dim;
      int8_t* high = low + k.dim;
      const float reciprocal = zero ? 0.0f : limit / max;
      for (int c = 0, start = first_start; c < k.dim; c += group, ++start) {
        const int channels = group < k.dim - c ? group : k.dim - c;
        const LimbSums sums =
            RoundQuery(x + r * k.dim + c, channels, reciprocal, two, low + c, high + c);
        const uint32_t minus_base = static_cast<uint32_t>(-k.base);
        out->start[start][0][row] = static_cast<int32_t>(minus_base * sums.low);
        out->start[start][1][row] = static_cast<int32_t>(minus_base * sums.high);
      }
    }
  });
}

void FoldPlainQuery(const CodedSide8& k, const float* q, float code_rms, int rows,
                    FoldedQueries* out) {
  out->limbs = 1;
  if (k.per_channel) {
    const int stride = k.dim * (k.has_offset ? 2 : 1);
    for (int f = 0; f < kPageSlots / k.group; ++f) {
      const float* scales = k.meta + f * stride;
      FoldQueriesOnce(k, q, scales, k.has_offset ? scales + k.dim : nullptr, code_rms, rows, f,
                      k.dim, f, out);
    }
    return;
  }
  FoldQueriesOnce(k, q, nullptr, nullptr, code_rms, rows, 0, k.group, 0, out);
  for (int g = 0; g * k.group < k.dim; ++g) {
    const int first = g * k.group;
    const int channels = k.group < k.dim - first ? k.group : k.dim - first;
    for (int row = 0; row < rows; ++row) {
      out->sum[g][row] = SumOf(q + row * k.dim + first, channels);
    }
  }
}

// x [kRows][128] to bytes [kRows][kMaxLimbs][128], each lane carrying what rounding left to its
// next token. The rows go side by side: each is one chain of carries. kSigned: x has the signs of
// `scales`, which the codes take over.
template <int kRows, int kLimbs, bool kSigned>
inline void RoundWeights(const float* x, const float* scales, const float* reciprocals,
                         uint8_t* bytes) {
  F32 residue[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) residue[r] = Set(0.0f);
  for (int t = 0; t < kPageSlots; t += kLanes) {
    const U32 sign = kSigned ? And(BitsOf(Load(scales + t)), SetBits(0x80000000u)) : SetBits(0);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const F32 value = Load(x + r * kPageSlots + t);
      const F32 wanted = Fma(value, Set(reciprocals[r]), residue[r]);
      // A carried half makes nothing negative: it is rounded to 0.
      const U32 rounded = Round(kSigned ? FloatOf(Xor(BitsOf(wanted), sign)) : wanted);
      const F32 given = Convert(rounded);
      residue[r] = Sub(wanted, kSigned ? FloatOf(Xor(BitsOf(given), sign)) : given);
      uint8_t* low = bytes + r * kMaxLimbs * kPageSlots + t;
      StoreBytes(rounded, low);
      if constexpr (kLimbs == 2) StoreBytes(ShiftRight<8>(rounded), low + kPageSlots);
    }
  }
}

// One channel group of all rows.
template <int kLimbs>
inline void FoldWeightsOnce(const CodedSide8& v, const float* weights, const float* scales,
                            const float* offsets, int rows, int group, FoldedWeights* out) {
  constexpr float kLimit = kLimbs == 2 ? kTwoWeightLimbs : kOneWeightLimb;
  alignas(64) float x[4 * kPageSlots];
  ForFours(rows, [&](int row, auto block) {
    constexpr int kRows = decltype(block)::value;
    FoldedRow folded[kRows];
    float reciprocals[kRows];
    ScaleRows<kRows>(v, weights + row * kPageSlots, kPageSlots, scales, offsets, UniformShift(v), x,
                     folded);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const bool zero = folded[r].max < kLeastScale;
      reciprocals[r] = zero ? 0.0f : kLimit / folded[r].max;
      out->scale[group][row + r] = zero ? 0.0f : folded[r].max / kLimit * v.unit;
      out->offset[group][row + r] = folded[r].offset_sum;
    }
    uint8_t* bytes = out->bytes + static_cast<size_t>(group * rows + row) * kMaxLimbs * kPageSlots;
    if (v.flips == nullptr) {
      RoundWeights<kRows, kLimbs, false>(x, scales, reciprocals, bytes);
    } else {
      RoundWeights<kRows, kLimbs, true>(x, scales, reciprocals, bytes);
    }
  });
}

// Minus the sum of base * weight over bytes [n], 32 or a multiple of 64. The base of flipped codes
// is one less.
inline int32_t StartOfWeights(const CodedSide8& v, const uint8_t* bytes, const uint8_t* flips,
                              int n) {
  alignas(kLine) uint8_t half[kLine] = {};
  U32 sum = SetBits(0);
  for (int at = 0; at < n; at += kLine) {
    U32 base = SetBits(0x01010101u * static_cast<uint8_t>(-v.base));
    if (flips != nullptr) base = Or(base, And(LoadLine(flips + at), SetBits(0x01010101u)));
    if (n < kLine) __builtin_memcpy(half, bytes, static_cast<size_t>(n));
    sum = DotSmall(sum, LoadLine(n < kLine ? half : bytes + at), base);
  }
  return SumOfWords(sum);
}

// What the sums start from. Bytes that were just stored in parts are slow to read as lines, so this
// comes when all are there.
inline void StartWeights(const CodedSide8& v, int groups, int rows, FoldedWeights* out) {
  const int tokens = v.per_channel ? v.group : kPageSlots;
  for (int group = 0; group < groups; ++group) {
    const uint8_t* flips = v.flips == nullptr ? nullptr : v.flips + group * kPageSlots;
    for (int row = 0; row < rows; ++row) {
      const uint8_t* low =
          out->bytes + static_cast<size_t>(group * rows + row) * kMaxLimbs * kPageSlots;
      for (int limb = 0; limb < out->limbs; ++limb) {
        for (int t = 0, g = 0; t < kPageSlots; t += tokens, ++g) {
          out->start[group][g][limb][row] =
              StartOfWeights(v, low + limb * kPageSlots + t, flips, tokens);
        }
      }
    }
  }
}

template <int kLimbs>
inline void FoldWeightsLimbs(const CodedSide8& v, const float* weights, int rows,
                             FoldedWeights* out) {
  if (!v.per_channel) {
    const int stride = kPageSlots * (v.has_offset ? 2 : 1);
    const int groups = (v.dim + v.group - 1) / v.group;
    for (int g = 0; g < groups; ++g) {
      const float* scales = v.meta + g * stride;
      FoldWeightsOnce<kLimbs>(v, weights, scales, v.has_offset ? scales + kPageSlots : nullptr,
                              rows, g, out);
    }
    StartWeights(v, groups, rows, out);
    return;
  }
  FoldWeightsOnce<kLimbs>(v, weights, nullptr, nullptr, rows, 0, out);
  StartWeights(v, 1, rows, out);
  for (int row = 0; row < rows; ++row) {
    for (int t = 0; t < kPageSlots / v.group; ++t) {
      out->total[t][row] = SumOf(weights + row * kPageSlots + t * v.group, v.group);
    }
  }
}

// REQUIRES: out->limbs is set; scales are negative where v.flips says so only.
void FoldWeights(const CodedSide8& v, const float* weights, int rows, FoldedWeights* out) {
  WithLimbs(out->limbs,
            [&](auto limbs) { FoldWeightsLimbs<decltype(limbs)::value>(v, weights, rows, out); });
}

// f16 to f32: a page's metadata at once. n is a multiple of 16.
void Widen(const void* halves, int n, float* x) {
  const auto* from = static_cast<const uint16_t*>(halves);
  for (int i = 0; i < n; i += kLanes) Store(LoadF16(from + i), x + i);
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_FOLD_INL_H_
