// Scores and outputs of many rows: a page's codes become bytes once, which are then multiplied by
// the streams of up to 16 rows at a time, tile by tile. Compiled for the targets that have such
// products, after their ops file and their tiles file.
//
// The integers are those of score_codes-inl.h, planes-inl.h and accumulate_codes-inl.h, which also
// make floats of them.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_TILES_INL_H_
#define SHORTHAND_KERNELS_TILES_INL_H_

#include "kernels/accumulate_codes-inl.h"
#include "kernels/kernels.h"
#include "kernels/score_codes-inl.h"

namespace shorthand {
namespace {

// The most quads, in fours, that both numbers are multiples of. REQUIRES: both are multiples of 4.
constexpr int ChunkQuads(int a, int b) {
  int quads = 16;
  while (a % quads != 0 || b % quads != 0) quads -= 4;
  return quads;
}

// `quads` quads of kWidth lane tiles to bytes [lane tile][page's quads][64]; `bytes` is the first
// lane tile's first quad, `tile_stride` the bytes of a lane tile. `position`: see PlainCodes.
template <CodesOf kSide, int kBits, int kWidth, typename Codes>
inline void ExpandQuads(const uint8_t* lines, int quads, int position, const Codes& codes,
                        ReadAhead* ahead, size_t tile_stride, uint8_t* bytes) {
  for (int quad = 0; quad < quads; quad += kGroupTiles / kWidth) {
    U32 tiles[kGroupTiles];
    Step(ahead);
    ExpandTiles<kBits>(lines, tiles);
    lines += kBits * kLine;
#pragma GCC unroll 8
    for (int i = 0; i < kGroupTiles; ++i) {
      const int at = quad + i / kWidth;
      StoreLine(codes.template Get<kSide>(tiles[i], position + 4 * at),
                bytes + i % kWidth * tile_stride + at * kLine);
    }
  }
}

// The quads of one width, eight token tiles each.
template <int kBits>
inline void ExpandPlane(const CodedSide8& k, int quads, const uint8_t** lines, uint8_t** bytes) {
  ExpandQuads<CodesOf::kKeys, kBits, kGroupTiles>(*lines, quads, 0, PlainCodes(k), k.ahead,
                                                  static_cast<size_t>(k.dim) * kLanes, *bytes);
  *lines += static_cast<size_t>(quads) * kBits * kLine;
  *bytes += static_cast<size_t>(quads) * kLine;
}

void ExpandPlanes(const CodedSide8& k, uint8_t* bytes) {
  const uint8_t* lines = k.lines;
  static_assert(kPlaneWidths == 6);
  ExpandPlane<8>(k, k.planes->quads[0], &lines, &bytes);
  ExpandPlane<6>(k, k.planes->quads[1], &lines, &bytes);
  ExpandPlane<5>(k, k.planes->quads[2], &lines, &bytes);
  ExpandPlane<4>(k, k.planes->quads[3], &lines, &bytes);
  ExpandPlane<3>(k, k.planes->quads[4], &lines, &bytes);
  ExpandPlane<2>(k, k.planes->quads[5], &lines, &bytes);
}

// Lanes in pairs of tiles that alternate, the last one perhaps alone.
template <CodesOf kSide>
inline void ExpandPairs(const CodedSide8& side, int lanes, int positions, uint8_t* bytes) {
  const int quads = positions / 4, paired = lanes / (2 * kLanes) * 2;
  const size_t tile_stride = static_cast<size_t>(quads) * kLine;
  WithCodes<kSide>(side, [&](auto bits, const auto& codes) {
    constexpr int kBits = decltype(bits)::value;
    for (int tile = 0; tile < lanes / kLanes; tile += 2, bytes += 2 * tile_stride) {
      const uint8_t* lines = side.lines + tile * quads / kGroupTiles * kBits * kLine;
      const bool grouped = kSide == CodesOf::kValues && !side.per_channel;
      const int position = grouped ? tile * kLanes / side.group * positions : 0;
      if (tile < paired) {
        ExpandQuads<kSide, kBits, 2>(lines, quads, position, codes, side.ahead, tile_stride, bytes);
      } else {
        ExpandQuads<kSide, kBits, 1>(lines, quads, position, codes, side.ahead, tile_stride, bytes);
      }
    }
  });
}

void ExpandKeys(const CodedSide8& k, uint8_t* bytes) {
  if (k.planes != nullptr) return ExpandPlanes(k, bytes);
  ExpandPairs<CodesOf::kKeys>(k, kPageSlots, k.dim, bytes);
}

void ExpandValues(const CodedSide8& v, uint8_t* bytes) {
  ExpandPairs<CodesOf::kValues>(v, v.dim, kPageSlots, bytes);
}

void ScoreTiles(const CodedSide8& k, const uint8_t* bytes, const FoldedQueries& q, int rows,
                int first_tile, int end_tile, float* scores) {
  alignas(64) int32_t sums[kMaxPassRows * kMaxLimbs * kPageSlots];
  const int quads = k.dim / 4, group_quads = k.per_channel ? quads : k.group / 4;
  const int fold_tiles = k.per_channel ? k.group / kLanes : kPageSlots / kLanes;
  TileJob job = {.rows = rows,
                 .chunk_quads = ChunkQuads(group_quads, quads),
                 .row_stride = static_cast<size_t>(kMaxLimbs) * k.dim,
                 .limb_stride = static_cast<size_t>(k.dim),
                 .tile_stride = static_cast<size_t>(k.dim) * kLanes,
                 .sum_row_stride = static_cast<size_t>(q.limbs) * kPageSlots,
                 .sum_limb_stride = kPageSlots};
  TakeTiles(job);
  WithLimbs(q.limbs, [&](auto limbs) {
    constexpr int kLimbs = decltype(limbs)::value;
    for (int first = 0, group = 0; first < quads; first += group_quads, ++group) {
      job.quads = group_quads < quads - first ? group_quads : quads - first;
      job.low_quads = k.planes != nullptr ? q.fine_quads : job.quads;
      for (int tile = first_tile; tile < end_tile; tile += job.lane_tiles) {
        const int fold = tile / fold_tiles, fold_end = (fold + 1) * fold_tiles;
        job.lane_tiles = (fold_end < end_tile ? fold_end : end_tile) - tile;
        job.streams =
            reinterpret_cast<const uint8_t*>(q.bytes) + fold * rows * job.row_stride + 4 * first;
        job.lines = bytes + tile * job.tile_stride + first * kLine;
        job.sums = sums + tile * kLanes;
        MultiplyTiles<Streams::kSigned, kLimbs>(job);
      }
      FinishScores<kLimbs>(k, q, rows, group, {first_tile, end_tile}, sums, scores);
    }
  });
  ReturnTiles();
}

// Tokens that no row sees have weights of 0.
void AccumulateTiles(const CodedSide8& v, const uint8_t* bytes, const FoldedWeights& w,
                     const float* shrink, int rows, float* out) {
  alignas(64) int32_t sums[kMaxPassRows * kMaxLimbs * kMaxDim];
  const int tokens = v.per_channel ? v.group : kPageSlots;
  const int group_channels = v.per_channel ? v.dim : v.group;
  TileJob job = {.rows = rows,
                 .chunk_quads = ChunkQuads(tokens / 4, tokens / 4),
                 .quads = tokens / 4,
                 .low_quads = tokens / 4,
                 .row_stride = kMaxLimbs * kPageSlots,
                 .limb_stride = kPageSlots,
                 .tile_stride = kPageSlots * kLanes,
                 .sum_row_stride = static_cast<size_t>(w.limbs) * v.dim,
                 .sum_limb_stride = static_cast<size_t>(v.dim)};
  TakeTiles(job);
  WithLimbs(w.limbs, [&](auto limbs) {
    constexpr int kLimbs = decltype(limbs)::value;
    for (int token = 0, token_group = 0; token < kPageSlots; token += tokens, ++token_group) {
      for (int channel = 0, group = 0; channel < v.dim; channel += group_channels, ++group) {
        const int channels = group_channels < v.dim - channel ? group_channels : v.dim - channel;
        job.lane_tiles = channels / kLanes;
        job.streams = w.bytes + group * rows * job.row_stride + token;
        job.lines = bytes + channel / kLanes * job.tile_stride + token / 4 * kLine;
        job.sums = sums + channel;
        MultiplyTiles<Streams::kUnsigned, kLimbs>(job);
      }
      AddValues<kLimbs>(v, w, shrink, rows, token_group, sums, out);
    }
  });
  ReturnTiles();
}

inline constexpr TileKernels kTileKernels = {ExpandKeys, ExpandValues, ScoreTiles, AccumulateTiles};

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_TILES_INL_H_
