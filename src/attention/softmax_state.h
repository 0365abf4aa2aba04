// SoftmaxStates: the unfinished attention of a block of rows over a run of pages, and how two are
// joined.
//
// Sealed pages whose values were rotated before coding add up in the rotated space, exact pages in
// the model's; each space has its own maximum, sum and output, and they meet once, when a row is
// finished. Joining runs of pages in position order gives the same bits however they were split
// among workers.
// Thread-safety: a view over the caller's memory.
#ifndef SHORTHAND_ATTENTION_SOFTMAX_STATE_H_
#define SHORTHAND_ATTENTION_SOFTMAX_STATE_H_

#include <cstddef>

#include "kernels/kernels.h"

namespace shorthand {

class SoftmaxStates {
 public:
  enum Space { kModel = 0, kRotated = 1 };
  static constexpr int kSpaces = 2;

  // Floats of memory that `rows` rows with outputs of `dim` channels take: whole lines.
  static size_t Floats(int rows, int dim) {
    const size_t row = static_cast<size_t>(dim) + sizeof(RowState) / sizeof(float);
    return (kSpaces * rows * row + 15) / 16 * 16;
  }

  SoftmaxStates(float* memory, int rows, int dim) : memory_(memory), rows_(rows), dim_(dim) {}

  void Clear();
  // this <- this joined with `later`, the states of pages behind.
  void Join(const KernelTable& kernels, const SoftmaxStates& later);
  // Divides, undoes a Hadamard transform of `hadamard` channels (0: none) in the rotated space and
  // writes the first `out_dim` channels. A row that saw nothing becomes zeros.
  // False if scores beyond the range of f32 left no finite result.
  //   sink_logit: joins the denominator; -inf: none
  bool Finish(const KernelTable& kernels, int row, int hadamard, float sink_logit, int out_dim,
              float* out);

  RowState* state(Space space, int row) const {
    return reinterpret_cast<RowState*>(memory_ + OutputFloats()) + space * rows_ + row;
  }
  float* out(Space space, int row) const {
    return memory_ + (static_cast<size_t>(space) * rows_ + row) * dim_;
  }

 private:
  size_t OutputFloats() const { return static_cast<size_t>(kSpaces) * rows_ * dim_; }

  float* memory_;  // [space][row][dim] outputs, [space][row] RowState
  int rows_;
  int dim_;
};

}  // namespace shorthand

#endif  // SHORTHAND_ATTENTION_SOFTMAX_STATE_H_
