// Products of tiles of bytes (OPS.md) for any CPU, one byte after the other, after ops_scalar.h.
//
// Include it from one target file only; everything is in an anonymous namespace.
// Thread-safety: pure functions.
#ifndef SHORTHAND_SIMD_TILES_SCALAR_H_
#define SHORTHAND_SIMD_TILES_SCALAR_H_

#include "simd/ops_scalar.h"
#include "simd/tile_job.h"

namespace shorthand {
namespace {

inline void TakeTiles(const TileJob&) {}
inline void ReturnTiles() {}

template <Streams kStreams>
inline int32_t ByteProduct(uint8_t stream, uint8_t code) {
  return kStreams == Streams::kSigned ? static_cast<int8_t>(stream) * code
                                      : stream * static_cast<int8_t>(code);
}

template <Streams kStreams, int kLimbs>
inline void MultiplyTiles(const TileJob& job) {
  for (int row = 0; row < job.rows; ++row) {
    for (int limb = 0; limb < kLimbs; ++limb) {
      const uint8_t* stream = job.streams + row * job.row_stride + limb * job.limb_stride;
      const int bytes = 4 * (limb == 0 ? job.low_quads : job.quads);
      for (int lane = 0; lane < job.lane_tiles * kLanes; ++lane) {
        const uint8_t* codes = job.lines + lane / kLanes * job.tile_stride + 4 * (lane % kLanes);
        int32_t sum = 0;
        for (int i = 0; i < bytes; ++i) {
          sum += ByteProduct<kStreams>(stream[i], codes[i / 4 * 4 * kLanes + i % 4]);
        }
        job.sums[row * job.sum_row_stride + limb * job.sum_limb_stride + lane] = sum;
      }
    }
  }
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_SIMD_TILES_SCALAR_H_
