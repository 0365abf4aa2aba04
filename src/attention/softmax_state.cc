#include "attention/softmax_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace shorthand {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504088896341f;

// 2^a, 2^b and 2^c by the kernels' own exp2, so that all results share one.
struct Factors {
  float a, b, c;
};
Factors Exp2(const KernelTable& kernels, float a, float b, float c) {
  alignas(64) float x[16] = {a, b, c};
  kernels.exp2(x, 16);
  return {x[0], x[1], x[2]};
}

}  // namespace

void SoftmaxStates::Clear() {
  std::memset(memory_, 0, OutputFloats() * sizeof(float));
  for (int i = 0; i < kSpaces * rows_; ++i) *state(kModel, i) = {kNothing, 0.0f};
}

void SoftmaxStates::Join(const KernelTable& kernels, const SoftmaxStates& later) {
  kernels.join(later.state(kModel, 0), later.out(kModel, 0), kSpaces * rows_, dim_,
               state(kModel, 0), out(kModel, 0));
}

bool SoftmaxStates::Finish(const KernelTable& kernels, int row, int hadamard, float sink_logit,
                           int out_dim, float* result) {
  const RowState& model = *state(kModel, row);
  const RowState& rotated = *state(kRotated, row);
  const float sink = sink_logit * kLog2E;
  const float max = std::max({model.max, rotated.max, sink});
  if (std::max(model.max, rotated.max) == kNothing) {
    std::fill_n(result, out_dim, 0.0f);
    return model.sum == 0 && rotated.sum == 0;  // else NaN scores alone were seen
  }
  const Factors f = Exp2(kernels, model.max - max, rotated.max - max, sink - max);
  const float sum = model.sum * f.a + rotated.sum * f.b + f.c;
  float* rotated_out = out(kRotated, row);
  if (hadamard > 0) kernels.hadamard(rotated_out, out_dim, hadamard);
  const float* model_out = out(kModel, row);
  for (int c = 0; c < out_dim; ++c) {
    result[c] = (model_out[c] * f.a + rotated_out[c] * f.b) / sum;
  }
  return std::isfinite(max) && std::isfinite(sum);
}

}  // namespace shorthand
