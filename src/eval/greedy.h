// Greedy agreement: for how many tokens a cache's likeliest tokens are those of the exact cache.
//
// The exact cache writes a text freely. Another cache that reads that text back agrees up to the
// first position where its likeliest token is another, which is where its own free text would part:
// reading back in chunks gives the same length as writing, and costs a fraction.
// Thread-safety: one thread at a time for a model.
#ifndef SHORTHAND_EVAL_GREEDY_H_
#define SHORTHAND_EVAL_GREEDY_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "eval/metrics.h"
#include "eval/passage.h"
#include "eval/score_book.h"
#include "model/model.h"
#include "shorthand/status.h"

namespace shorthand {

// `prompt` and the `tokens` likeliest tokens behind it over the exact cache, which are scored. End
// tokens do not end it. A text that `book` holds is not written again. `on_token` may be empty.
// Errors: kOutOfRange if both are longer than the model's context; those of Cache and Model, and of
// ScoreBook::Save. REQUIRES: a prompt; tokens >= 1.
Result<Passage> ContinueGreedily(Model& model, std::span<const Token> prompt, int64_t tokens,
                                 ScoreBook& book, const std::function<void()>& on_token = {});

// The leading positions with the same likeliest token.
int64_t AgreementLength(std::span<const PositionScore> scores);

// Of each passage; empty if the book misses one.
std::vector<int64_t> AgreementLengths(std::span<const Passage> passages, const std::string& lane,
                                      const ScoreBook& book);

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_GREEDY_H_
