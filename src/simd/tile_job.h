// What a product of tiles multiplies (OPS.md). Included by target files: only <cstddef> and
// <cstdint> are included here. Thread-safety: plain data.
#ifndef SHORTHAND_SIMD_TILE_JOB_H_
#define SHORTHAND_SIMD_TILE_JOB_H_

#include <cstddef>
#include <cstdint>

namespace shorthand {

// The bytes of streams, which are multiplied by codes of the other kind.
enum class Streams { kSigned, kUnsigned };

// Rows of streams, one or two limbs each, times lane tiles of codes. A quad is four bytes of a
// stream and a line of codes: four bytes for each of 16 lanes.
struct TileJob {
  int rows;         // at most 16
  int chunk_quads;  // multiplied at once: a multiple of 4, at most 16
  int lane_tiles = 0;
  int quads = 0;                     // a multiple of chunk_quads
  int low_quads = 0;                 // those whose low limbs count; behind them low limbs are 0
  const uint8_t* streams = nullptr;  // of the first row, low limb
  size_t row_stride, limb_stride;
  const uint8_t* lines = nullptr;  // the quads of the first lane tile, one behind the other
  size_t tile_stride;              // from lane tile to lane tile
  int32_t* sums = nullptr;         // of the first row, low limb: 16 a lane tile
  size_t sum_row_stride, sum_limb_stride;
};

}  // namespace shorthand

#endif  // SHORTHAND_SIMD_TILE_JOB_H_
