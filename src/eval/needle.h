// Needles: numbers hidden in a text at a grid of depths, and asked for at its end.
//
// Each needle is a sentence with a name and a number of five digits. Behind the text every sentence
// is begun again and the right digits follow, so that one pass over a passage measures, at all
// depths, the log-probability that a cache gives them. Nothing is sampled. Needles lie behind every
// sink and before the last 384 tokens of the text, which recent=128 may leave exact.
// Thread-safety: values and pure functions.
#ifndef SHORTHAND_EVAL_NEEDLE_H_
#define SHORTHAND_EVAL_NEEDLE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/passage.h"
#include "eval/score_book.h"
#include "model/vocab.h"
#include "shorthand/status.h"

namespace shorthand {

inline constexpr int kMaxNeedles = 16;

struct Needle {
  double depth = 0;         // place in the passage, 0 to 1
  int64_t first_score = 0;  // where the scores of its digits are among the passage's
  int64_t scores = 0;
};

struct NeedlePassage {
  Passage passage;
  std::vector<Needle> needles;  // by depth
};

// A passage of as many tokens as `haystack` has: its begin, with `needles` needles in it, then the
// questions and answers, in another order. The numbers depend on the haystack.
// Errors: kInvalidArgument for a number of needles out of range, or a haystack that is too short.
Result<NeedlePassage> HideNeedles(const Vocab& vocab, std::span<const Token> haystack, int needles);

// What a cache makes of the needles: log-probabilities of a whole number, means over passages.
struct NeedleResult {
  struct AtDepth {
    double depth = 0;
    double log_p_exact = 0;
    double log_p = 0;
  };
  std::vector<AtDepth> depths;
  double log_p_exact = 0;  // means over depths
  double log_p = 0;
};
// Of a lane; without depths if the book misses a passage. REQUIRES: passages of equally many
// needles.
NeedleResult FoundNeedles(std::span<const NeedlePassage> passages, const std::string& lane,
                          const ScoreBook& book);

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_NEEDLE_H_
