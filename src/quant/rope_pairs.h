// Pairs of channels that RoPE rotates with each other, as a calibration names them.
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_ROPE_PAIRS_H_
#define SHORTHAND_QUANT_ROPE_PAIRS_H_

#include <span>
#include <vector>

#include "shorthand/calibration.h"

namespace shorthand {

// The channel that RoPE rotates with `channel`; itself if it is not rotated.
int RopePartner(const LayerStatistics& layer, int channel);

// Squares of the numbers, averaged over RoPE's pairs: rotation carries variance from one channel of
// a pair to the other.
std::vector<double> PairSquares(const LayerStatistics& layer, std::span<const float> x);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_ROPE_PAIRS_H_
