// Weights: a model's tensors where ggml's CPU backend wants them.
//
// Native precision uses the mapped file in place, except matrices that a buffer type of the backend
// repacks for faster products: those are copied once. f32 expands every weight, so that products do
// not round activations to 8 bits: what quality is measured with.
// The GgufFile outlives the weights.
// Thread-safety: immutable once loaded.
#ifndef SHORTHAND_MODEL_WEIGHTS_H_
#define SHORTHAND_MODEL_WEIGHTS_H_

#include <ggml-backend.h>
#include <ggml.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "model/gguf_file.h"
#include "model/hyperparams.h"
#include "shorthand/status.h"

namespace shorthand {

enum class Precision { kNative, kF32 };

// Null where the architecture has no such tensor. Matrices are [inputs][outputs] in ggml's order.
struct LayerWeights {
  ggml_tensor* attention_norm = nullptr;
  ggml_tensor* q = nullptr;
  ggml_tensor* k = nullptr;
  ggml_tensor* v = nullptr;
  ggml_tensor* q_bias = nullptr;
  ggml_tensor* k_bias = nullptr;
  ggml_tensor* v_bias = nullptr;
  ggml_tensor* q_norm = nullptr;
  ggml_tensor* k_norm = nullptr;
  ggml_tensor* attention_out = nullptr;
  ggml_tensor* attention_post_norm = nullptr;
  ggml_tensor* ffn_norm = nullptr;
  ggml_tensor* ffn_gate = nullptr;
  ggml_tensor* ffn_up = nullptr;
  ggml_tensor* ffn_down = nullptr;
  ggml_tensor* ffn_post_norm = nullptr;
};

struct WeightTable {
  ggml_tensor* embedding = nullptr;  // [width][vocabulary]
  ggml_tensor* rope_factors = nullptr;
  ggml_tensor* output_norm = nullptr;
  ggml_tensor* output = nullptr;  // [width][vocabulary]; the embedding's numbers if tied
  std::vector<LayerWeights> layers;
};

class WeightsImpl;

class Weights {
 public:
  // Errors: kDataLoss with the name of a tensor that is missing or has other dimensions;
  // kUnimplemented for a tensor type that cannot be computed with; kResourceExhausted.
  static Result<std::unique_ptr<Weights>> Load(const GgufFile& file, const Hyperparams& hyper,
                                               Precision precision);
  ~Weights();
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  const WeightTable& table() const;
  // Bytes that were copied rather than used from the file.
  uint64_t copied_bytes() const;

 private:
  explicit Weights(std::unique_ptr<WeightsImpl> impl);
  std::unique_ptr<WeightsImpl> impl_;
};

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_WEIGHTS_H_
