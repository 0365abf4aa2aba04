#include "plan/layer_kinds.h"

#include <fmt/format.h>

#include <algorithm>

namespace shorthand {
namespace {

constexpr Bounds kWindowBounds = {1, int64_t{1} << 30};

using Kinds = std::vector<LayerKind>;

// Layer i is `regular` unless (i + 1) is a multiple of `interval`, which is full attention.
Kinds FullEvery(int64_t interval, LayerKind regular, int layers) {
  Kinds kinds(layers, regular);
  for (int64_t i = interval; i <= layers; i += interval) kinds[i - 1] = LayerKind::kFull;
  return kinds;
}

struct NamedKind {
  std::string_view name;
  LayerKind kind;
  bool chunked = false;
};
constexpr NamedKind kNamedKinds[] = {
    {"full_attention", LayerKind::kFull},      {"attention", LayerKind::kFull},
    {"sliding_attention", LayerKind::kWindow}, {"chunked_attention", LayerKind::kWindow, true},
    {"linear_attention", LayerKind::kNone},    {"mamba", LayerKind::kNone},
};

void ReadLayerTypes(const std::vector<std::string>& types, LayerKinds& out, ConfigFields& fields) {
  for (size_t i = 0; i < types.size(); ++i) {
    auto it = std::find_if(std::begin(kNamedKinds), std::end(kNamedKinds),
                           [&](const NamedKind& named) { return named.name == types[i]; });
    if (it == std::end(kNamedKinds)) {
      fields.Fail(
          fmt::format("layer_types holds \"{:.40}\", for which there is no rule", types[i]));
      return;
    }
    out.layers[i] = it->kind;
    out.chunked = out.chunked || it->chunked;
  }
}

void ReadMambaPattern(LayerKinds& out, ConfigFields& fields) {
  const std::string pattern = fields.TextOr({"hybrid_override_pattern"}, "");
  if (pattern.size() != out.layers.size()) {
    fields.Fail(fmt::format("hybrid_override_pattern has {} letters for {} layers", pattern.size(),
                            out.layers.size()));
    return;
  }
  for (size_t i = 0; i < pattern.size(); ++i) {
    out.layers[i] = pattern[i] == '*' ? LayerKind::kFull : LayerKind::kNone;
  }
}

// Llama 4: layers without RoPE attend to everything, the others within their chunk.
void ReadChunks(LayerKinds& out, ConfigFields& fields) {
  const int layers = static_cast<int>(out.layers.size());
  out.layers = FullEvery(4, LayerKind::kWindow, layers);
  out.chunked = true;
  const auto rope = fields.Ints("no_rope_layers", layers, {0, 1});
  for (size_t i = 0; i < rope.size(); ++i) {
    out.layers[i] = rope[i] == 0 ? LayerKind::kFull : LayerKind::kWindow;
  }
}

void ApplyRule(WindowRule rule, LayerKinds& out, ConfigFields& fields) {
  const int layers = static_cast<int>(out.layers.size());
  const bool window_given = fields.Has({"sliding_window"});
  switch (rule) {
    case WindowRule::kNone:
      return;
    case WindowRule::kEverywhere:
      if (window_given) out.layers.assign(layers, LayerKind::kWindow);
      return;
    case WindowRule::kOptIn: {
      if (!window_given || !fields.BoolOr({"use_sliding_window"}, false)) return;
      const int64_t first = fields.IntOr({"max_window_layers"}, 28, {0, 1000});
      for (int64_t i = first; i < layers; ++i) out.layers[i] = LayerKind::kWindow;
      return;
    }
    case WindowRule::kAlternating:
      out.layers = FullEvery(2, LayerKind::kWindow, layers);
      return;
    case WindowRule::kPattern: {
      const Keys keys = {"sliding_window_pattern", "_sliding_window_pattern"};
      out.layers = FullEvery(fields.IntOr(keys, 6, {1, 1000}), LayerKind::kWindow, layers);
      return;
    }
    case WindowRule::kHybridList: {
      const auto pattern = fields.Ints("hybrid_layer_pattern", layers, {0, 1});
      if (pattern.empty()) fields.Fail("hybrid_layer_pattern is missing");
      for (size_t i = 0; i < pattern.size(); ++i) {
        out.layers[i] = pattern[i] == 1 ? LayerKind::kWindow : LayerKind::kFull;
      }
      return;
    }
    case WindowRule::kChunked:
      ReadChunks(out, fields);
      return;
    case WindowRule::kLinearInterval:
      out.layers = FullEvery(fields.IntOr({"full_attention_interval"}, 4, {1, 1000}),
                             LayerKind::kNone, layers);
      return;
    case WindowRule::kMambaPattern:
      ReadMambaPattern(out, fields);
      return;
    case WindowRule::kListed:
      fields.Fail("layer_types is missing");
      return;
  }
}

}  // namespace

LayerKinds LayerKindsOf(const ModelFamily& family, int layers, int64_t max_context_tokens,
                        ConfigFields& fields) {
  LayerKinds out;
  out.layers.assign(layers, LayerKind::kFull);
  if (fields.Has({"layer_types"})) {
    ReadLayerTypes(fields.Texts("layer_types", layers), out, fields);
  } else {
    ApplyRule(family.windows, out, fields);
  }
  if (std::find(out.layers.begin(), out.layers.end(), LayerKind::kWindow) == out.layers.end()) {
    return out;
  }
  const int64_t window =
      fields.Int({out.chunked ? "attention_chunk_size" : "sliding_window"}, kWindowBounds);
  if (max_context_tokens > 0 && window >= max_context_tokens) {
    std::replace(out.layers.begin(), out.layers.end(), LayerKind::kWindow, LayerKind::kFull);
    return out;
  }
  out.window = static_cast<int>(window);
  return out;
}

}  // namespace shorthand
