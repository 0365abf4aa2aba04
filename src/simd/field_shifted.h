// Field of OPS.md by a shift and a mask, after the ops file of a target that has no better way.
//
// Include it from one target file only; everything is in an anonymous namespace.
// Thread-safety: pure functions.
#ifndef SHORTHAND_SIMD_FIELD_SHIFTED_H_
#define SHORTHAND_SIMD_FIELD_SHIFTED_H_

namespace shorthand {
namespace {

template <int kFrom, int kWidth, int kTo = 0>
inline U32 Field(U32 a) {
  const U32 mask = SetBits(((1u << kWidth) - 1) * 0x01010101u << kTo);
  if constexpr (kFrom < kTo) {
    return And(ShiftLeft<kTo - kFrom>(a), mask);
  } else {
    return And(ShiftRight<kFrom - kTo>(a), mask);
  }
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_SIMD_FIELD_SHIFTED_H_
