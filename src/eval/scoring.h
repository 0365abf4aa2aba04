// Scoring: passages through the exact cache and through one cache for each recipe, side by side.
//
// Caches advance together, chunk by chunk: logits are compared and dropped, so memory is that of
// the caches and one chunk. Lanes that do not fit into the memory at once take turns, each turn
// with the exact cache anew. What the book holds already is not computed again. Two more lanes give
// the floor below which no difference means anything. Thread-safety: one thread at a time for a
// model.
#ifndef SHORTHAND_EVAL_SCORING_H_
#define SHORTHAND_EVAL_SCORING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stop_token>
#include <string>

#include "eval/passage.h"
#include "eval/score_book.h"
#include "model/model.h"
#include "shorthand/recipe.h"
#include "shorthand/status.h"

namespace shorthand {

// The lanes of the floor: the exact cache against itself with a change that should not matter.
inline constexpr const char* kScaledQueryLane = "floor: queries times 1 + 1e-6";
inline constexpr const char* kF32CacheLane = "floor: f32 cache";

// A recipe's lane. Recipes with the same canonical text share it.
inline std::string LaneOf(const Recipe& recipe) { return recipe.ToString(); }

enum class Protocol {
  // Every position reads the cache as decoding would, those that are not scored, too.
  kStreaming,
  // What comes before the first scored position is attended exactly and sealed once: every cache
  // gets the exact cache's keys and values of it. Only what follows goes through the lane's cache.
  kPaper,
};

struct ScoreOptions {
  Protocol protocol = Protocol::kStreaming;
  // For recipes that need one.
  const Calibration* calibration = nullptr;
  // For the caches and logits that are held at once; the exact cache and one other always are.
  // With the rest of a step it is 2 GB beyond the weights.
  uint64_t memory_bytes = uint64_t{1792} << 20;
  // Called now and then with the share of the work that is done, 0 to 1. May be empty.
  std::function<void(double)> on_progress = {};
  // Ends the work behind the chunk that a lane is reading; the turns before stay in the book.
  std::stop_token stop = {};
};

// Why a lane has no scores, by its name.
using LaneFailures = std::map<std::string, Status>;

// Puts into `book`, and saves, the scores of every passage over the floor's lanes and every
// recipe's. Nothing is run if no recipe can be, unless there are none. A recipe that fails does so
// alone: it is in the result.
// Errors: kOutOfRange if a passage is longer than the model's context; those of Cache and Model for
// the exact cache and the floor; those of ScoreBook::Save; kCancelled if it was stopped.
Result<LaneFailures> ScoreRecipes(Model& model, std::span<const Passage> passages,
                                  std::span<const Recipe> recipes, ScoreBook& book,
                                  const ScoreOptions& options = {});

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_SCORING_H_
