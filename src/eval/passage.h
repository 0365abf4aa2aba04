// Passage: tokens of which the last ones are scored, each by the token that follows it.
//
// Windows of a text, hidden needles and free-running texts are all passages: whatever is measured
// over caches goes through the same steps in the same chunks.
// Thread-safety: values and pure functions.
#ifndef SHORTHAND_EVAL_PASSAGE_H_
#define SHORTHAND_EVAL_PASSAGE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/vocab.h"

namespace shorthand {

struct Passage {
  std::vector<Token> tokens;
  // Position of the first token whose successor is scored. The last token is only a successor.
  // REQUIRES: 0 <= first_scored < tokens.size() - 1.
  int64_t first_scored = 0;

  int64_t scored_positions() const {
    return static_cast<int64_t>(tokens.size()) - 1 - first_scored;
  }
};

// The same for equal passages alone: what results are kept under.
std::string PassageId(const Passage& passage);

// Tokens that are fed at once, within the passage.
struct Chunk {
  std::span<const Token> tokens;
  std::span<const Token> targets;  // what follows each of them; empty before the first scored one
};

// The most tokens of a scored chunk. It bounds the logits that are held: gemma's 262144 entries of
// 128 positions are 128 MiB.
inline constexpr int64_t kScoredChunkTokens = 128;
inline constexpr int64_t kPromptTokensAtOnce = 512;

// All tokens but the last. A chunk is scored as a whole or not at all.
std::vector<Chunk> ChunksOf(const Passage& passage);

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_PASSAGE_H_
