// Meta bytes of a sealed side: the mean, then scales and offsets in stored order.
//
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_META_H_
#define SHORTHAND_QUANT_META_H_

#include <cstdint>

#include "quant/format.h"
#include "quant/page.h"

namespace shorthand {

// Writes meta bytes at `meta`, padding included, and the page scale of kPage formats.
//   mean [padded_dim], null unless format.mean; scales and offsets as in CodedSide
void WriteMeta(const SideFormat& format, const float* mean, const float* scales,
               const float* offsets, uint8_t* meta, PageDescriptor* descriptor);

// What the bytes of one-byte scales mean, [256]. REQUIRES: `type` is one of them.
const float* ScalesOfBytes(ScaleType type);

// Floats in the scales (or offsets) of a side.
int ScaleCount(const SideFormat& format);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_META_H_
