// ParseSide: steps, code, group and tunes of one side of a recipe, with every rule that needs no
// head dimension. A rule between two words is reported at the later of them.
// Thread-safety: one thread for a scanner.
#ifndef SHORTHAND_QUANT_RECIPE_SIDE_H_
#define SHORTHAND_QUANT_RECIPE_SIDE_H_

#include <cstdint>

#include "quant/recipe_scanner.h"
#include "shorthand/recipe.h"

namespace shorthand {

// What the side is written for: `k=`, `v=` or `kv=`.
enum class SideUse : uint8_t { kKey, kValue, kBoth };

// Reads a side at the scanner's position. False after a failure, which the scanner holds.
bool ParseSide(RecipeScanner* scanner, SideUse use, Side* side);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_RECIPE_SIDE_H_
