// The operations of OPS.md for AVX-512 (F, BW, DQ, VL, VNNI, VBMI) and GFNI: 16 lanes are one
// register.
//
// Include it from one target file only; everything is in an anonymous namespace.
// Thread-safety: pure functions.
#ifndef SHORTHAND_SIMD_OPS_AVX512_H_
#define SHORTHAND_SIMD_OPS_AVX512_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace shorthand {
namespace {

inline constexpr int kLanes = 16;
// Vectors of running sums that fit the registers beside the operands.
inline constexpr int kAccumulators = 24;

using F32 = __m512;
using U32 = __m512i;
using Table16 = __m512;

// Memory.
inline F32 Load(const float* p) { return _mm512_loadu_ps(p); }
inline void Store(F32 a, float* p) { _mm512_storeu_ps(p, a); }
inline F32 LoadF16(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline F32 LoadBf16(const uint16_t* p) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
inline U32 LoadLine(const uint8_t* p) { return _mm512_loadu_si512(p); }
inline void StoreF16(F32 a, uint16_t* p) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline void StoreHalves(U32 a, uint16_t* p) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a));
}
inline void StoreLine(U32 a, uint8_t* p) { _mm512_storeu_si512(p, a); }

// Constants.
inline F32 Set(float x) { return _mm512_set1_ps(x); }
inline U32 SetBits(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
inline F32 Iota() { return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }

// Float arithmetic.
inline F32 Add(F32 a, F32 b) { return _mm512_add_ps(a, b); }
inline F32 Sub(F32 a, F32 b) { return _mm512_sub_ps(a, b); }
inline F32 Mul(F32 a, F32 b) { return _mm512_mul_ps(a, b); }
inline F32 Div(F32 a, F32 b) { return _mm512_div_ps(a, b); }
inline F32 Fma(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
// Rounded to a neighbour of the quotient first; the exact remainder then decides.
inline F32 Quotient(F32 a, F32 b, F32 inverse) {
  F32 q = Mul(a, inverse);
  q = Fma(_mm512_fnmadd_ps(b, q, a), inverse, q);
  return Fma(_mm512_fnmadd_ps(b, q, a), inverse, q);
}
inline F32 Sqrt(F32 a) { return _mm512_sqrt_ps(a); }
inline F32 Max(F32 a, F32 b) { return _mm512_max_ps(a, b); }
inline F32 Min(F32 a, F32 b) { return _mm512_min_ps(a, b); }
inline F32 IfLess(F32 a, F32 b, F32 yes, F32 no) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}

// Across lanes.
inline float SumOfLanes(F32 a) {
  const __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}
// Rows 4 apart share a vector of quarters, neighbours a quarter.
inline F32 SumsOfLanes(const F32 (&rows)[kLanes]) {
  const auto by8 = [](F32 a, F32 b) {
    return Add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  };
  const auto by4 = [](F32 a, F32 b) {
    return Add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  };
  const auto by2 = [](F32 a, F32 b) {
    return Add(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
  };
  F32 quads[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    quads[i] = by4(by8(rows[i], rows[i + 4]), by8(rows[i + 8], rows[i + 12]));
  }
  const F32 even = by2(quads[0], quads[1]), odd = by2(quads[2], quads[3]);
  return Add(_mm512_shuffle_ps(even, odd, 0x88), _mm512_shuffle_ps(even, odd, 0xdd));
}
inline float MaxOfLanes(F32 a) {
  const __m256 by8 = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 by4 = _mm_max_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_max_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}
// Wraps, which the compiler's own reduction may not.
inline int32_t SumOfWords(U32 a) {
  const __m256i by8 = _mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
  const __m128i by4 = _mm_add_epi32(_mm256_castsi256_si128(by8), _mm256_extracti128_si256(by8, 1));
  const __m128i by2 = _mm_add_epi32(by4, _mm_unpackhi_epi64(by4, by4));
  return _mm_cvtsi128_si32(_mm_add_epi32(by2, _mm_shuffle_epi32(by2, 1)));
}
// The partner minus a is a times -1 plus the partner, which is rounded the same.
template <int kDistance>
inline F32 Butterfly(F32 a) {
  static_assert(kDistance == 1 || kDistance == 2 || kDistance == 4 || kDistance == 8);
  constexpr __mmask16 kUpper = kDistance == 1   ? 0xaaaa
                               : kDistance == 2 ? 0xcccc
                               : kDistance == 4 ? 0xf0f0
                                                : 0xff00;
  F32 partner;
  if constexpr (kDistance == 1) {
    partner = _mm512_permute_ps(a, 0xb1);
  } else if constexpr (kDistance == 2) {
    partner = _mm512_permute_ps(a, 0x4e);
  } else if constexpr (kDistance == 4) {
    partner = _mm512_shuffle_f32x4(a, a, 0xb1);
  } else {
    partner = _mm512_shuffle_f32x4(a, a, 0x4e);
  }
  return Fma(a, _mm512_mask_blend_ps(kUpper, Set(1.0f), Set(-1.0f)), partner);
}
// 4 x 4 within the quarters of four rows, then the quarters of four such sets.
inline void Transpose(F32 (&rows)[kLanes]) {
  F32 quads[kLanes];
#pragma GCC unroll 4
  for (int i = 0; i < kLanes; i += 4) {
    const F32 a = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    const F32 b = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    const F32 c = _mm512_unpacklo_ps(rows[i + 2], rows[i + 3]);
    const F32 d = _mm512_unpackhi_ps(rows[i + 2], rows[i + 3]);
    quads[i] = _mm512_shuffle_ps(a, c, 0x44);
    quads[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
    quads[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
    quads[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const F32 a = _mm512_shuffle_f32x4(quads[i], quads[i + 4], 0x88);
    const F32 b = _mm512_shuffle_f32x4(quads[i], quads[i + 4], 0xdd);
    const F32 c = _mm512_shuffle_f32x4(quads[i + 8], quads[i + 12], 0x88);
    const F32 d = _mm512_shuffle_f32x4(quads[i + 8], quads[i + 12], 0xdd);
    rows[i] = _mm512_shuffle_f32x4(a, c, 0x88);
    rows[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
    rows[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
    rows[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
}

// Bits.
inline U32 BitsOf(F32 a) { return _mm512_castps_si512(a); }
inline F32 FloatOf(U32 a) { return _mm512_castsi512_ps(a); }
inline F32 Convert(U32 a) { return _mm512_cvtepi32_ps(a); }
inline U32 And(U32 a, U32 b) { return _mm512_and_si512(a, b); }
inline U32 Or(U32 a, U32 b) { return _mm512_or_si512(a, b); }
inline U32 AddBits(U32 a, U32 b) { return _mm512_add_epi32(a, b); }
template <int kBits>
inline U32 ShiftLeft(U32 a) {
  return _mm512_slli_epi32(a, kBits);
}
template <int kBits>
inline U32 ShiftRight(U32 a) {
  return _mm512_srli_epi32(a, kBits);
}

// A product with a matrix of bits takes the shift and the mask together. Byte 7 - i of the matrix
// chooses what becomes bit i.
template <int kFrom, int kWidth, int kTo = 0>
inline U32 Field(U32 a) {
  if constexpr (kFrom == kTo) return And(a, SetBits(((1u << kWidth) - 1) * 0x01010101u << kTo));
  constexpr uint64_t kMatrix = [] {
    uint64_t matrix = 0;
    for (int i = 0; i < kWidth; ++i) {
      matrix |= uint64_t{1} << (kFrom + i) << 8 * (7 - kTo - i);
    }
    return matrix;
  }();
  return _mm512_gf2p8affine_epi64_epi8(a, _mm512_set1_epi64(static_cast<long long>(kMatrix)), 0);
}

// Tables.
inline Table16 LoadTable(const float* levels) { return _mm512_loadu_ps(levels); }
inline F32 Lookup(const Table16& table, U32 index) { return _mm512_permutexvar_ps(index, table); }
struct Table32 {
  Table16 lower, upper;
};
inline Table32 LoadTable32(const float* levels) {
  return {LoadTable(levels), LoadTable(levels + 16)};
}
inline F32 Lookup32(const Table32& table, U32 index) {
  return _mm512_permutex2var_ps(table.lower, index, table.upper);
}
inline F32 Gather(const float* levels, U32 index) {
  return _mm512_i32gather_ps(index, levels, sizeof(float));
}

// Bytes.
using ByteTable16 = __m512i;
inline ByteTable16 LoadByteTable(const uint8_t* p) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline U32 LookupBytes(const ByteTable16& table, U32 bytes) {
  return _mm512_shuffle_epi8(table, bytes);
}
inline U32 Xor(U32 a, U32 b) { return _mm512_xor_si512(a, b); }
inline U32 LoadWord(const void* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return _mm512_set1_epi32(word);
}
inline U32 DotWide(U32 sum, U32 a, U32 b) { return _mm512_dpbusd_epi32(sum, a, b); }
inline U32 Dot(U32 sum, U32 a, U32 b) { return DotWide(sum, a, b); }
inline U32 DotSmall(U32 sum, U32 a, U32 b) { return DotWide(sum, a, b); }
inline U32 Round(F32 a) { return _mm512_cvtps_epi32(a); }
inline U32 Truncate(F32 a) { return _mm512_cvttps_epi32(a); }
inline void StoreBytes(U32 a, uint8_t* p) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_SIMD_OPS_AVX512_H_
