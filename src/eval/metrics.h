// Metrics: how far the predictions over one cache are from those over the exact cache.
//
// A position of a text is scored by the distributions of the token that follows it: the divergence
// KL(P_exact || P), whether the likeliest token is the same, and what each gave the token that
// does follow. Sums run in double precision from float logits. docs/evaluation.md has the
// formulas and how to read them.
// Thread-safety: values and pure functions; ExactLogits one thread at a time, with threads inside.
#ifndef SHORTHAND_EVAL_METRICS_H_
#define SHORTHAND_EVAL_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/vocab.h"

namespace shorthand {

struct PositionScore {
  double kl = 0;         // KL(P_exact || P), nats
  double nll_exact = 0;  // -log P_exact of the token that follows
  double nll = 0;        // -log P of it
  bool same_top = false;
};

// The exact cache's logits at some positions, with which those of other caches are compared.
class ExactLogits {
 public:
  // `threads` share the rows of every call.
  ExactLogits(int vocabulary, int threads) : vocabulary_(vocabulary), threads_(threads) {}

  // Copies `logits` [targets][vocabulary]; `targets` are the tokens that follow.
  void Set(std::span<const float> logits, std::span<const Token> targets);

  // Appends a score for each position to `scores`. Logits that are not numbers give scores that
  // are none.
  // REQUIRES: logits [targets][vocabulary] of the positions given to Set.
  void Compare(std::span<const float> logits, std::vector<PositionScore>& scores) const;

 private:
  // What a row of logits comes down to: log of the sum of exp, and the place of the largest.
  struct Row {
    double log_sum = 0;
    size_t top = 0;
  };
  Row Reduce(std::span<const float> logits) const;
  PositionScore Score(size_t position, std::span<const float> logits) const;

  size_t vocabulary_;
  int threads_;
  std::vector<float> logits_;  // [positions][vocabulary]
  std::vector<Token> targets_;
  std::vector<Row> rows_;
};

struct Summary {
  int64_t positions = 0;
  double kl_mean = 0;
  double kl_mean_error = 0;  // standard error, positions taken as independent
  double kl_median = 0;
  double kl_p999 = 0;
  double kl_max = 0;
  double same_top = 0;   // share of the positions, 0 to 1
  double rms_delta = 0;  // root mean square of the change of p(the token that follows)
  double ppl = 0;
  double ppl_exact = 0;
  double ppl_ratio = 0;        // ppl / ppl_exact
  double ppl_ratio_error = 0;  // standard error of the mean log ratio, times the ratio
};

// REQUIRES: not empty.
Summary Summarize(std::span<const PositionScore> scores);

// The smallest value that at least a share `q` of `sorted` does not exceed.
// REQUIRES: 0 < q <= 1; `sorted` is ascending and not empty.
double QuantileByRank(std::span<const double> sorted, double q);

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_METRICS_H_
