// Measurements that the page of `shorthand explore` asks for while it is open: `shorthand eval` of
// one recipe at a time, over the first tokens of the text that was captured.
//
// The first run loads the model, with weights in f32, which stays. What the exact cache's floor
// scored stays, too.
// Thread-safety: all of it; runs have a thread of their own. The destructor ends a run early.
#ifndef SHORTHAND_TOOLS_EXPLORE_LIVE_H_
#define SHORTHAND_TOOLS_EXPLORE_LIVE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "eval/score_book.h"
#include "eval_text.h"
#include "model/model.h"
#include "model_slice.h"
#include "shorthand/status.h"
#include "tune/auto_recipe.h"

namespace shorthand {

// Of the one window; fewer where the model was made for fewer.
inline constexpr int64_t kLiveContextTokens = 512;

class LiveRuns {
 public:
  explicit LiveRuns(CaptureRequest request) : request_(std::move(request)) {}

  // Errors: kInvalidArgument without a model; kFailedPrecondition while a recipe is measured; those
  // of ParseRecipeRequest.
  Status Start(const std::string& recipe);
  // The run ends soon, without a row.
  void Stop();

  // {"running": {"recipe", "done": 0 to 1} or null, "report": all that was measured, as ResultsOf
  // has it, with the "options" of `shorthand eval` that measure it again, or null, "error": why the
  // last run failed, or null}
  nlohmann::ordered_json State() const;

 private:
  using Json = nlohmann::ordered_json;
  struct Running {
    std::string recipe;
    double done = 0;
  };

  Status Load();
  // What `shorthand eval --json` prints.
  Result<Json> Measure(const std::string& name, const RecipeRequest& recipe, std::stop_token stop);
  void Finish(const Result<Json>& measured);
  void AddRow(Json report);

  const CaptureRequest request_;

  mutable std::mutex mutex_;  // of these
  std::optional<Running> running_;
  Json report_;
  Json error_;

  // Of the runs.
  std::string path_;
  std::unique_ptr<Model> model_;
  EvalText text_;
  ScoreBook book_;

  std::jthread worker_;  // the last one here: it ends before what it uses
};

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_EXPLORE_LIVE_H_
