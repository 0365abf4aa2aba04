// AttentionNoise: what storing keys and values by a recipe adds to the output of each layer's
// attention, measured on the rows of a text.
//
// The rows go into a cache of the recipe and into one of exact pages, and the queries of the last
// page are attended over both, so that formats, views, windows and kernels are those of use.
// Thread-safety: pure functions; the threads that they start end with them.
#ifndef SHORTHAND_ATTENTION_NOISE_H_
#define SHORTHAND_ATTENTION_NOISE_H_

#include <span>
#include <stop_token>
#include <vector>

#include "shorthand/calibration.h"
#include "shorthand/recipe.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

// Of one layer, RoPE applied. Layers that read another's keys have queries alone.
struct LayerRows {
  std::vector<float> k;  // [tokens][kv_heads][k_dim]
  std::vector<float> v;  // [tokens][kv_heads][v_dim]
  std::vector<float> q;  // [kPageTokens][query_heads][k_dim], of the last tokens
};

struct TextRows {
  int tokens = 0;  // whole pages, at least one
  std::vector<LayerRows> layers;
};

// For each recipe and layer: the squared size of what the recipe adds to the outputs, over that of
// the exact outputs; those of layers that read another's keys count for that layer.
// `calibration`: for recipes that need one, else null. Errors: those of Cache::Open and Begin, and
// the batch's own; kCancelled if a stop is requested, between recipes.
Result<std::vector<std::vector<double>>> AttentionNoise(const Shape& shape,
                                                        std::span<const Recipe> recipes,
                                                        const Calibration* calibration,
                                                        const TextRows& text, int threads,
                                                        const std::stop_token& stop = {});

}  // namespace shorthand

#endif  // SHORTHAND_ATTENTION_NOISE_H_
