// Hyperparams: what a GGUF file's metadata says about a model's architecture, checked.
//
// An architecture is one row of the table in hyperparams.cc: the graph is the same for all and is
// driven by what stands here (docs/adding-a-model.md).
// Thread-safety: values and pure functions.
#ifndef SHORTHAND_MODEL_HYPERPARAMS_H_
#define SHORTHAND_MODEL_HYPERPARAMS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_file.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

enum class Activation { kSilu, kGelu };

// What an architecture always has; the rest is metadata.
struct Architecture {
  std::string_view name;          // general.architecture
  int rope_style = 0;             // GGML_ROPE_TYPE_*
  bool qkv_bias = false;          // blk.N.attn_{q,k,v}.bias
  bool qk_norm = false;           // blk.N.attn_{q,k}_norm.weight, over each head
  bool post_norms = false;        // blk.N.post_{attention,ffw}_norm.weight
  bool scaled_embedding = false;  // by the square root of the width
  Activation activation = Activation::kSilu;
  int full_attention_period = 1;  // every n-th layer sees everything, the others a window
  float window_rope_base = 0;     // RoPE base of windowed layers
};

// RoPE as ggml_rope_ext takes it.
struct RopeParams {
  int style = 0;
  int dims = 0;
  float base = 0;
  float scale = 1;  // of positions: 1 / factor
  float extrapolation = 0;
  float attention_factor = 1;
  float beta_fast = 32;
  float beta_slow = 1;
  int original_context_tokens = 0;
};

struct Hyperparams {
  const Architecture* architecture = nullptr;
  int width = 0;       // of the residual stream
  int vocabulary = 0;  // rows of the embedding
  float norm_epsilon = 0;
  float final_softcap = 0;  // of logits; 0: none
  Shape shape;
  std::vector<RopeParams> rope;  // [layers]
};

// Errors: kUnimplemented with the name of an unknown architecture or a feature that is not
// supported; kDataLoss for metadata that is missing, of a wrong type or absurd.
Result<Hyperparams> ReadHyperparams(const GgufFile& file);

// What the planner needs of a model; no weights are loaded.
struct GgufSummary {
  Shape shape;
  uint64_t tensor_bytes = 0;
};
// Errors: those of GgufFile::Open and ReadHyperparams.
Result<GgufSummary> ShapeFromGguf(const std::string& path);

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_HYPERPARAMS_H_
