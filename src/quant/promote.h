// The tune hiX: some channels of keys get twice the bits, without a calibration the loudest of each
// page. docs/formats/planes.md
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_PROMOTE_H_
#define SHORTHAND_QUANT_PROMOTE_H_

#include <cstdint>
#include <vector>

#include "quant/head_tables.h"

namespace shorthand {

// The format.promoted channels with the largest mean magnitude in rows [first, 128) of
// x [128][padded_dim], ascending.
void ChoosePromoted(const SideFormat& format, const float* x, int first, uint16_t* promoted);

// The widths of all quads of places, those of the promoted channels first.
std::vector<uint8_t> PromotedWidths(const SideFormat& format);

// The order and widths of a page whose channels `promoted` [format.promoted] come first.
HeadTables PromotedPlanes(const SideFormat& format, const uint16_t* promoted);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_PROMOTE_H_
