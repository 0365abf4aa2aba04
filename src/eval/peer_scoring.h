// Scoring of llama.cpp's own cache types, each against llama.cpp's own f16 cache.
//
// The passages, chunks and scores are those of scoring.h; the book keeps both. llama.cpp rounds the
// query to 8 bits and quantizes the newest tokens, too, so its rows show more than the loss of a
// format. Memory is bounded as there.
// Thread-safety: one thread at a time.
#ifndef SHORTHAND_EVAL_PEER_SCORING_H_
#define SHORTHAND_EVAL_PEER_SCORING_H_

#include <span>
#include <string>

#include "eval/evaluate.h"
#include "eval/llama_peer.h"
#include "eval/passage.h"
#include "eval/score_book.h"
#include "eval/scoring.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

// Names llama.cpp's version: another one may compute differently.
std::string LaneOf(const LlamaCacheType& type);

// A type that fails does so alone: it is in the result. Errors: those of LlamaPeer for the f16
// cache and of ScoreBook::Save.
Result<LaneFailures> ScorePeers(const LlamaWeights& weights, int threads, const Shape& shape,
                                std::span<const Passage> passages,
                                std::span<const LlamaCacheType> types, ScoreBook& book,
                                const ScoreOptions& options = {});

// llama.cpp keeps nothing exact: its true bits are those of its types.
Contender ContenderOf(const Shape& shape, const LlamaCacheType& type, const LaneFailures& failures);

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_PEER_SCORING_H_
