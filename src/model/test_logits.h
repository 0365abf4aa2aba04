// Logits of every position, ours and llama.cpp's, for tests that compare them.
// Thread-safety: pure functions.
#ifndef SHORTHAND_MODEL_TEST_LOGITS_H_
#define SHORTHAND_MODEL_TEST_LOGITS_H_

#include <ggml.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"

namespace shorthand::testing {

using TensorVisitor = std::function<void(const ggml_tensor&)>;

// llama.cpp's logits after each of `tokens`, [tokens][vocabulary], over an f32 cache. `visit` sees
// every tensor of the computation once it is computed.
std::vector<float> LlamaLogits(const std::string& path, std::vector<Token> tokens,
                               TensorVisitor visit = {});

// Ours, fed in chunks of `chunk` tokens.
std::vector<float> OurLogits(Model& model, std::span<const Token> tokens, size_t chunk,
                             const std::string& recipe_text = "k=f32,v=f32");

struct Agreement {
  double same_top = 0;  // share of positions
  float largest_difference = 0;
};
Agreement Compare(std::span<const float> a, std::span<const float> b, size_t vocabulary);

}  // namespace shorthand::testing

#endif  // SHORTHAND_MODEL_TEST_LOGITS_H_
