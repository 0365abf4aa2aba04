// The text on which `shorthand eval` measures.
// Thread-safety: reads files; otherwise pure functions.
#ifndef SHORTHAND_TOOLS_EVAL_TEXT_H_
#define SHORTHAND_TOOLS_EVAL_TEXT_H_

#include <string>
#include <vector>

#include "shorthand/status.h"

namespace shorthand {

struct EvalText {
  std::string name;  // for people
  std::string text;
};

// A file, or the project's documents (README.md and docs/*.md, installed beside the command or in
// the source tree it was built from) if `path` is empty.
// Errors: kNotFound.
Result<EvalText> ReadEvalText(const std::string& path);

// Of every path; the project's documents if there is none. Errors: the first one's.
Result<std::vector<EvalText>> ReadEvalTexts(const std::vector<std::string>& paths);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_EVAL_TEXT_H_
