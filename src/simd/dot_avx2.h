// The dot products of OPS.md for AVX2, after ops_avx2.h: pairs of products in 16 bits, which
// saturate, then pairs of those in 32.
//
// Include it from one target file only; everything is in an anonymous namespace.
// Thread-safety: pure functions.
#ifndef SHORTHAND_SIMD_DOT_AVX2_H_
#define SHORTHAND_SIMD_DOT_AVX2_H_

#include "simd/ops_avx2.h"

namespace shorthand {
namespace {

inline __m256i HalfDot(__m256i a, __m256i b) {
  return _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1));
}
inline U32 Dot(U32 sum, U32 a, U32 b) {
  return {_mm256_add_epi32(sum.low, HalfDot(a.low, b.low)),
          _mm256_add_epi32(sum.high, HalfDot(a.high, b.high))};
}
inline U32 DotSmall(U32 sum, U32 a, U32 b) { return Dot(sum, a, b); }
// The top bit of `a` apart, so that no pair of products leaves 16 bits.
inline __m256i HalfDotWide(__m256i a, __m256i b) {
  const __m256i seven = _mm256_and_si256(a, _mm256_set1_epi8(0x7f));
  const __m256i top = _mm256_and_si256(_mm256_srli_epi16(a, 7), _mm256_set1_epi8(1));
  return _mm256_add_epi32(HalfDot(seven, b), _mm256_slli_epi32(HalfDot(top, b), 7));
}
inline U32 DotWide(U32 sum, U32 a, U32 b) {
  return {_mm256_add_epi32(sum.low, HalfDotWide(a.low, b.low)),
          _mm256_add_epi32(sum.high, HalfDotWide(a.high, b.high))};
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_SIMD_DOT_AVX2_H_
