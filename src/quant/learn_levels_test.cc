#include "quant/learn_levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace shorthand {
namespace {

// Signposts of 2 bits: -1, 0, 17/39, 1; those of docs/formats/table.md.
constexpr float kSecond = 17.0f / 39;

TEST(LearnLevelsTest, WithoutValuesSignpostsStay) {
  const LevelLearner learner;
  EXPECT_EQ(learner.Levels(2), std::vector<float>({-1, 0, kSecond, 1}));
  EXPECT_EQ(learner.Levels(3).size(), 8u);
  EXPECT_EQ(learner.Levels(4).size(), 16u);
  EXPECT_EQ(learner.Levels(4)[7], 0);
}

// Eight values for eight levels: each level takes the values nearest its signpost, -60 -32 -15 0 11
// 23 37 60 in 60ths, and empty ones stay.
TEST(LearnLevelsTest, LevelsAreWeightedMeansOfTheirValues) {
  LevelLearner learner;
  learner.Add(-0.9, 1);  // beyond the midpoint -46/60
  learner.Add(-0.8, 3);
  learner.Add(0.0625, 2);  // below 5.5/60
  learner.Add(0.9, 1);     // beyond 48.5/60
  learner.Add(1.0, 1);
  const std::vector<float> levels = learner.Levels(3);
  EXPECT_NEAR(levels[0], (-0.9 - 3 * 0.8) / 4, 1e-7);
  EXPECT_NEAR(levels[1], -32.0 / 60, 1e-7);
  EXPECT_NEAR(levels[3], 0.0625, 1e-7);
  EXPECT_NEAR(levels[6], 37.0 / 60, 1e-7);
  EXPECT_NEAR(levels[7], 0.95, 1e-7);
}

// Values that weigh nothing move no level.
TEST(LearnLevelsTest, WeightsOfZero) {
  LevelLearner learner;
  learner.Add(0.5, 0);
  EXPECT_EQ(learner.Levels(3), LevelLearner().Levels(3));
}

// Three rounds: first -1 takes -1 and -.625, 0 takes -.25 and 0; their means -.8125 and -.125 have
// the midpoint -.46875, between -.625 and -.25, so that nothing moves. Q-Norm then: z has the mean
// -.375 / 6 ... worked out below in the words of the document.
TEST(LearnLevelsTest, QNormKeepsMeanAndDeviation) {
  const double z[] = {-1, -0.625, -0.25, 0, 0.5, 1};
  LevelLearner learner;
  for (const double x : z) learner.Add(x, 1);
  const double coded[] = {-0.8125, -0.8125, -0.125, -0.125, 0.5, 1};
  double m1 = 0, m2 = 0, v1 = 0, v2 = 0;
  for (int i = 0; i < 6; ++i) {
    m1 += z[i] / 6;
    m2 += coded[i] / 6;
  }
  for (int i = 0; i < 6; ++i) {
    v1 += (z[i] - m1) * (z[i] - m1) / 6;
    v2 += (coded[i] - m2) * (coded[i] - m2) / 6;
  }
  const double factor = std::sqrt(v1 / v2);
  const std::vector<float> levels = learner.Levels(2);
  const double expected[] = {-0.8125, -0.125, 0.5, 1};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(levels[i], expected[i] * factor + m1 - m2 * factor, 1e-6) << i;
  }
}

// A single value: coded values have no deviation, and the level is the value.
TEST(LearnLevelsTest, OneValue) {
  LevelLearner learner;
  learner.Add(0.25, 5);
  const std::vector<float> levels = learner.Levels(2);
  EXPECT_EQ(std::count(levels.begin(), levels.end(), 0.25f), 1);
  EXPECT_TRUE(std::is_sorted(levels.begin(), levels.end()));
}

// On a fine grid of a triangular density the levels of 3 bits are a fixed point of Lloyd's
// iteration: each the mean of what is nearest to it, up to a bin's width.
TEST(LearnLevelsTest, AFixedPointOfLloydsIteration) {
  LevelLearner learner;
  std::vector<std::pair<double, double>> values;
  for (int i = 0; i <= 20000; ++i) {
    const double z = -1 + i * 1e-4;
    values.emplace_back(z, 1 - std::fabs(z));
    learner.Add(z, values.back().second);
  }
  const std::vector<float> levels = learner.Levels(3);
  std::vector<double> weight(8), weighted(8);
  for (const auto& [z, w] : values) {
    size_t nearest = 0;
    for (size_t i = 1; i < 8; ++i) {
      if (std::fabs(z - levels[i]) < std::fabs(z - levels[nearest])) nearest = i;
    }
    weight[nearest] += w;
    weighted[nearest] += w * z;
  }
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(levels[i], weighted[i] / weight[i], 0.01) << i;
}

TEST(LearnLevelsTest, EndsOfTheRangeAreIn) {
  LevelLearner learner;
  learner.Add(-1, 1);
  learner.Add(1, 1);
  const std::vector<float> levels = learner.Levels(4);
  EXPECT_EQ(levels.front(), -1);
  EXPECT_EQ(levels.back(), 1);
}

}  // namespace
}  // namespace shorthand
