// ShapeFromConfig: a Hugging Face config.json becomes layers.
#include <fmt/format.h>

#include <algorithm>

#include "plan/config_fields.h"
#include "plan/family.h"
#include "plan/layer_kinds.h"
#include "plan/parameters.h"
#include "quant/format.h"
#include "shorthand/plan.h"

namespace shorthand {
namespace {

constexpr Bounds kLayers = {1, 1000};
constexpr Bounds kHeads = {1, 1024};
constexpr Bounds kHeadDim = {1, kMaxHeadDim};
constexpr Bounds kHidden = {1, 1 << 18};
constexpr Bounds kContext = {1, int64_t{1} << 40};

// The attention of the layers with full attention and of those with a window.
struct Heads {
  LayerShape full;
  LayerShape windowed;
};

// Keys of one kind of layer; every model but a few has one kind.
LayerShape GroupedLayer(Keys heads, Keys kv_heads, Keys dim, ConfigFields& fields) {
  LayerShape layer;
  layer.query_heads = static_cast<int>(fields.Int(heads, kHeads));
  layer.kv_heads = static_cast<int>(fields.IntOr(kv_heads, layer.query_heads, kHeads));
  if (layer.query_heads % layer.kv_heads != 0) {
    fields.Fail(fmt::format("{} query heads cannot share {} KV heads evenly", layer.query_heads,
                            layer.kv_heads));
  }
  if (fields.Has(dim)) {
    layer.k_dim = static_cast<int>(fields.Int(dim, kHeadDim));
  } else {
    const int64_t hidden = fields.Int({"hidden_size", "n_embd"}, kHidden);
    const int64_t width = hidden / layer.query_heads;
    if (hidden % layer.query_heads != 0 || width > kMaxHeadDim) {
      fields.Fail(fmt::format("hidden_size {} does not divide into {} heads of at most {}", hidden,
                              layer.query_heads, kMaxHeadDim));
    }
    layer.k_dim = static_cast<int>(std::clamp<int64_t>(width, 1, kMaxHeadDim));
  }
  layer.v_dim = layer.k_dim;
  return layer;
}

LayerShape CommonLayer(ConfigFields& fields) {
  return GroupedLayer({"num_attention_heads", "n_head"}, {"num_key_value_heads", "num_kv_heads"},
                      {"head_dim", "attention_head_dim"}, fields);
}

LayerShape LatentLayer(ConfigFields& fields) {
  LayerShape layer;
  layer.query_heads = static_cast<int>(fields.Int({"num_attention_heads"}, kHeads));
  layer.kv_heads = 1;
  const int64_t dim =
      fields.Int({"kv_lora_rank"}, kHeadDim) + fields.Int({"qk_rope_head_dim"}, kHeadDim);
  if (dim > kMaxHeadDim) {
    fields.Fail(fmt::format("kv_lora_rank + qk_rope_head_dim is {}; at most {} is supported", dim,
                            kMaxHeadDim));
  }
  layer.k_dim = static_cast<int>(std::min<int64_t>(dim, kMaxHeadDim));
  layer.v_dim = 0;
  return layer;
}

LayerShape MultiQueryLayer(ConfigFields& fields) {
  LayerShape layer = CommonLayer(fields);
  const bool shared =
      fields.BoolOr({"multi_query"}, true) && !fields.BoolOr({"new_decoder_architecture"}, false);
  if (shared) layer.kv_heads = 1;
  return layer;
}

Heads HeadsOf(HeadRule rule, ConfigFields& fields) {
  Heads heads;
  switch (rule) {
    case HeadRule::kGrouped:
      heads.full = CommonLayer(fields);
      heads.windowed = heads.full;
      break;
    case HeadRule::kMultiQuery:
      heads.full = MultiQueryLayer(fields);
      heads.windowed = heads.full;
      break;
    case HeadRule::kLatent:
      heads.full = LatentLayer(fields);
      heads.windowed = heads.full;
      break;
    case HeadRule::kWindowOwn:
      heads.full = CommonLayer(fields);
      heads.full.v_dim = static_cast<int>(fields.IntOr({"v_head_dim"}, heads.full.k_dim, kHeadDim));
      heads.windowed = GroupedLayer({"swa_num_attention_heads", "num_attention_heads"},
                                    {"swa_num_key_value_heads", "num_key_value_heads"},
                                    {"swa_head_dim", "head_dim"}, fields);
      heads.windowed.v_dim = static_cast<int>(
          fields.IntOr({"swa_v_head_dim", "v_head_dim"}, heads.windowed.k_dim, kHeadDim));
      break;
    case HeadRule::kGlobalOwn:
      heads.windowed = CommonLayer(fields);
      heads.full = GroupedLayer({"num_attention_heads"},
                                {"num_global_key_value_heads", "num_key_value_heads"},
                                {"global_head_dim", "head_dim"}, fields);
      break;
  }
  return heads;
}

// The last num_kv_shared_layers layers read the keys and values of the last layer of their kind
// before them.
void ShareLayers(const LayerKinds& kinds, ConfigFields& fields, Shape& shape) {
  const int layers = static_cast<int>(shape.layers.size());
  const int64_t shared = fields.IntOr({"num_kv_shared_layers"}, 0, {0, layers - 1});
  const int owned = layers - static_cast<int>(shared);
  for (int i = owned; i < layers; ++i) {
    int owner = owned - 1;
    while (owner >= 0 && kinds.layers[owner] != kinds.layers[i]) --owner;
    if (owner < 0) {
      fields.Fail(
          fmt::format("layer {} shares keys and values, but no layer before is of its kind", i));
      return;
    }
    shape.layers[i].kv_owner = owner;
  }
}

void AddNotes(const LayerKinds& kinds, const ModelFamily& family, ConfigFields& fields,
              ModelShape& model) {
  const auto none = std::count(kinds.layers.begin(), kinds.layers.end(), LayerKind::kNone);
  if (none > 0) {
    model.notes.push_back(fmt::format(
        "{} of {} layers keep no keys and values; a fixed state, if any, is not counted", none,
        kinds.layers.size()));
  }
  if (kinds.chunked && kinds.window > 0) {
    model.notes.push_back(fmt::format(
        "attention within chunks of {} tokens is counted as a window of that length, the most a "
        "chunk holds",
        kinds.window));
  }
  if (fields.Has({"index_head_dim"})) {
    model.notes.push_back(
        fmt::format("the keys of the sparse-attention indexer ({} values a token and layer) come "
                    "on top and are "
                    "not counted",
                    fields.Int({"index_head_dim"}, kHeadDim)));
  }
  if (family.heads == HeadRule::kGlobalOwn && fields.BoolOr({"attention_k_eq_v"}, false)) {
    model.notes.push_back(
        "full layers project keys and values with one matrix; norms and RoPE then differ, so both "
        "are stored and counted");
  }
}

Status Named(std::string_view name, const Status& status) {
  return Status(status.code(), fmt::format("{}: {}", name, status.message()));
}

// The family of `top`, or of the text model nested in it.
Result<const ModelFamily*> FamilyOf(ConfigFields& top, ConfigFields& text) {
  const std::string outer = top.TextOr({"model_type"}, "");
  const std::string inner = text.TextOr({"model_type"}, "");
  if (!top.status().ok()) return top.status();
  if (!text.status().ok()) return text.status();
  if (outer.empty() && inner.empty()) {
    return InvalidArgument("model_type is missing; a config.json of a language model names it");
  }
  const ModelFamily* found = FindFamily(outer);
  if (found == nullptr) found = FindFamily(inner);
  if (found == nullptr) {
    return Unimplemented(
        fmt::format("the family \"{:.60}\" is not known, and its cache is not guessed; known "
                    "are {}",
                    outer.empty() ? inner : outer, SupportedFamilies()));
  }
  if (!found->refusal.empty()) {
    return Unimplemented(fmt::format("{} is not supported: {}", found->model_type, found->refusal));
  }
  return found;
}

Result<ModelShape> ReadModel(const nlohmann::json& config, std::string_view name) {
  const auto nested = config.find("text_config");
  const bool has_text = nested != config.end() && nested->is_object();
  ConfigFields top(config);
  ConfigFields fields(has_text ? *nested : config);
  const auto family = FamilyOf(top, fields);
  if (!family.ok()) return family.status();

  const int layers = static_cast<int>(fields.Int({"num_hidden_layers", "n_layer"}, kLayers));
  ModelShape model;
  model.shape.name = std::string(name);
  model.shape.max_context_tokens =
      fields.IntOr({"max_position_embeddings", "n_positions", "n_ctx"}, 0, kContext);
  const Heads heads = HeadsOf((*family)->heads, fields);
  if (!fields.status().ok()) return fields.status();
  const LayerKinds kinds = LayerKindsOf(**family, layers, model.shape.max_context_tokens, fields);
  for (LayerKind kind : kinds.layers) {
    LayerShape layer = kind == LayerKind::kWindow ? heads.windowed : heads.full;
    if (kind == LayerKind::kWindow) layer.window = kinds.window;
    if (kind == LayerKind::kNone) layer = LayerShape{};
    model.shape.layers.push_back(layer);
  }
  ShareLayers(kinds, fields, model.shape);
  AddNotes(kinds, **family, fields, model);
  if (!fields.status().ok()) return fields.status();

  if (config.contains("vision_config") || config.contains("audio_config")) {
    model.parameters_note = "weights of models that also see or hear are not counted";
  } else {
    CountParameters(**family, fields, model);
  }
  return model;
}

}  // namespace

Result<ModelShape> ShapeFromConfig(std::string_view json, std::string_view name) {
  const auto config = ParseConfig(json);
  if (!config.ok()) return Named(name, config.status());
  auto model = ReadModel(*config, name);
  if (!model.ok()) return Named(name, model.status());
  return model;
}

}  // namespace shorthand
