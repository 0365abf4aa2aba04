// RopeOf against the rotation that ggml computes.
#include "model/rope.h"

#include <ggml-alloc.h>
#include <ggml-cpp.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "quant/rotation.h"

namespace shorthand {
namespace {

constexpr int kDims = 64;

// `key` at `position` as ggml_rope_ext rotates it.
std::vector<float> RotatedByGgml(const RopeParams& rope, std::vector<float> factors,
                                 const std::vector<float>& key, int position) {
  const ggml_init_params memory = {ggml_tensor_overhead() * 16 + ggml_graph_overhead() + 65536,
                                   nullptr, false};
  const ggml_context_ptr context(ggml_init(memory));
  ggml_tensor* x = ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, kDims, 1, 1);
  std::copy(key.begin(), key.end(), static_cast<float*>(x->data));
  ggml_tensor* positions = ggml_new_tensor_1d(context.get(), GGML_TYPE_I32, 1);
  *static_cast<int32_t*>(positions->data) = position;
  ggml_tensor* f = nullptr;
  if (!factors.empty()) {
    f = ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, kDims / 2);
    std::copy(factors.begin(), factors.end(), static_cast<float*>(f->data));
  }
  ggml_tensor* y =
      ggml_rope_ext(context.get(), x, positions, f, rope.dims, rope.style,
                    rope.original_context_tokens, rope.base, rope.scale, rope.extrapolation,
                    rope.attention_factor, rope.beta_fast, rope.beta_slow);
  ggml_cgraph* graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, y);
  ggml_graph_compute_with_ctx(context.get(), graph, 1);
  const auto* data = static_cast<const float*>(y->data);
  return {data, data + kDims};
}

TEST(RopeTest, TurnsAsGgmlDoes) {
  std::vector<float> key(kDims), factors(kDims / 2);
  for (int c = 0; c < kDims; ++c) key[c] = static_cast<float>(c % 7) - 2.5f;
  for (int i = 0; i < kDims / 2; ++i) factors[i] = i < 10 ? 1.0f : 8.0f;
  const RopeParams cases[] = {
      {.style = GGML_ROPE_TYPE_NORMAL, .dims = kDims, .base = 10000},
      {.style = GGML_ROPE_TYPE_NEOX, .dims = kDims, .base = 1e6f},
      {.style = GGML_ROPE_TYPE_NEOX, .dims = kDims / 2, .base = 10000},
      {.style = GGML_ROPE_TYPE_NEOX, .dims = kDims, .base = 10000, .scale = 0.125f},
      {.style = GGML_ROPE_TYPE_NORMAL,
       .dims = kDims,
       .base = 10000,
       .scale = 0.25f,
       .extrapolation = 1,
       .original_context_tokens = 4096},
  };
  for (const RopeParams& params : cases) {
    for (const bool with_factors : {false, true}) {
      std::vector<float> f;
      if (with_factors) f.assign(factors.begin(), factors.begin() + params.dims / 2);
      for (int position : {0, 1, 300, 20000}) {
        std::vector<float> expected =
            RotatedByGgml(params, with_factors ? factors : f, key, position);
        std::vector<float> turned = key;
        Rotation(RopeOf(params, f), position).Apply(0, turned.data());
        // YaRN multiplies what it rotates, too.
        const float factor = params.extrapolation == 0 ? 1 : 1 + 0.1f * std::log(1 / params.scale);
        for (int c = 0; c < params.dims; ++c) {
          EXPECT_NEAR(turned[c] * factor, expected[c], 1e-5 + 5e-7 * position)
              << params.style << " " << params.scale << " " << with_factors << " " << position
              << " " << c;
        }
      }
    }
  }
}

}  // namespace
}  // namespace shorthand
