// What folding and both finishes of integer sums share: the offset that centring leaves, and the
// number of limbs as a type. Compiled per target, after that target's ops file.
// Thread-safety: pure functions.
#ifndef SHORTHAND_KERNELS_CODED_SIDE_INL_H_
#define SHORTHAND_KERNELS_CODED_SIDE_INL_H_

#include "kernels/codes.h"
#include "kernels/elements-inl.h"

namespace shorthand {
namespace {

// Offsets of centred levels: what centring moved, `shift` * scale, and what is stored, if anything.
inline F32 CentredOffset(F32 scale, F32 shift, const float* stored) {
  const F32 moved = Mul(scale, shift);
  return stored != nullptr ? Add(moved, Load(stored)) : moved;
}

// Calls f(Int<limbs>{}).
template <typename Function>
inline void WithLimbs(int limbs, Function f) {
  static_assert(kMaxLimbs == 2);
  if (limbs == 1) {
    f(Int<1>{});
  } else {
    f(Int<2>{});
  }
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_CODED_SIDE_INL_H_
