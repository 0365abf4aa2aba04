// The measurements of `shorthand eval`: from options to the figures that are reported.
// Thread-safety: one thread; reads and writes files, shows progress on stderr.
#ifndef SHORTHAND_TOOLS_EVAL_MEASURE_H_
#define SHORTHAND_TOOLS_EVAL_MEASURE_H_

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "eval/llama_peer.h"
#include "eval/score_book.h"
#include "eval/scoring.h"
#include "eval_report.h"
#include "eval_text.h"
#include "model/model.h"
#include "model/weights.h"
#include "shorthand/status.h"
#include "tune/auto_recipe.h"

namespace shorthand {

struct EvalRequest {
  std::string model = "";  // as given
  std::vector<EvalText> texts = {};
  std::vector<int64_t> contexts = {};
  int64_t windows = 0;  // of each text in each context
  int64_t skipped_tokens = 0;
  int64_t prompt_tokens = 0;  // before the first scored position; 0: half a window
  Protocol protocol = Protocol::kStreaming;
  int needles = 0;                             // in each window; 0: none
  int64_t greedy_tokens = 0;                   // behind the prompt of each window; 0: none
  bool layers = false;                         // whether layers are diagnosed
  std::vector<std::string> recipe_texts = {};  // as given
  std::vector<RecipeRequest> recipes = {};
  std::vector<LlamaCacheType> peers = {};
  Precision weights = Precision::kF32;
  int threads = 0;
  std::string calibration_file = "";  // empty: the built-in probe
  std::string resume_file = "";       // empty: nothing is kept
};

// Errors: those of ModelPath, ScoreBook, Model::Load, CutWindows, ScoreRecipes, F32CopyOf and
// ScorePeers.
Result<EvalReport> Measure(const EvalRequest& request);

// The same with the model that was loaded from `path` with the request's weights and threads, and
// with a book that may hold scores of it already. Errors: kCancelled if it was stopped, too.
// REQUIRES: no peers.
Result<EvalReport> MeasureLoaded(Model& model, const std::string& path, const EvalRequest& request,
                                 ScoreBook& book, const std::function<void(double)>& on_progress,
                                 std::stop_token stop);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_EVAL_MEASURE_H_
