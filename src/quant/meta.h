// Meta bytes of a sealed side: the mean, the factors of `smooth`, the promoted channels, the
// factors of a grid, scales and offsets, outliers, in this order.
//
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_META_H_
#define SHORTHAND_QUANT_META_H_

#include <cstdint>

#include "quant/format.h"
#include "quant/page.h"

namespace shorthand {

// What meta bytes hold, widened. Parts that the format does not have may be null; when reading,
// others that are not wanted as well.
struct MetaParts {
  float* mean = nullptr;         // [padded_dim]
  float* smooth = nullptr;       // [format.smooth_factors()]
  uint16_t* promoted = nullptr;  // [format.named_channels()]
  float* factors = nullptr;      // [format.factors()]
  float* scales = nullptr;       // as in CodedSide
  float* offsets = nullptr;
  uint16_t* outlier_places = nullptr;  // as in CodedSide
  float* outlier_values = nullptr;
};

// Writes meta bytes at `meta`, padding included, and the page scale of kPage formats.
void WriteMeta(const SideFormat& format, const MetaParts& parts, uint8_t* meta,
               PageDescriptor* descriptor);
void ReadMeta(const SideFormat& format, const uint8_t* meta, const PageDescriptor& descriptor,
              const MetaParts& parts);

// What the bytes of one-byte scales mean, [256]. REQUIRES: `type` is one of them.
const float* ScalesOfBytes(ScaleType type);

// Floats in the scales (or offsets) of a side.
int ScaleCount(const SideFormat& format);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_META_H_
