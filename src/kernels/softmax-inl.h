// One page's step of the running softmax of a pass's rows, and how the softmax of two runs of pages
// becomes one. Compiled per target, after that target's ops file.
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

// kRows rows side by side, so that none waits for its own chain of sums.
template <int kRows>
inline void SoftmaxRows(const ScoreParams& params, const RowView* views, float* scores,
                        RowState* states, float* shrink) {
  // Tiles that any row sees, and those that all rows see whole.
  int first = kPageSlots, end = 0, all_from = 0, all_to = kPageSlots;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    all_from = views[r].first > all_from ? views[r].first : all_from;
    all_to = views[r].end < all_to ? views[r].end : all_to;
    if (views[r].first >= views[r].end) continue;
    first = views[r].first < first ? views[r].first : first;
    end = views[r].end > end ? views[r].end : end;
  }
  const int first_tile = first / kLanes * kLanes;
  F32 top[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) top[r] = Set(states[r].max);
  for (int tile = first_tile; tile < end; tile += kLanes) {
    Step(params.ahead);
    const bool whole = tile >= all_from && tile + kLanes <= all_to;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      float* lanes = scores + r * kPageSlots + tile;
      F32 x = Base2Score(params, views[r].bias, Load(lanes));
      if (!whole) {
        const F32 token = Add(Iota(), Set(static_cast<float>(tile)));
        const F32 hidden = Set(-kInfinity);
        x = IfLess(token, Set(static_cast<float>(views[r].end)), x, hidden);
        x = IfLess(token, Set(static_cast<float>(views[r].first)), hidden, x);
      }
      top[r] = Max(x, top[r]);
      Store(x, lanes);
    }
  }

  // How far the maxima rose, by one exp2 for all rows.
  alignas(64) float rise[kLanes] = {};
  F32 reference[kRows], sum[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const float max = MaxOfLanes(top[r]);
    if (states[r].max != -kInfinity) rise[r] = states[r].max - max;
    // Any finite reference will do where there is nothing but -infinity.
    reference[r] = Set(max == -kInfinity ? 0.0f : max);
    states[r].max = max;
    sum[r] = Set(0.0f);
  }
  Store(Exp2OfWeight(Load(rise)), rise);
  for (int tile = 0; tile < kPageSlots; tile += kLanes) {
    Step(params.ahead);
    const bool seen = tile >= first_tile && tile < end;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      float* lanes = scores + r * kPageSlots + tile;
      const F32 weight = seen ? Exp2OfWeight(Sub(Load(lanes), reference[r])) : Set(0.0f);
      sum[r] = Add(sum[r], weight);
      Store(weight, lanes);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    shrink[r] = rise[r];
    states[r].sum = __builtin_fmaf(states[r].sum, rise[r], SumOfLanes(sum[r]));
  }
}

void Softmax(const ScoreParams& params, const RowView* views, int rows, float* scores,
             RowState* states, float* shrink) {
  ForFours(rows, [&](int row, auto block) {
    SoftmaxRows<decltype(block)::value>(params, views + row, scores + row * kPageSlots,
                                        states + row, shrink + row);
  });
}

bool SawNothing(const RowState& state) { return state.max == -kInfinity && state.sum == 0.0f; }

void Join(const RowState* later_states, const float* later_out, int rows, int dim, RowState* states,
          float* out) {
  for (int r = 0; r < rows; ++r, later_out += dim, out += dim) {
    const RowState later = later_states[r];
    if (SawNothing(later)) continue;
    if (SawNothing(states[r])) {
      states[r] = later;
      __builtin_memcpy(out, later_out, sizeof(float) * static_cast<size_t>(dim));
      continue;
    }
    const float max = states[r].max < later.max ? later.max : states[r].max;
    const F32 shrink = Exp2(Set(states[r].max - max)), later_shrink = Exp2(Set(later.max - max));
    const auto joined = [&](F32 a, F32 b) { return Add(Mul(a, shrink), Mul(b, later_shrink)); };
    alignas(64) float sums[kLanes];
    Store(joined(Set(states[r].sum), Set(later.sum)), sums);
    states[r] = {max, sums[0]};
    for (int c = 0; c < dim; c += kLanes) {
      Store(joined(Load(out + c), Load(later_out + c)), out + c);
    }
  }
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SOFTMAX_INL_H_
