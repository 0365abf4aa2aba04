// Allocation: which rung the keys and values of every layer stand on.
//
// From the lowest rungs on, each step spends bits where they prevent most damage for each bit, so
// every allocation on the way is close to the best for its size.
// Thread-safety: values and pure functions.
#ifndef SHORTHAND_TUNE_ALLOCATION_H_
#define SHORTHAND_TUNE_ALLOCATION_H_

#include <vector>

#include "shorthand/recipe.h"
#include "shorthand/shape.h"
#include "tune/damage.h"

namespace shorthand {

struct LayerRungs {
  int k = 0;  // of KeyRungs
  int v = 0;  // of ValueRungs
  friend bool operator==(const LayerRungs&, const LayerRungs&) = default;
};

struct Allocation {
  std::vector<LayerRungs> layers;  // those that seal nothing stay on the lowest
  double bits = 0;                 // of a code, mean over all values that are sealed
  double kl = 0;                   // the sum of damages
};

// All allocations on the way from the lowest to the highest rungs; at least one.
// REQUIRES: damage of this shape.
std::vector<Allocation> AllocationsByBits(const Shape& shape, const Damage& damage);

// The same for layers that all stand on the same rungs, those of values at most as high as those of
// keys.
std::vector<Allocation> AllocationsAlike(const Damage& damage);

// Below so many bits the page before the one being written stays exact, as in the presets.
inline constexpr double kBitsWithoutRecent = 5;

// The pair that most layers have stands first; overrides follow for the others. As in the presets,
// 4 tokens at the start are exact.
Recipe RecipeOf(const Allocation& allocation);

}  // namespace shorthand

#endif  // SHORTHAND_TUNE_ALLOCATION_H_
