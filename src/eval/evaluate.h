// Evaluation: the table of what storing the cache by each recipe costs, out of the scores of texts.
// docs/evaluation.md has the columns.
// Thread-safety: values and pure functions; Evaluate one thread at a time for a model.
#ifndef SHORTHAND_EVAL_EVALUATE_H_
#define SHORTHAND_EVAL_EVALUATE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/metrics.h"
#include "eval/passage.h"
#include "eval/score_book.h"
#include "eval/scoring.h"
#include "model/model.h"
#include "shorthand/recipe.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

// The passages of one text, at least one.
struct TextPassages {
  std::string name;
  std::vector<Passage> passages;
};

enum class Program { kShorthand, kLlama };

// What is compared with the exact cache of the same program: one row of the table.
struct Contender {
  Program program = Program::kShorthand;
  std::string lane;       // what its scores are kept under
  std::string canonical;  // how it stores keys and values, in the text that is one for all equals
  int sink_tokens = 0;
  int recent_tokens = 0;
  double bits = 0;       // codes and metadata
  double true_bits = 0;  // everything stored, at the length of a passage
  Status status = {};    // why there are no figures, if there are none
};

// `failures` are ScoreRecipes'; bits are those at `tokens` tokens.
std::vector<Contender> ContendersOf(const Shape& shape, std::span<const Recipe> recipes,
                                    int64_t tokens, const LaneFailures& failures);

struct EvaluationRow {
  Contender contender;
  Summary summary = {};             // over all texts; none without figures
  std::vector<Summary> texts = {};  // of each text
};

struct NoiseFloor {
  Summary scaled_query;  // queries times 1 + 1e-6
  Summary f32_cache;     // keys and values in f32
};

struct Evaluation {
  int64_t positions = 0;  // scored, over all texts; 0 if nothing could be run
  double ppl_exact = 0;
  NoiseFloor floor;
  std::vector<EvaluationRow> rows;  // in the order of the contenders

  bool any_row() const;  // whether one has figures
};

// A row has figures if `book` has the contender's scores of all passages. Positions count alike,
// whichever text they are from.
Evaluation Tabulate(std::span<const TextPassages> texts, std::span<const Contender> contenders,
                    const ScoreBook& book);

// All at once for one text, in memory. Errors: those of ScoreRecipes.
// REQUIRES: at least one passage; all are equally long.
Result<Evaluation> Evaluate(Model& model, const std::vector<Passage>& passages,
                            std::span<const Recipe> recipes, const ScoreOptions& options = {});

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_EVALUATE_H_
