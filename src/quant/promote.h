// The tune hiX: the loudest channels of a page's keys get twice the bits. docs/formats/planes.md
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_PROMOTE_H_
#define SHORTHAND_QUANT_PROMOTE_H_

#include <cstdint>

#include "quant/head_tables.h"

namespace shorthand {

// The format.promoted channels with the largest mean magnitude in rows [first, 128) of
// x [128][padded_dim], ascending.
void ChoosePromoted(const SideFormat& format, const float* x, int first, uint16_t* promoted);

// The order and widths of a page whose channels `promoted` [format.promoted] come first.
HeadTables PromotedPlanes(const SideFormat& format, const uint16_t* promoted);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_PROMOTE_H_
