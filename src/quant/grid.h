// The group /grid: factors of tokens and channels that make the rows and columns of a page spread
// alike. docs/formats/grid.md
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_GRID_H_
#define SHORTHAND_QUANT_GRID_H_

#include "quant/format.h"

namespace shorthand {

// Divides rows [first, 128) of x [128][padded_dim] by the factors that are stored, and writes these
// as f16 holds them: [128] of keys' tokens, 0 for those before `first`; [padded_dim] of values'
// channels, 0 for padding. REQUIRES: format.grid.
void BalanceGrid(const SideFormat& format, int first, float* x, float* factors);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_GRID_H_
