// Architectures: which rules turn the config.json of a model family into layers. One row a family;
// adding one is adding a row, and a rule only if none fits.
// Thread-safety: the table is immutable.
#ifndef SHORTHAND_PLAN_FAMILY_H_
#define SHORTHAND_PLAN_FAMILY_H_

#include <span>
#include <string>
#include <string_view>

namespace shorthand {

// Where the number of KV heads and their widths come from.
enum class HeadRule {
  kGrouped,     // num_key_value_heads, else one for each query head; head_dim or hidden / heads
  kMultiQuery,  // one KV head if multi_query (GPT-BigCode, Falcon's old decoder)
  kLatent,      // MLA: kv_lora_rank + qk_rope_head_dim values a layer, stored once
  kWindowOwn,   // v_head_dim, and windowed layers have widths and heads of their own (MiMo V2)
  kGlobalOwn,   // full layers have widths and heads of their own (Gemma 4)
};

// Which layers look back how far. An explicit layer_types list always wins.
enum class WindowRule {
  kNone,            // full attention everywhere
  kEverywhere,      // sliding_window, if given, in every layer (Mistral, Phi 3)
  kOptIn,           // in layers from max_window_layers on, only if use_sliding_window (Qwen 2)
  kAlternating,     // even layers (Gemma 2, gpt-oss)
  kPattern,         // all but each sliding_window_pattern-th, which is 6 if absent (Gemma 3)
  kHybridList,      // hybrid_layer_pattern: 1 is windowed (MiMo V2)
  kChunked,         // attention_chunk_size in layers with RoPE: all but each fourth (Llama 4)
  kLinearInterval,  // linear attention but each full_attention_interval-th (Qwen 3.5)
  kMambaPattern,    // hybrid_override_pattern: * is attention (Nemotron H)
  kListed,          // layer_types is required
};

enum class FeedForward {
  kUnknown,   // the weights of this family are not counted
  kGated,     // three matrices
  kPlain,     // two matrices with biases (GPT-2, GPT-NeoX)
  kExperts,   // gated experts and a router in every layer, or all but some
  kDeepSeek,  // dense in the first layers, then shared and routed experts
  kGptOss,    // gated experts with biases
};

// What the number of weights is computed from.
struct WeightRule {
  FeedForward feed_forward = FeedForward::kUnknown;
  int norms = 2;  // of the hidden width, in a layer
  bool qkv_bias = false;
  bool output_bias = false;
  bool head_norms = false;  // of queries and keys
  bool norm_bias = false;
  bool sinks = false;      // a logit for each query head
  bool positions = false;  // learned position embeddings
  bool tied = false;       // output matrix = embedding, if tie_word_embeddings does not say
};

struct ModelFamily {
  std::string_view model_type;
  HeadRule heads = HeadRule::kGrouped;
  WindowRule windows = WindowRule::kNone;
  WeightRule weights;
  std::string_view refusal;  // why there is no rule, for families that are known and not supported
};

std::span<const ModelFamily> ModelFamilies();
// Null if there is none.
const ModelFamily* FindFamily(std::string_view model_type);
// "falcon, gemma, ...", for messages.
std::string SupportedFamilies();

}  // namespace shorthand

#endif  // SHORTHAND_PLAN_FAMILY_H_
