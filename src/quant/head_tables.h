// HeadTables: what a calibration makes constant for one side of one KV head.
//
// Formats decide sizes and are the same for all heads of a layer; the tables decide contents. A
// side whose recipe needs no calibration has empty tables.
// Thread-safety: immutable after construction.
#ifndef SHORTHAND_QUANT_HEAD_TABLES_H_
#define SHORTHAND_QUANT_HEAD_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "quant/format.h"
#include "shorthand/calibration.h"
#include "shorthand/shape.h"

namespace shorthand {

struct HeadTables {
  // `mu` with `cal`: subtracted from keys; an f16 each.
  std::vector<float> mean;  // [padded_dim]
  // `bal`, and `smooth` with `cal`: keys are multiplied by the inverse before the Hadamard
  // transform, queries by the balance.
  std::vector<float> balance;          // [padded_dim]
  std::vector<float> inverse_balance;  // [padded_dim]
  // The channel that stands at each place of the coded space, after all steps.
  std::vector<uint16_t> order;  // [padded_dim]; empty: as they are
  // wN and hiX: bits of each quad of places, falling.
  std::vector<uint8_t> widths;  // [padded_dim / 4]
  // 2^(bits - 1) at each place, the middle of its codes.
  std::vector<float> centres;         // [padded_dim]
  std::vector<uint8_t> centre_bytes;  // the same
  // 8-bit floats with `cal`: the scale of all pages.
  float page_scale = 0;
  // nuqB with `cal`: integers of magnitude up to 63, ascending, the same for all heads of a layer,
  // and one of them in half-ranges. Keys in groups of a channel: its range.
  std::vector<float> levels;  // [2^bits]
  float step = 0;
  std::vector<float> low, high;  // [padded_dim]
};

// Whether a side of this recipe needs a calibration.
bool NeedsCalibration(const Side& side);
bool NeedsCalibration(const Recipe& recipe);
// The recipe with the calibration's hash, if it needs one and names none yet.
Recipe WithCalibration(Recipe recipe, const std::string& hash);

// The tables of a side, keys or values. REQUIRES: the calibration fits the shape; `format` is a
// side of it.
HeadTables TablesOf(const SideFormat& format, const LayerStatistics& layer, int head);

// The side's levels: learned ones, or those of its codec. [2^bits]
const float* LevelsOf(const SideFormat& format, const HeadTables& tables);

// The scale of 8-bit floats that a recipe gives or a calibration makes constant; 0: the page's own.
float GivenScale(const SideFormat& format, const HeadTables& tables);

// Stands in for a calibration where there is no model, as in benchmarks: a balance of 1, and
// spreads that fall by a factor of 32 from the first channel to the last; means of 0, ranges of
// four spreads.
Calibration NeutralCalibration(const Shape& shape);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_HEAD_TABLES_H_
