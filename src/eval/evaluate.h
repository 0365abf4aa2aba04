// Evaluate: what storing the cache by a recipe costs, on a model and a text.
//
// Every window runs through the exact cache (f16) and through one cache for each recipe, side by
// side, chunk by chunk: logits are compared and dropped, so memory is that of the caches and one
// chunk. Positions are scored through the cache as decoding would see it; views do not depend on
// chunks. Two more caches give the floor below which no difference means anything.
// Thread-safety: one thread at a time for a model.
#ifndef SHORTHAND_EVAL_EVALUATE_H_
#define SHORTHAND_EVAL_EVALUATE_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eval/metrics.h"
#include "eval/windows.h"
#include "model/model.h"
#include "shorthand/recipe.h"
#include "shorthand/status.h"

namespace shorthand {

struct EvaluateOptions {
  // Called now and then with the share of the work that is done, 0 to 1. May be empty.
  std::function<void(double)> on_progress = {};
  // For recipes that need one.
  const Calibration* calibration = nullptr;
};

struct EvaluationRow {
  Recipe recipe;
  Status status;         // why there are no figures
  double bits = 0;       // codes and metadata
  double true_bits = 0;  // everything stored, at the length of a window
  Summary summary = {};
};

// The exact cache against itself with a change that should not matter.
struct NoiseFloor {
  Summary scaled_query;  // queries times 1 + 1e-6
  Summary f32_cache;     // keys and values in f32
};

struct Evaluation {
  int64_t positions = 0;  // scored, over all windows; 0 if no recipe could be run
  double ppl_exact = 0;
  NoiseFloor floor;
  std::vector<EvaluationRow> rows;  // in the order of the recipes
};

// REQUIRES: windows as CutWindows makes them, at least one, all of the same length.
// Errors: kOutOfRange if windows are longer than the model's context; those of Cache and Model for
// the exact cache and the floor. A recipe that fails does so in its row alone.
Result<Evaluation> Evaluate(Model& model, std::span<const Window> windows,
                            std::span<const Recipe> recipes, const EvaluateOptions& options = {});

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_EVALUATE_H_
