// Scores of a pass's rows against the exact keys of one page. Lane = token; each score is summed
// over the channels in order. Compiled per target, after that target's ops file.
//
// A block of rows times tiles keeps its sums in registers while the channels go by; a key vector is
// read and widened once for all rows of the block.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_SCORE_INL_H_
#define SHORTHAND_KERNELS_SCORE_INL_H_

#include "kernels/elements-inl.h"

namespace shorthand {
namespace {

//   k  [kTiles][dim][16], q [kRows][dim], scores [kRows][128] at the first tile's tokens
template <typename Elements, int kRows, int kTiles>
inline void ScoreBlock(const typename Elements::Type* k, const float* q, int dim, float* scores) {
  F32 sum[kRows][kTiles];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < kTiles; ++t) sum[r][t] = Set(0.0f);
  }
  constexpr int kVectorsPerLine = kLine / (kLanes * sizeof(*k));
  const size_t tile_elements = static_cast<size_t>(dim) * kLanes;
  for (int c = 0; c < dim; ++c) {
    if (c % kVectorsPerLine == 0) {
#pragma GCC unroll 8
      for (int t = 0; t < kTiles; ++t) {
        Prefetch(k + (kTiles + t) * tile_elements + c * kLanes);
      }
    }
    AddProducts(
        sum, [&](int r) { return q[r * dim + c]; },
        [&](int t) { return Elements::LoadLanes(k + t * tile_elements + c * kLanes); });
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < kTiles; ++t) Store(sum[r][t], scores + r * kPageSlots + t * kLanes);
  }
}

// All tiles of [first, end): as many blocks of kTiles as fit, then smaller ones.
template <typename Elements, int kRows, int kTiles>
inline void ScoreTiles(const typename Elements::Type* k, const float* q, int dim, int first,
                       int end, float* scores) {
  for (; end - first >= kTiles; first += kTiles) {
    ScoreBlock<Elements, kRows, kTiles>(k + static_cast<size_t>(first) * dim * kLanes, q, dim,
                                        scores + first * kLanes);
  }
  if constexpr (kTiles > 1) {
    ScoreTiles<Elements, kRows, kTiles / 2>(k, q, dim, first, end, scores);
  }
}

void Score(Element element, const void* k, const float* q, int dim, int rows, int first_tile,
           int end_tile, float* scores) {
  WithElements(element, [&](auto elements) {
    using Elements = decltype(elements);
    ForRowBlocks(rows, [&](int row, auto block) {
      constexpr int kRows = decltype(block)::value;
      ScoreTiles<Elements, kRows, TilesFor(kRows)>(static_cast<const typename Elements::Type*>(k),
                                                   q + row * dim, dim, first_tile, end_tile,
                                                   scores + row * kPageSlots);
    });
  });
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SCORE_INL_H_
