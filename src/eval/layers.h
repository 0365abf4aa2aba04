// Layer diagnostics: what a recipe does to the scores and outputs of each layer's attention.
//
// Keys, values and some queries of a text are taken from the model over the exact cache; pages are
// sealed and read back by the library, and each query sees every page as it would in a cache. All
// else is double precision. docs/evaluation.md has the formulas.
// Thread-safety: CaptureLayers one thread at a time for a model; the rest pure functions.
#ifndef SHORTHAND_EVAL_LAYERS_H_
#define SHORTHAND_EVAL_LAYERS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/model.h"
#include "shorthand/calibration.h"
#include "shorthand/recipe.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

struct CapturedLayer {
  std::vector<float> k;  // [tokens][kv_heads][k_dim]
  std::vector<float> v;  // [tokens][kv_heads][v_dim]
  std::vector<float> q;  // [queries][query_heads][k_dim]
};

struct LayerCapture {
  int64_t tokens = 0;
  std::vector<int64_t> query_positions;  // of the queries, in the second half
  std::vector<CapturedLayer> layers;     // [layers]
};

// `on_progress`, if not empty, is told the share that is done. Errors: those of Cache and Model.
Result<LayerCapture> CaptureLayers(Model& model, std::span<const Token> tokens,
                                   const std::function<void(double)>& on_progress = {});

// One head's rows, [tokens][dim], of rows [tokens][heads][dim].
std::vector<float> RowsOfHead(std::span<const float> rows, int head, int heads, int dim);

struct LayerScore {
  bool sealed = false;           // whether a query sees a sealed page at all; else nothing is lost
  double logit_correlation = 1;  // of centred logits over tokens seen sealed, mean over queries
  double attention_kl = 0;       // KL(exact || sealed) of attention weights, mean over queries
  double k_nsr = 0;              // what errors of keys add to the output, over its size, squared
  double v_nsr = 0;              // the same of values
};

// `calibration`: for recipes that need one, else null. Errors: those of ResolveGroups and
// UseCalibration.
Result<std::vector<LayerScore>> DiagnoseLayers(const Shape& shape, const Recipe& recipe,
                                               const Calibration* calibration,
                                               const LayerCapture& capture, int threads);

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_LAYERS_H_
