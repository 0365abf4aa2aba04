// Weighted sums of a pass's rows over the values of one page. Lane = channel; each output is summed
// over the tokens in order. Compiled per target, after that target's ops file.
//
// A block of rows times channel tiles keeps its sums in registers while the tokens go by.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_ACCUMULATE_INL_H_
#define SHORTHAND_KERNELS_ACCUMULATE_INL_H_

#include "kernels/elements-inl.h"

namespace shorthand {
namespace {

// Elements that values are prefetched ahead. Pages are read front to back and lie one behind the
// other, also from one page to the next; the processor's own prefetching stops at every 4 KiB.
inline constexpr int kAheadElements = 8192;

// What stays the same over the blocks of one call.
struct AccumulateRange {
  const float* weights;  // [rows][128]
  const float* shrink;   // [rows]
  int first, end;        // tokens
  int dim;
};

//   v  [128][dim] and out [kRows][dim], both at the block's first channel
template <typename Elements, int kRows, int kTiles>
inline void AccumulateBlock(const AccumulateRange& range, const typename Elements::Type* v,
                            float* out) {
  const int dim = range.dim;
  F32 sum[kRows][kTiles];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const F32 shrink = Set(range.shrink[r]);
#pragma GCC unroll 8
    for (int c = 0; c < kTiles; ++c) sum[r][c] = Mul(Load(out + r * dim + c * kLanes), shrink);
  }
  for (int t = range.first; t < range.end; ++t) {
    const typename Elements::Type* token = v + static_cast<size_t>(t) * dim;
#pragma GCC unroll 8
    for (int c = 0; c < kTiles * kLanes; c += kLine / sizeof(*v)) {
      Prefetch(token + kAheadElements + c);
    }
    AddProducts(
        sum, [&](int r) { return range.weights[r * kPageSlots + t]; },
        [&](int c) { return Elements::LoadLanes(token + c * kLanes); });
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kTiles; ++c) Store(sum[r][c], out + r * dim + c * kLanes);
  }
}

// The channels from `channel` on: as many blocks of kTiles tiles as fit, then smaller ones.
template <typename Elements, int kRows, int kTiles>
inline void AccumulateTiles(const AccumulateRange& range, const typename Elements::Type* v,
                            int channel, float* out) {
  for (; range.dim - channel >= kTiles * kLanes; channel += kTiles * kLanes) {
    AccumulateBlock<Elements, kRows, kTiles>(range, v + channel, out + channel);
  }
  if constexpr (kTiles > 1) {
    AccumulateTiles<Elements, kRows, kTiles / 2>(range, v, channel, out);
  }
}

void Accumulate(Element element, const void* v, const float* weights, const float* shrink,
                int first, int end, int dim, int rows, float* out) {
  WithElements(element, [&](auto elements) {
    using Elements = decltype(elements);
    ForRowBlocks(rows, [&](int row, auto block) {
      constexpr int kRows = decltype(block)::value;
      const AccumulateRange range = {weights + row * kPageSlots, shrink + row, first, end, dim};
      AccumulateTiles<Elements, kRows, TilesFor(kRows)>(
          range, static_cast<const typename Elements::Type*>(v), 0, out + row * dim);
    });
  });
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_ACCUMULATE_INL_H_
