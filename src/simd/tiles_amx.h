// Products of tiles of bytes (OPS.md) by AMX, after ops_avx512.h.
//
// Instructions are written out because the compiler's own are macros of literal numbers, and GCC's
// loads do not say that they read memory.
// Include it from one target file only; everything is in an anonymous namespace.
// Thread-safety: the registers are the thread's.
#ifndef SHORTHAND_SIMD_TILES_AMX_H_
#define SHORTHAND_SIMD_TILES_AMX_H_

#include "simd/ops_avx512.h"
#include "simd/tile_job.h"

namespace shorthand {
namespace {

inline constexpr size_t kTileRowBytes = 64;

// What the registers hold: 0 and 1 sums, low limb and high; 2 and 3 two chunks of the low limb's
// streams, 4 and 5 of the high one's; 6 and 7 two chunks of codes.
inline void TakeTiles(const TileJob& job) {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (int i = 0; i < 8; ++i) {
    const bool streams = i >= 2 && i <= 5, codes = i >= 6;
    config.row_bytes[i] = static_cast<uint16_t>(streams ? 4 * job.chunk_quads : kTileRowBytes);
    config.rows[i] = static_cast<uint8_t>(codes ? job.chunk_quads : job.rows);
  }
  __asm__ volatile("ldtilecfg %0" : : "m"(config));
}
inline void ReturnTiles() { __asm__ volatile("tilerelease"); }

// What was stored before is seen by the loads of tiles that follow.
inline void StoresDone() { __asm__ volatile("" : : : "memory"); }

template <int kTile>
inline void LoadTile(const uint8_t* p, size_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(kTile));
}
template <int kTile>
inline void ZeroTile() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
template <int kTile>
inline void StoreTile(int32_t* p, size_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
}
template <Streams kStreams, int kSum, int kStream, int kCodes>
inline void AddTileProduct() {
  if constexpr (kStreams == Streams::kSigned) {
    __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0"
                     :
                     : "i"(kSum), "i"(kStream), "i"(kCodes));
  } else {
    __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0"
                     :
                     : "i"(kSum), "i"(kStream), "i"(kCodes));
  }
}

// The streams of the chunk at `quad`, both limbs, to its registers: kChunk is 0 or 1.
template <int kLimbs, int kChunk>
inline void LoadStreams(const TileJob& job, int quad) {
  LoadTile<2 + kChunk>(job.streams + 4 * quad, job.row_stride);
  if constexpr (kLimbs == 2) {
    LoadTile<4 + kChunk>(job.streams + job.limb_stride + 4 * quad, job.row_stride);
  }
}

template <Streams kStreams, int kLimbs, int kChunk>
inline void AddChunk(const TileJob& job, const uint8_t* lines, int quad) {
  LoadTile<6 + kChunk>(lines + quad * kTileRowBytes, kTileRowBytes);
  if (quad < job.low_quads) AddTileProduct<kStreams, 0, 2 + kChunk, 6 + kChunk>();
  if constexpr (kLimbs == 2) AddTileProduct<kStreams, 1, 4 + kChunk, 6 + kChunk>();
}

// kHeld: 1 or 2, so many chunks are all, and their streams stay in registers; 0, any number.
template <Streams kStreams, int kLimbs, int kHeld>
inline void MultiplyChunks(const TileJob& job) {
  const uint8_t* lines = job.lines;
  int32_t* sums = job.sums;
  const size_t stride = sizeof(int32_t) * job.sum_row_stride;
  StoresDone();
  if constexpr (kHeld >= 1) LoadStreams<kLimbs, 0>(job, 0);
  if constexpr (kHeld == 2) LoadStreams<kLimbs, 1>(job, job.chunk_quads);
  for (int tile = 0; tile < job.lane_tiles; ++tile, lines += job.tile_stride, sums += kLanes) {
    ZeroTile<0>();
    if constexpr (kLimbs == 2) ZeroTile<1>();
    if constexpr (kHeld >= 1) AddChunk<kStreams, kLimbs, 0>(job, lines, 0);
    if constexpr (kHeld == 2) AddChunk<kStreams, kLimbs, 1>(job, lines, job.chunk_quads);
    if constexpr (kHeld == 0) {
      for (int quad = 0; quad < job.quads; quad += job.chunk_quads) {
        LoadStreams<kLimbs, 0>(job, quad);
        AddChunk<kStreams, kLimbs, 0>(job, lines, quad);
      }
    }
    StoreTile<0>(sums, stride);
    if constexpr (kLimbs == 2) StoreTile<1>(sums + job.sum_limb_stride, stride);
  }
}

template <Streams kStreams, int kLimbs>
inline void MultiplyTiles(const TileJob& job) {
  static_assert(kLimbs <= 2);
  if (job.quads == 2 * job.chunk_quads) return MultiplyChunks<kStreams, kLimbs, 2>(job);
  if (job.quads == job.chunk_quads) return MultiplyChunks<kStreams, kLimbs, 1>(job);
  MultiplyChunks<kStreams, kLimbs, 0>(job);
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_SIMD_TILES_AMX_H_
