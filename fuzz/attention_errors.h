// AttentionErrors: the errors of all queries of an input of attention_fuzz, and whether they keep
// to ErrorBound (attention/error_bound.h).
//
// That bound is a share of the recipe's own error. Where the premises fail that the two have the
// same causes and grow alike, less is demanded: nothing where scores are so far apart that softmax
// is a choice, and a fixed allowance where codes happen to hit the values. Thread-safety: one
// thread.
#ifndef SHORTHAND_FUZZ_ATTENTION_ERRORS_H_
#define SHORTHAND_FUZZ_ATTENTION_ERRORS_H_

#include <cstdint>
#include <vector>

#include "attention_scenario.h"
#include "shorthand/recipe.h"

namespace shorthand {

class AttentionErrors {
 public:
  // Outputs of the kernels, in double precision on the same pages, and without any loss; the
  // largest magnitude of a score behind them.
  void Add(const std::vector<float>& out, const std::vector<double>& expected,
           const std::vector<double>& lossless, double largest_score);
  // Requires that they are small enough for `recipe`.
  void Check(const AttentionScenario& scenario, const Recipe& recipe) const;

 private:
  // Squares of norms.
  double arithmetic_ = 0, quantization_ = 0, norm_ = 0;
  double largest_score_ = 0;
  int64_t values_ = 0;
};

}  // namespace shorthand

#endif  // SHORTHAND_FUZZ_ATTENTION_ERRORS_H_
