// The dot products of OPS.md for AVX-VNNI, after ops_avx2.h: one instruction, exact for all bytes.
//
// Include it from one target file only; everything is in an anonymous namespace.
// Thread-safety: pure functions.
#ifndef SHORTHAND_SIMD_DOT_AVXVNNI_H_
#define SHORTHAND_SIMD_DOT_AVXVNNI_H_

#include "simd/ops_avx2.h"

namespace shorthand {
namespace {

inline U32 DotWide(U32 sum, U32 a, U32 b) {
  return {_mm256_dpbusd_avx_epi32(sum.low, a.low, b.low),
          _mm256_dpbusd_avx_epi32(sum.high, a.high, b.high)};
}
inline U32 Dot(U32 sum, U32 a, U32 b) { return DotWide(sum, a, b); }
inline U32 DotSmall(U32 sum, U32 a, U32 b) { return DotWide(sum, a, b); }

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_SIMD_DOT_AVXVNNI_H_
