// Metrics against values derived by hand and against long double.
#include "eval/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace shorthand {
namespace {

std::vector<PositionScore> Compare(std::span<const float> exact, std::span<const float> other,
                                   std::span<const Token> targets, int threads = 1) {
  ExactLogits logits(static_cast<int>(exact.size() / targets.size()), threads);
  logits.Set(exact, targets);
  std::vector<PositionScore> scores;
  logits.Compare(other, scores);
  return scores;
}

TEST(ExactLogitsTest, TwoTokensByHand) {
  // P = (3/4, 1/4) against (1/2, 1/2); the constants added to the logits change nothing.
  const std::vector<float> exact = {std::log(3.0f) + 5, 5};
  const std::vector<float> other = {-7, -7};
  const auto scores = Compare(exact, other, std::vector<Token>{1});
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_NEAR(scores[0].kl, 0.75 * std::log(1.5) - 0.25 * std::log(2.0), 1e-7);
  EXPECT_NEAR(scores[0].nll_exact, std::log(4.0), 1e-7);
  EXPECT_NEAR(scores[0].nll, std::log(2.0), 1e-12);
  EXPECT_TRUE(scores[0].same_top);  // of equals, the first
}

TEST(ExactLogitsTest, TopIsComparedByPosition) {
  const std::vector<float> exact = {1, 2, 3, 9, 2, 3};
  const std::vector<float> other = {1, 3, 2, 5, 4, 4};
  const auto scores = Compare(exact, other, std::vector<Token>{0, 0});
  EXPECT_FALSE(scores[0].same_top);
  EXPECT_TRUE(scores[1].same_top);
}

TEST(ExactLogitsTest, EqualLogitsDivergeByExactlyNothing) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 8);
  std::vector<float> logits(1000);
  std::generate(logits.begin(), logits.end(), [&] { return normal(random); });
  const auto scores = Compare(logits, logits, std::vector<Token>{7, 3});
  for (const PositionScore& score : scores) {
    EXPECT_EQ(score.kl, 0);
    EXPECT_EQ(score.nll, score.nll_exact);
    EXPECT_TRUE(score.same_top);
  }
}

TEST(ExactLogitsTest, LargeLogitsDoNotOverflow) {
  const auto scores = Compare(std::vector<float>{3e38f, -3e38f}, std::vector<float>{3e38f, 0},
                              std::vector<Token>{0});
  EXPECT_EQ(scores[0].kl, 0);
  EXPECT_EQ(scores[0].nll, 0);
}

TEST(ExactLogitsTest, WhatIsNoNumberScoresNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto scores =
      Compare(std::vector<float>{0, 1}, std::vector<float>{nan, 1}, std::vector<Token>{1});
  EXPECT_TRUE(std::isnan(scores[0].kl));
  EXPECT_TRUE(std::isnan(scores[0].nll));
}

long double LogSum(std::span<const float> logits) {
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
  return std::log(sum);
}

TEST(ExactLogitsTest, LongDoubleAgreesForAnyNumberOfThreads) {
  constexpr size_t kVocabulary = 5000, kPositions = 7;
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 4), small(0, 1e-3f);
  std::vector<float> exact(kVocabulary * kPositions), other(exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    exact[i] = normal(random);
    other[i] = exact[i] + small(random);
  }
  const std::vector<Token> targets = {0, 1, 2, 3, 4, 5, 4999};
  const auto one = Compare(exact, other, targets, 1);
  for (const int threads : {2, 3, 16}) {
    const auto many = Compare(exact, other, targets, threads);
    for (size_t i = 0; i < kPositions; ++i) EXPECT_EQ(many[i].kl, one[i].kl) << threads;
  }
  for (size_t row = 0; row < kPositions; ++row) {
    const auto p = std::span(exact).subspan(row * kVocabulary, kVocabulary);
    const auto q = std::span(other).subspan(row * kVocabulary, kVocabulary);
    const long double log_sum_p = LogSum(p), log_sum_q = LogSum(q);
    long double kl = 0;
    for (size_t i = 0; i < kVocabulary; ++i) {
      const long double log_p = p[i] - log_sum_p, log_q = q[i] - log_sum_q;
      kl += std::exp(log_p) * (log_p - log_q);
    }
    EXPECT_NEAR(one[row].kl, static_cast<double>(kl), 1e-13);
    EXPECT_NEAR(one[row].nll, static_cast<double>(log_sum_q - q[targets[row]]), 1e-12);
  }
}

TEST(SummarizeTest, ThreePositionsByHand) {
  const std::vector<PositionScore> scores = {
      {.kl = 0.3, .nll_exact = 1, .nll = 1.2, .same_top = true},
      {.kl = 0.1, .nll_exact = 2, .nll = 1.9, .same_top = false},
      {.kl = 0.5, .nll_exact = 3, .nll = 3.5, .same_top = true},
  };
  const Summary summary = Summarize(scores);
  EXPECT_EQ(summary.positions, 3);
  EXPECT_NEAR(summary.kl_mean, 0.3, 1e-15);
  // The sample variance of 0.3, 0.1, 0.5 is 0.04.
  EXPECT_NEAR(summary.kl_mean_error, std::sqrt(0.04 / 3), 1e-15);
  EXPECT_EQ(summary.kl_median, 0.3);
  EXPECT_EQ(summary.kl_p999, 0.5);
  EXPECT_EQ(summary.kl_max, 0.5);
  EXPECT_NEAR(summary.same_top, 2.0 / 3, 1e-15);
  EXPECT_NEAR(summary.ppl_exact, std::exp(2.0), 1e-12);
  EXPECT_NEAR(summary.ppl, std::exp(2.2), 1e-12);
  EXPECT_NEAR(summary.ppl_ratio, std::exp(0.2), 1e-12);
  // Log ratios 0.2, -0.1, 0.5: their mean is 0.2, the sample variance 0.09.
  EXPECT_NEAR(summary.ppl_ratio_error, std::exp(0.2) * std::sqrt(0.09 / 3), 1e-12);
  const double deltas[] = {std::exp(-1.2) - std::exp(-1.0), std::exp(-1.9) - std::exp(-2.0),
                           std::exp(-3.5) - std::exp(-3.0)};
  double squares = 0;
  for (const double delta : deltas) squares += delta * delta;
  EXPECT_NEAR(summary.rms_delta, std::sqrt(squares / 3), 1e-15);
}

TEST(SummarizeTest, OnePositionHasNoError) {
  const PositionScore score = {.kl = 0.25, .nll_exact = 1, .nll = 2, .same_top = true};
  const Summary summary = Summarize({&score, 1});
  EXPECT_EQ(summary.kl_p999, 0.25);
  EXPECT_EQ(summary.kl_mean_error, 0);
  EXPECT_EQ(summary.ppl_ratio_error, 0);
}

TEST(QuantileTest, NearestRank) {
  std::vector<double> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  EXPECT_EQ(QuantileByRank(values, 0.5), 500);
  EXPECT_EQ(QuantileByRank(values, 0.999), 999);
  EXPECT_EQ(QuantileByRank(values, 1), 1000);
  EXPECT_EQ(QuantileByRank(std::span(values).first(5), 0.5), 3);
  EXPECT_EQ(QuantileByRank(std::span(values).first(4), 0.5), 2);
  EXPECT_EQ(QuantileByRank(std::span(values).first(1), 0.001), 1);
}

}  // namespace
}  // namespace shorthand
