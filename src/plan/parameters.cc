#include "plan/parameters.h"

#include <fmt/format.h>

#include <algorithm>

namespace shorthand {
namespace {

// Tight enough that no product below overflows.
constexpr Bounds kWidth = {1, 1 << 18};
constexpr Bounds kCount = {1, 4096};
constexpr Bounds kVocabulary = {1, 1 << 24};

// Widths that every part needs.
struct Widths {
  int64_t layers;
  int64_t hidden;
  int64_t query;  // query heads x head dim
  int64_t kv;     // KV heads x head dim
  int64_t head;
  int64_t query_heads;
};

int64_t GatedMlp(int64_t hidden, int64_t inner) { return 3 * hidden * inner; }

// MLA: queries low-rank or not, one latent for keys and values, an output projection.
int64_t LatentAttention(const Widths& w, ConfigFields& fields) {
  const int64_t rank = fields.Int({"kv_lora_rank"}, kWidth);
  const int64_t rope = fields.Int({"qk_rope_head_dim"}, kWidth);
  const int64_t nope = fields.Int({"qk_nope_head_dim"}, kWidth);
  const int64_t value = fields.Int({"v_head_dim"}, kWidth);
  const int64_t query_width = w.query_heads * (nope + rope);
  int64_t count = w.hidden * query_width;
  if (fields.Has({"q_lora_rank"})) {
    const int64_t query_rank = fields.Int({"q_lora_rank"}, kWidth);
    count = w.hidden * query_rank + query_rank + query_rank * query_width;
  }
  count += w.hidden * (rank + rope) + rank;
  count += rank * w.query_heads * (nope + value);
  return count + w.query_heads * value * w.hidden;
}

int64_t GroupedAttention(const WeightRule& rule, const Widths& w, ConfigFields& fields) {
  const bool llama_bias = fields.BoolOr({"attention_bias"}, false);
  int64_t count = w.hidden * (w.query + 2 * w.kv) + w.query * w.hidden;
  if (rule.qkv_bias || llama_bias) count += w.query + 2 * w.kv;
  if (rule.output_bias || llama_bias) count += w.hidden;
  if (rule.head_norms) count += 2 * w.head;
  if (rule.sinks) count += w.query_heads;
  return count;
}

// Layers that have experts, of those families where some do not.
int64_t ExpertLayers(const Widths& w, ConfigFields& fields) {
  const int64_t step = fields.IntOr({"decoder_sparse_step"}, 1, {1, 1000});
  return w.layers / step;
}

int64_t Experts(const Widths& w, ConfigFields& fields) {
  const int64_t experts = fields.Int({"num_experts", "num_local_experts"}, kCount);
  const int64_t inner = fields.Int({"moe_intermediate_size", "intermediate_size"}, kWidth);
  const int64_t sparse = ExpertLayers(w, fields);
  const int64_t dense_inner = fields.Int({"intermediate_size"}, kWidth);
  return sparse * (experts * GatedMlp(w.hidden, inner) + experts * w.hidden) +
         (w.layers - sparse) * GatedMlp(w.hidden, dense_inner);
}

int64_t DeepSeekExperts(const Widths& w, ConfigFields& fields) {
  const int64_t dense = fields.IntOr({"first_k_dense_replace"}, 0, {0, w.layers});
  const int64_t routed = fields.Int({"n_routed_experts"}, kCount);
  const int64_t shared = fields.IntOr({"n_shared_experts"}, 0, {0, 64});
  const int64_t inner = fields.Int({"moe_intermediate_size"}, kWidth);
  const bool bias = fields.TextOr({"topk_method"}, "") == "noaux_tc";
  const int64_t sparse_layer =
      (routed + shared) * GatedMlp(w.hidden, inner) + routed * w.hidden + (bias ? routed : 0);
  return dense * GatedMlp(w.hidden, fields.Int({"intermediate_size"}, kWidth)) +
         (w.layers - dense) * sparse_layer;
}

int64_t GptOssExperts(const Widths& w, ConfigFields& fields) {
  const int64_t experts = fields.Int({"num_local_experts"}, kCount);
  const int64_t inner = fields.Int({"intermediate_size"}, kWidth);
  const int64_t expert = GatedMlp(w.hidden, inner) + 2 * inner + w.hidden;
  return w.layers * (experts * expert + experts * w.hidden + experts);
}

int64_t FeedForwardOf(const WeightRule& rule, const Widths& w, ConfigFields& fields) {
  switch (rule.feed_forward) {
    case FeedForward::kUnknown:
      return 0;
    case FeedForward::kGated:
      return w.layers * GatedMlp(w.hidden, fields.Int({"intermediate_size"}, kWidth));
    case FeedForward::kPlain: {
      const int64_t inner = fields.IntOr({"intermediate_size", "n_inner"}, 4 * w.hidden, kWidth);
      return w.layers * (2 * w.hidden * inner + inner + w.hidden);
    }
    case FeedForward::kExperts:
      return Experts(w, fields);
    case FeedForward::kDeepSeek:
      return DeepSeekExperts(w, fields);
    case FeedForward::kGptOss:
      return GptOssExperts(w, fields);
  }
  return 0;
}

int64_t Embeddings(const WeightRule& rule, const Widths& w, ConfigFields& fields) {
  const int64_t vocabulary = fields.Int({"vocab_size"}, kVocabulary);
  const bool tied = fields.BoolOr({"tie_word_embeddings"}, rule.tied);
  int64_t count = (tied ? 1 : 2) * vocabulary * w.hidden;
  if (rule.positions) {
    count += fields.Int({"n_positions", "max_position_embeddings"}, kVocabulary) * w.hidden;
  }
  return count;
}

}  // namespace

void CountParameters(const ModelFamily& family, ConfigFields fields, ModelShape& model) {
  const WeightRule& rule = family.weights;
  if (rule.feed_forward == FeedForward::kUnknown) {
    model.parameters_note =
        fmt::format("the weights of {} models are not counted", family.model_type);
    return;
  }
  const auto& layers = model.shape.layers;
  if (std::any_of(layers.begin(), layers.end(), [](const auto& l) { return l.kv_heads == 0; })) {
    model.parameters_note = "the weights of layers without keys and values are not counted";
    return;
  }
  const LayerShape& layer = layers.front();
  const int64_t head = layer.k_dim;
  const Widths w = {.layers = static_cast<int64_t>(layers.size()),
                    .hidden = fields.Int({"hidden_size", "n_embd"}, kWidth),
                    .query = layer.query_heads * head,
                    .kv = layer.kv_heads * head,
                    .head = head,
                    .query_heads = layer.query_heads};
  const int64_t attention = family.heads == HeadRule::kLatent ? LatentAttention(w, fields)
                                                              : GroupedAttention(rule, w, fields);
  const int64_t norm = w.hidden * (rule.norm_bias ? 2 : 1);
  const int64_t count = Embeddings(rule, w, fields) + w.layers * (attention + rule.norms * norm) +
                        FeedForwardOf(rule, w, fields) + norm;
  if (!fields.status().ok()) {
    model.parameters_note =
        fmt::format("the weights cannot be counted: {}", fields.status().message());
    return;
  }
  model.shape.parameters = count;
}

}  // namespace shorthand
