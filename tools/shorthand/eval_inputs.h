// What `shorthand eval` and `shorthand tune` measure on: windows of texts, and a file that keeps
// the scores between runs.
// Thread-safety: one thread; reads files, says on stderr where a text ends early.
#ifndef SHORTHAND_TOOLS_EVAL_INPUTS_H_
#define SHORTHAND_TOOLS_EVAL_INPUTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/evaluate.h"
#include "eval/score_book.h"
#include "eval/scoring.h"
#include "eval_text.h"
#include "model/vocab.h"
#include "model/weights.h"
#include "shorthand/status.h"

namespace shorthand {

// In memory alone if `resume_file` is empty. What it keeps holds for the same model, weights,
// protocol and arithmetic. Errors: those of ScoreBook::Open and FileHash.
Result<ScoreBook> OpenBook(const std::string& resume_file, const std::string& model_path,
                           Precision weights, Protocol protocol);

struct WindowChoice {
  int64_t context_tokens = 0;
  int64_t windows = 0;         // of each text
  int64_t skipped_tokens = 0;  // of each text
  int64_t prompt_tokens = 0;   // before the first scored position; 0: half a window
};

// Errors: kInvalidArgument for a prompt that leaves nothing to score; those of CutWindows, naming
// the text.
Result<std::vector<TextPassages>> CutTexts(const Vocab& vocab, std::span<const EvalText> texts,
                                           const WindowChoice& choice);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_EVAL_INPUTS_H_
