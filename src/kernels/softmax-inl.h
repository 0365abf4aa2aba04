// One page's step of the running softmax of one row. Compiled per target, after that target's ops
// file.
//
// A NaN score takes no part in the maximum and makes its own weight and the sum NaN; a score of
// +infinity makes its weight NaN. A row that has seen only -infinity has weights and sum 0.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_SOFTMAX_INL_H_
#define SHORTHAND_KERNELS_SOFTMAX_INL_H_

#include "kernels/elements-inl.h"
#include "kernels/math-inl.h"

namespace shorthand {
namespace {

// score * log2(e), after scale, bias and soft-cap.
inline F32 Base2Score(const ScoreParams& params, float bias, F32 score) {
  const F32 s = Fma(Set(params.scale), score, Set(bias));
  if (params.softcap == 0.0f) return Mul(s, Set(kLog2E));
  const F32 tanh = TanhOfScaled(Mul(s, Set(2.0f * kLog2E / params.softcap)));
  return Mul(tanh, Set(params.softcap * kLog2E));
}

float Softmax(const ScoreParams& params, float bias, int first, int end, float* scores,
              RowState* state) {
  const int first_tile = first / kLanes;
  const int end_tile = (end + kLanes - 1) / kLanes;
  F32 top = Set(state->max);
  for (int tile = first_tile; tile < end_tile; ++tile) {
    float* lanes = scores + tile * kLanes;
    const F32 token = Add(Iota(), Set(static_cast<float>(tile * kLanes)));
    const F32 hidden = Set(-kInfinity);
    F32 x = Base2Score(params, bias, Load(lanes));
    x = IfLess(token, Set(static_cast<float>(end)), x, hidden);
    x = IfLess(token, Set(static_cast<float>(first)), hidden, x);
    top = Max(x, top);
    Store(x, lanes);
  }
  const float max = MaxOfLanes(top);
  // Any finite reference will do where there is nothing but -infinity.
  const F32 reference = Set(max == -kInfinity ? 0.0f : max);
  F32 sum = Set(0.0f);
  for (int tile = 0; tile < kPageSlots / kLanes; ++tile) {
    float* lanes = scores + tile * kLanes;
    F32 weight = Set(0.0f);
    if (tile >= first_tile && tile < end_tile) weight = Exp2(Sub(Load(lanes), reference));
    sum = Add(sum, weight);
    Store(weight, lanes);
  }
  const float shrink = state->max == -kInfinity ? 1.0f : FirstLane(Exp2(Set(state->max - max)));
  state->sum = __builtin_fmaf(state->sum, shrink, SumOfLanes(sum));
  state->max = max;
  return shrink;
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SOFTMAX_INL_H_
