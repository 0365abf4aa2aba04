// Windows: the pieces of a text on which a model is evaluated, cut as llama.cpp's perplexity does.
//
// The text is tokenized once and cut into consecutive windows of the same length. Where the model
// opens its texts with a begin token, it takes the place of each window's first token. The second
// half of a window is scored: positions from the middle on, each by the token that follows it
// within the window.
// Thread-safety: values and pure functions.
#ifndef SHORTHAND_EVAL_WINDOWS_H_
#define SHORTHAND_EVAL_WINDOWS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "eval/passage.h"
#include "model/vocab.h"
#include "shorthand/status.h"

namespace shorthand {

inline constexpr int64_t kMinWindowTokens = 16;

using Window = std::vector<Token>;

// The first of a window's positions that is scored.
constexpr int64_t FirstScored(int64_t window_tokens) { return window_tokens / 2; }
// One less than half a window: what follows its last token is not in it.
constexpr int64_t ScoredPositions(int64_t window_tokens) {
  return window_tokens - 1 - FirstScored(window_tokens);
}

// The first `windows` windows of `window_tokens` tokens behind `skipped_tokens`; fewer if the text
// ends before. Errors: kInvalidArgument for numbers out of range, text that is not UTF-8 or that is
// shorter than one window.
Result<std::vector<Window>> CutWindows(const Vocab& vocab, std::string_view text,
                                       int64_t window_tokens, int64_t windows,
                                       int64_t skipped_tokens = 0);

// Windows whose positions from `first_scored` on are scored.
// REQUIRES: 0 <= first_scored < tokens of a window - 1.
std::vector<Passage> PassagesOf(std::vector<Window> windows, int64_t first_scored);

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_WINDOWS_H_
