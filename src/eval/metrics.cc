#include "eval/metrics.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"

namespace shorthand {
namespace {

// Of a mean of `count` values whose squared distances from it sum to `squares`; 0 for one value.
double StandardError(double squares, double count) {
  return count > 1 ? std::sqrt(squares / (count - 1) / count) : 0;
}

}  // namespace

void ExactLogits::Set(std::span<const float> logits, std::span<const Token> targets) {
  logits_.assign(logits.begin(), logits.end());
  targets_.assign(targets.begin(), targets.end());
  rows_.resize(targets.size());
  ForEach(rows_.size(), threads_, [&](size_t i) {
    rows_[i] = Reduce(std::span<const float>(logits_).subspan(i * vocabulary_, vocabulary_));
  });
}

void ExactLogits::Compare(std::span<const float> logits, std::vector<PositionScore>& scores) const {
  const size_t first = scores.size();
  scores.resize(first + rows_.size());
  ForEach(rows_.size(), threads_, [&](size_t i) {
    scores[first + i] = Score(i, logits.subspan(i * vocabulary_, vocabulary_));
  });
}

ExactLogits::Row ExactLogits::Reduce(std::span<const float> logits) const {
  Row row;
  row.top = std::max_element(logits.begin(), logits.end()) - logits.begin();
  const double largest = logits[row.top];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  row.log_sum = largest + std::log(sum);
  return row;
}

PositionScore ExactLogits::Score(size_t position, std::span<const float> logits) const {
  const float* exact = logits_.data() + position * vocabulary_;
  const Row& exact_row = rows_[position];
  const Row row = Reduce(logits);
  double kl = 0;
  for (size_t i = 0; i < vocabulary_; ++i) {
    const double log_exact = exact[i] - exact_row.log_sum;
    kl += std::exp(log_exact) * (log_exact - (logits[i] - row.log_sum));
  }
  const size_t target = static_cast<size_t>(targets_[position]);
  PositionScore score;
  score.kl = kl < 0 ? 0 : kl;  // below zero by rounding alone
  score.nll_exact = exact_row.log_sum - exact[target];
  score.nll = row.log_sum - logits[target];
  score.same_top = row.top == exact_row.top;
  return score;
}

double QuantileByRank(std::span<const double> sorted, double q) {
  const double rank = std::ceil(q * static_cast<double>(sorted.size()));
  return sorted[std::max<size_t>(static_cast<size_t>(rank), 1) - 1];
}

Summary Summarize(std::span<const PositionScore> scores) {
  const double count = static_cast<double>(scores.size());
  std::vector<double> kls;
  kls.reserve(scores.size());
  double kl = 0, nll = 0, nll_exact = 0, same_top = 0, squared_delta = 0;
  for (const PositionScore& score : scores) {
    kls.push_back(score.kl);
    kl += score.kl;
    nll += score.nll;
    nll_exact += score.nll_exact;
    same_top += score.same_top ? 1 : 0;
    const double delta = std::exp(-score.nll) - std::exp(-score.nll_exact);
    squared_delta += delta * delta;
  }
  const double kl_mean = kl / count;
  const double log_ratio = (nll - nll_exact) / count;
  double kl_squares = 0, log_ratio_squares = 0;
  for (const PositionScore& score : scores) {
    const double kl_error = score.kl - kl_mean;
    const double log_ratio_error = score.nll - score.nll_exact - log_ratio;
    kl_squares += kl_error * kl_error;
    log_ratio_squares += log_ratio_error * log_ratio_error;
  }
  std::sort(kls.begin(), kls.end());

  Summary summary;
  summary.positions = static_cast<int64_t>(scores.size());
  summary.kl_mean = kl_mean;
  summary.kl_mean_error = StandardError(kl_squares, count);
  summary.kl_median = QuantileByRank(kls, 0.5);
  summary.kl_p999 = QuantileByRank(kls, 0.999);
  summary.kl_max = kls.back();
  summary.same_top = same_top / count;
  summary.rms_delta = std::sqrt(squared_delta / count);
  summary.ppl = std::exp(nll / count);
  summary.ppl_exact = std::exp(nll_exact / count);
  summary.ppl_ratio = std::exp(log_ratio);
  summary.ppl_ratio_error = summary.ppl_ratio * StandardError(log_ratio_squares, count);
  return summary;
}

}  // namespace shorthand
