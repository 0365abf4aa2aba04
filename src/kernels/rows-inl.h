// Token rows of f32 into exact pages. Compiled per target, after that target's ops file.
//
// Keys stand with tokens on the lanes: 16 rows of a whole tile are transposed in registers, single
// rows are scattered.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_ROWS_INL_H_
#define SHORTHAND_KERNELS_ROWS_INL_H_

#include "kernels/elements-inl.h"

namespace shorthand {
namespace {

// Rounds and stores, and remembers whether a value became infinite or was none.
template <typename Elements>
class Narrower {
 public:
  inline void StoreLanes(F32 x, typename Elements::Type* p) {
    misfits_ = IfLess(Magnitude(x), Set(Elements::kLimit), misfits_, Set(1.0f));
    Elements::StoreLanes(x, p);
  }
  bool all_fit() const { return MaxOfLanes(misfits_) == 0; }

 private:
  F32 misfits_ = Set(0.0f);
};

// x[c .. c+15], zeros from `dim` on.
inline F32 LoadChannels(const float* x, int c, int dim) {
  if (c + kLanes <= dim) return Load(x + c);
  float lanes[kLanes] = {};
  for (int i = 0; c + i < dim; ++i) lanes[i] = x[c + i];
  return Load(lanes);
}

inline int PaddedDim(int dim) { return (dim + kLanes - 1) / kLanes * kLanes; }

// Sixteen rows to a whole tile [padded][16].
template <typename Elements>
inline void WriteKeyTile(const float* k, size_t stride, int dim, typename Elements::Type* tile,
                         Narrower<Elements>* narrower) {
  for (int c = 0; c < dim; c += kLanes) {
    F32 rows[kLanes];
    for (int i = 0; i < kLanes; ++i) rows[i] = LoadChannels(k + i * stride, c, dim);
    Transpose(rows);
    for (int i = 0; i < kLanes; ++i) narrower->StoreLanes(rows[i], tile + (c + i) * kLanes);
  }
}

// One row to one lane of a tile.
template <typename Elements>
inline void WriteKeyLane(const float* k, int dim, typename Elements::Type* lane,
                         Narrower<Elements>* narrower) {
  for (int c = 0; c < dim; c += kLanes) {
    typename Elements::Type elements[kLanes];
    narrower->StoreLanes(LoadChannels(k, c, dim), elements);
    for (int i = 0; i < kLanes; ++i) lane[(c + i) * kLanes] = elements[i];
  }
}

bool WriteKeys(Element element, const float* k, size_t stride, int rows, int dim, int first,
               void* keys) {
  bool fit = true;
  WithElements(element, [&](auto elements) {
    using Elements = decltype(elements);
    Narrower<Elements> narrower;
    const int padded = PaddedDim(dim);
    for (int row = first; row < first + rows;) {
      const float* from = k + (row - first) * stride;
      auto* tile = static_cast<typename Elements::Type*>(keys) +
                   static_cast<size_t>(row / kLanes) * padded * kLanes;
      if (row % kLanes == 0 && row + kLanes <= first + rows) {
        WriteKeyTile<Elements>(from, stride, dim, tile, &narrower);
        row += kLanes;
      } else {
        WriteKeyLane<Elements>(from, dim, tile + row % kLanes, &narrower);
        ++row;
      }
    }
    fit = narrower.all_fit();
  });
  return fit;
}

bool WriteValues(Element element, const float* v, size_t stride, int rows, int dim, int first,
                 void* values) {
  bool fit = true;
  WithElements(element, [&](auto elements) {
    using Elements = decltype(elements);
    Narrower<Elements> narrower;
    const int padded = PaddedDim(dim);
    auto* to = static_cast<typename Elements::Type*>(values) + static_cast<size_t>(first) * padded;
    for (int row = 0; row < rows; ++row, v += stride, to += padded) {
      for (int c = 0; c < dim; c += kLanes) narrower.StoreLanes(LoadChannels(v, c, dim), to + c);
    }
    fit = narrower.all_fit();
  });
  return fit;
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_ROWS_INL_H_
