// ErrorBound: how far attention may be from double precision on the same pages, for tests and
// measurements on any data (docs/numerics.md, "Error bars").
//
// Errors are L2 norms of differences of outputs, relative to the norm of the exact ones. A coarse
// recipe hides more arithmetic than a fine one, so the bound is a share of the recipe's own error:
// what quantization changes, both sides in double precision.
// Thread-safety: pure functions.
#ifndef SHORTHAND_ATTENTION_ERROR_BOUND_H_
#define SHORTHAND_ATTENTION_ERROR_BOUND_H_

#include <algorithm>

#include "quant/format.h"
#include "shorthand/recipe.h"

namespace shorthand {

// Of f32 arithmetic, whatever is stored.
inline constexpr double kFloatError = 1e-5;

// A quarter adds 3 per cent where independent errors add up in squares; codes of 8 bits are so near
// the truth that a twentieth is asked for. REQUIRES: the codes of `recipe` are in the registry.
inline double ErrorShare(const Recipe& recipe) {
  double share = 0;
  for (const Side* side : {&recipe.kv.k, &recipe.kv.v}) {
    if (IsExact(side->code)) continue;
    const bool planes = side->code == Code::kWater;
    const double bits = planes ? side->width.value() : FindCodec(side->code, side->bits)->bits;
    share = std::max(share, bits < 8 ? 0.25 : 0.05);
  }
  return share;
}

inline double ErrorBound(const Recipe& recipe, double recipe_error) {
  return kFloatError + ErrorShare(recipe) * recipe_error;
}

}  // namespace shorthand

#endif  // SHORTHAND_ATTENTION_ERROR_BOUND_H_
