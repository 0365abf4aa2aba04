#include "quant/levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace shorthand {
namespace {

// Squared error of the nearest of `levels` times `step` over N(0, 1), by the trapezoid rule.
double GaussianError(const LevelTable& table, int bits) {
  constexpr double kStep = 1e-4, kEnd = 9;
  double error = 0;
  for (double x = -kEnd; x <= kEnd; x += kStep) {
    double nearest = 1e9;
    for (int code = 0; code < (1 << bits); ++code) {
      nearest =
          std::min(nearest, std::fabs(x - static_cast<double>(table.step) * table.levels[code]));
    }
    error += kStep * nearest * nearest * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  }
  return error;
}

TEST(LevelsTest, LloydMaxTablesReachTheExactError) {
  // Errors of the exact Lloyd-Max quantizers of a Gaussian.
  const double exact[] = {.117482, .034548, .009501};
  for (int bits = 2; bits <= 4; ++bits) {
    const double error = GaussianError(LevelTableOf(Code::kLm, bits), bits);
    EXPECT_LT(error, 1.015 * exact[bits - 2]) << bits;
    EXPECT_GT(error, .999 * exact[bits - 2]) << bits;
  }
}

TEST(LevelsTest, RangeNormalisedTablesFollowTheTrainedOnes) {
  const std::vector<double> trained[] = {{.1798, .6020},
                                         {.0957, .2943, .5226, .8308},
                                         {.0488, .1476, .2496, .3567, .4720, .6007, .7531, .9529}};
  for (int bits = 2; bits <= 4; ++bits) {
    const LevelTable table = LevelTableOf(Code::kRn, bits);
    const int half = 1 << (bits - 1);
    for (int i = 0; i < half; ++i) {
      EXPECT_NEAR(table.step * table.levels[half + i], trained[bits - 2][i], .015) << bits;
      EXPECT_EQ(table.levels[half - 1 - i], -table.levels[half + i]);
    }
  }
}

TEST(LevelsTest, NormalFloatFollowsThePublishedTable) {
  const double published[] = {-1,        -.6961928, -.5250731, -.3949175, -.2844414, -.1847734,
                              -.0910500, 0,         .0795803,  .1609302,  .2461123,  .3379152,
                              .4407098,  .5626170,  .7229568,  1};
  const LevelTable table = LevelTableOf(Code::kNf, 4);
  for (int i = 0; i < 16; ++i) {
    EXPECT_NEAR(table.step * table.levels[i], published[i], .5 / 53 + 1e-6) << i;
  }
  // The same rule by hand for 2 bits: quantiles at p = 1 - (1/6 + 1/8) / 2 = .854167 (1.054472) and
  // (p + 1/2) / 2 = .677083 (.459556), the second over the first.
  const LevelTable two = LevelTableOf(Code::kNf, 2);
  EXPECT_NEAR(two.step * two.levels[2], .459556 / 1.054472, .5 / 39);
}

TEST(LevelsTest, TablesAreAscendingSmallIntegers) {
  for (Code code : {Code::kLm, Code::kRn, Code::kNf}) {
    for (int bits = 2; bits <= 4; ++bits) {
      const float* levels = LevelTableOf(code, bits).levels;
      for (int i = 0; i < (1 << bits); ++i) {
        EXPECT_EQ(levels[i], std::round(levels[i]));
        EXPECT_LE(std::fabs(levels[i]), 63);
        EXPECT_TRUE(i == 0 || levels[i - 1] < levels[i]) << bits << " " << i;
      }
    }
  }
}

TEST(LevelsTest, UniformLevelsAreTheCodes) {
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    for (int code = 0; code < (1 << bits); ++code) {
      EXPECT_EQ(UnsignedLevels()[code], code);
      EXPECT_EQ(SignedLevels(bits)[code], code - (1 << (bits - 1)));
    }
  }
}

TEST(LevelsTest, ZeroCodeIsNearestZero) {
  EXPECT_EQ(ZeroCode(UnsignedLevels(), 4), 0);
  EXPECT_EQ(ZeroCode(SignedLevels(4), 4), 8);
  EXPECT_EQ(ZeroCode(Iq4NlLevels(), 4), 8);
  EXPECT_EQ(ZeroCode(LevelTableOf(Code::kLm, 2).levels, 2), 1);
  EXPECT_EQ(ZeroCode(LevelTableOf(Code::kNf, 4).levels, 4), 7);
  EXPECT_EQ(ZeroCode(E2m1Levels(), 4), 0);
  EXPECT_EQ(ZeroCode(E4m3Levels(), 8), 0);
}

}  // namespace
}  // namespace shorthand
