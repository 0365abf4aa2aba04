#include "shape_summary.h"

#include <fmt/format.h>

namespace shorthand {
namespace {

bool KeepsRows(const LayerShape& layer) { return layer.kv_heads > 0 && layer.kv_owner < 0; }

// How much larger the cache would be with a KV head for each query head.
double HeadRatio(const Shape& shape) {
  double with_all = 0;
  double with_shared = 0;
  for (const LayerShape& layer : shape.layers) {
    if (!KeepsRows(layer)) continue;
    const double width = layer.k_dim + layer.v_dim;
    with_all += layer.query_heads * width;
    with_shared += layer.kv_heads * width;
  }
  return with_shared > 0 ? with_all / with_shared : 1;
}

std::string HeadSentence(const Shape& shape, const LayerShape& typical) {
  if (typical.v_dim == 0) {
    return fmt::format(
        "MLA: one latent of {} values serves keys and values of all {} query heads, stored once",
        typical.k_dim, typical.query_heads);
  }
  const double ratio = HeadRatio(shape);
  if (ratio <= 1) return "a KV head for each query head: no GQA, nothing is shared";
  if (typical.kv_heads == 1) {
    return fmt::format(
        "one KV head for {} query heads: the cache would be {:.1f}x larger if each "
        "had its own",
        typical.query_heads, ratio);
  }
  return fmt::format(
      "{:.3g}x fewer KV heads than query heads: the cache would be {:.1f}x larger without GQA",
      static_cast<double>(typical.query_heads) / typical.kv_heads, ratio);
}

}  // namespace

ShapeSummary Summarize(const Shape& shape) {
  ShapeSummary summary;
  for (const LayerShape& layer : shape.layers) {
    if (layer.kv_heads == 0) continue;
    if (summary.typical.kv_heads == 0) summary.typical = layer;
    if (layer.kv_owner >= 0) {
      ++summary.shared_layers;
    } else if (layer.window > 0) {
      ++summary.windowed_layers;
      summary.window = layer.window;
    } else {
      ++summary.full_layers;
    }
  }
  return summary;
}

std::string ShapeLine(const Shape& shape) {
  const LayerShape& layer = Summarize(shape).typical;
  std::string dims = fmt::format("head dim {}", layer.k_dim);
  if (layer.v_dim == 0) dims = fmt::format("latent dim {}", layer.k_dim);
  if (layer.v_dim != 0 && layer.v_dim != layer.k_dim) {
    dims = fmt::format("head dim {} for keys and {} for values", layer.k_dim, layer.v_dim);
  }
  return fmt::format("{} layers, {} query heads, {} KV head{}, {}", shape.layers.size(),
                     layer.query_heads, layer.kv_heads, layer.kv_heads == 1 ? "" : "s", dims);
}

std::vector<std::string> SavingsOf(const Shape& shape) {
  const ShapeSummary summary = Summarize(shape);
  std::vector<std::string> sentences = {HeadSentence(shape, summary.typical)};
  if (summary.windowed_layers > 0) {
    sentences.push_back(
        fmt::format("{} of {} layers look back {} tokens only: their cache stops growing there",
                    summary.windowed_layers, shape.layers.size(), summary.window));
  }
  if (summary.shared_layers > 0) {
    sentences.push_back(
        fmt::format("{} layers read the keys and values of another layer", summary.shared_layers));
  }
  return sentences;
}

}  // namespace shorthand
