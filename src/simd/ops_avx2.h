// The operations of OPS.md for AVX2 with FMA and F16C, but for the dot products: 16 lanes are two
// registers. dot_avx2.h and dot_avxvnni.h complete them; a target takes one of the two.
//
// Include it from target files only; everything is in an anonymous namespace.
// Thread-safety: pure functions.
#ifndef SHORTHAND_SIMD_OPS_AVX2_H_
#define SHORTHAND_SIMD_OPS_AVX2_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace shorthand {
namespace {

inline constexpr int kLanes = 16;
// Vectors of running sums that fit the registers beside the operands.
inline constexpr int kAccumulators = 6;

struct F32 {
  __m256 low, high;
};
struct U32 {
  __m256i low, high;
};
struct Table16 {
  __m256 low, high;
};

// Memory.
inline F32 Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void Store(F32 a, float* p) {
  _mm256_storeu_ps(p, a.low);
  _mm256_storeu_ps(p + 8, a.high);
}
inline __m128i LoadHalves(const uint16_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline F32 LoadF16(const uint16_t* p) {
  return {_mm256_cvtph_ps(LoadHalves(p)), _mm256_cvtph_ps(LoadHalves(p + 8))};
}
inline __m256 WidenBf16(__m128i halves) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
inline F32 LoadBf16(const uint16_t* p) {
  return {WidenBf16(LoadHalves(p)), WidenBf16(LoadHalves(p + 8))};
}
inline U32 LoadLine(const uint8_t* p) {
  const __m256i* line = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(line), _mm256_loadu_si256(line + 1)};
}
inline void StoreF16(F32 a, uint16_t* p) {
  auto* halves = reinterpret_cast<__m128i*>(p);
  _mm_storeu_si128(halves, _mm256_cvtps_ph(a.low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  _mm_storeu_si128(halves + 1,
                   _mm256_cvtps_ph(a.high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
// Packing works within 128 bits: the middle quarters change places.
inline void StoreHalves(U32 a, uint16_t* p) {
  const __m256i mask = _mm256_set1_epi32(0xffff);
  const __m256i packed =
      _mm256_packus_epi32(_mm256_and_si256(a.low, mask), _mm256_and_si256(a.high, mask));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}
inline void StoreLine(U32 a, uint8_t* p) {
  __m256i* line = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(line, a.low);
  _mm256_storeu_si256(line + 1, a.high);
}

// Constants.
inline F32 Set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline U32 SetBits(uint32_t x) {
  const __m256i bits = _mm256_set1_epi32(static_cast<int>(x));
  return {bits, bits};
}
inline F32 Iota() {
  return {_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_ps(8, 9, 10, 11, 12, 13, 14, 15)};
}

// Float arithmetic.
inline F32 Add(F32 a, F32 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline F32 Sub(F32 a, F32 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline F32 Mul(F32 a, F32 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline F32 Div(F32 a, F32 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
// Rounded to a neighbour of the quotient first; the exact remainder then decides.
inline __m256 QuotientOf(__m256 a, __m256 b, __m256 inverse) {
  __m256 q = _mm256_mul_ps(a, inverse);
  q = _mm256_fmadd_ps(_mm256_fnmadd_ps(b, q, a), inverse, q);
  return _mm256_fmadd_ps(_mm256_fnmadd_ps(b, q, a), inverse, q);
}
inline F32 Quotient(F32 a, F32 b, F32 inverse) {
  return {QuotientOf(a.low, b.low, inverse.low), QuotientOf(a.high, b.high, inverse.high)};
}
inline F32 Sqrt(F32 a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }
inline F32 Fma(F32 a, F32 b, F32 c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline F32 Max(F32 a, F32 b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline F32 Min(F32 a, F32 b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
inline F32 IfLess(F32 a, F32 b, F32 yes, F32 no) {
  return {_mm256_blendv_ps(no.low, yes.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
          _mm256_blendv_ps(no.high, yes.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
}

// Across lanes.
inline float SumOfLanes(F32 a) {
  const __m256 by8 = _mm256_add_ps(a.low, a.high);
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}
// Of eight rows: rows 4 apart share a register, neighbours half of one.
inline __m256 SumsOfEight(const F32* rows) {
  const auto by4 = [](F32 a, F32 b) {
    const __m256 x = _mm256_add_ps(a.low, a.high), y = _mm256_add_ps(b.low, b.high);
    return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
  };
  const auto by2 = [](__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
  };
  const __m256 even = by2(by4(rows[0], rows[4]), by4(rows[1], rows[5]));
  const __m256 odd = by2(by4(rows[2], rows[6]), by4(rows[3], rows[7]));
  return _mm256_add_ps(_mm256_shuffle_ps(even, odd, 0x88), _mm256_shuffle_ps(even, odd, 0xdd));
}
inline F32 SumsOfLanes(const F32 (&rows)[kLanes]) {
  return {SumsOfEight(rows), SumsOfEight(rows + 8)};
}
inline float MaxOfLanes(F32 a) {
  const __m256 by8 = _mm256_max_ps(a.low, a.high);
  const __m128 by4 = _mm_max_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_max_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}
inline int32_t SumOfWords(U32 a) {
  const __m256i by8 = _mm256_add_epi32(a.low, a.high);
  const __m128i by4 = _mm_add_epi32(_mm256_castsi256_si128(by8), _mm256_extracti128_si256(by8, 1));
  const __m128i by2 = _mm_add_epi32(by4, _mm_unpackhi_epi64(by4, by4));
  return _mm_cvtsi128_si32(_mm_add_epi32(by2, _mm_shuffle_epi32(by2, 1)));
}
// Half of a butterfly at distance 1, 2 or 4.
template <int kDistance>
inline __m256 HalfButterfly(__m256 a) {
  if constexpr (kDistance == 1) {
    const __m256 partner = _mm256_permute_ps(a, 0xb1);
    return _mm256_blend_ps(_mm256_add_ps(a, partner), _mm256_sub_ps(partner, a), 0xaa);
  } else if constexpr (kDistance == 2) {
    const __m256 partner = _mm256_permute_ps(a, 0x4e);
    return _mm256_blend_ps(_mm256_add_ps(a, partner), _mm256_sub_ps(partner, a), 0xcc);
  } else {
    static_assert(kDistance == 4);
    const __m256 partner = _mm256_permute2f128_ps(a, a, 1);
    return _mm256_blend_ps(_mm256_add_ps(a, partner), _mm256_sub_ps(partner, a), 0xf0);
  }
}
template <int kDistance>
inline F32 Butterfly(F32 a) {
  if constexpr (kDistance == 8) {
    return {_mm256_add_ps(a.low, a.high), _mm256_sub_ps(a.low, a.high)};
  } else {
    return {HalfButterfly<kDistance>(a.low), HalfButterfly<kDistance>(a.high)};
  }
}
// Eight rows of eight.
inline void TransposeBlock(__m256 (&rows)[8]) {
  __m256 pairs[8], quads[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
  }
}
inline void Transpose(F32 (&rows)[kLanes]) {
  __m256 corner[4][8];  // upper left, upper right, lower left, lower right
  for (int i = 0; i < 8; ++i) {
    corner[0][i] = rows[i].low;
    corner[1][i] = rows[i].high;
    corner[2][i] = rows[i + 8].low;
    corner[3][i] = rows[i + 8].high;
  }
  for (int i = 0; i < 4; ++i) TransposeBlock(corner[i]);
  for (int i = 0; i < 8; ++i) {
    rows[i] = {corner[0][i], corner[2][i]};
    rows[i + 8] = {corner[1][i], corner[3][i]};
  }
}

// Bits.
inline U32 BitsOf(F32 a) { return {_mm256_castps_si256(a.low), _mm256_castps_si256(a.high)}; }
inline F32 FloatOf(U32 a) { return {_mm256_castsi256_ps(a.low), _mm256_castsi256_ps(a.high)}; }
inline F32 Convert(U32 a) { return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)}; }
inline U32 And(U32 a, U32 b) {
  return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}
inline U32 Or(U32 a, U32 b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
inline U32 AddBits(U32 a, U32 b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
template <int kBits>
inline U32 ShiftLeft(U32 a) {
  return {_mm256_slli_epi32(a.low, kBits), _mm256_slli_epi32(a.high, kBits)};
}
template <int kBits>
inline U32 ShiftRight(U32 a) {
  return {_mm256_srli_epi32(a.low, kBits), _mm256_srli_epi32(a.high, kBits)};
}

// Tables.
inline Table16 LoadTable(const float* levels) {
  return {_mm256_loadu_ps(levels), _mm256_loadu_ps(levels + 8)};
}
// The permutation looks at three bits of the index; the fourth chooses between the halves.
inline __m256 HalfLookup(const Table16& table, __m256i index) {
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(table.low, index),
                          _mm256_permutevar8x32_ps(table.high, index),
                          _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}
inline F32 Lookup(const Table16& table, U32 index) {
  return {HalfLookup(table, index.low), HalfLookup(table, index.high)};
}
struct Table32 {
  Table16 lower, upper;
};
inline Table32 LoadTable32(const float* levels) {
  return {LoadTable(levels), LoadTable(levels + 16)};
}
inline __m256 HalfLookup32(const Table32& table, __m256i index) {
  return _mm256_blendv_ps(HalfLookup(table.lower, index), HalfLookup(table.upper, index),
                          _mm256_castsi256_ps(_mm256_slli_epi32(index, 27)));
}
inline F32 Lookup32(const Table32& table, U32 index) {
  return {HalfLookup32(table, index.low), HalfLookup32(table, index.high)};
}
inline F32 Gather(const float* levels, U32 index) {
  return {_mm256_i32gather_ps(levels, index.low, sizeof(float)),
          _mm256_i32gather_ps(levels, index.high, sizeof(float))};
}

// Bytes.
using ByteTable16 = __m256i;
inline ByteTable16 LoadByteTable(const uint8_t* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline U32 LookupBytes(const ByteTable16& table, U32 bytes) {
  return {_mm256_shuffle_epi8(table, bytes.low), _mm256_shuffle_epi8(table, bytes.high)};
}
inline U32 Xor(U32 a, U32 b) {
  return {_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)};
}
inline U32 LoadWord(const void* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return SetBits(static_cast<uint32_t>(word));
}
inline U32 Round(F32 a) { return {_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)}; }
inline U32 Truncate(F32 a) { return {_mm256_cvttps_epi32(a.low), _mm256_cvttps_epi32(a.high)}; }
// The low bytes of eight words, as the low eight bytes.
inline __m128i LowBytes(__m256i a) {
  const __m256i pick =
      _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1,
                       -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i bytes = _mm256_shuffle_epi8(a, pick);
  return _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
}
inline void StoreBytes(U32 a, uint8_t* p) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_unpacklo_epi64(LowBytes(a.low), LowBytes(a.high)));
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_SIMD_OPS_AVX2_H_
