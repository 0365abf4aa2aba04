// Water-filling against the best of all allocations, and its errors against simulation.
#include "quant/water_fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace shorthand {
namespace {

// The error of one group in double, its range narrowed about its middle.
double ErrorOf(const std::vector<double>& x, int bits, double ratio) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const double middle = (*low + *high) / 2, half = (*high - *low) / 2 * ratio;
  const double top = (1 << bits) - 1, step = 2 * half / top;
  double error = 0;
  for (const double v : x) {
    const double code = std::clamp(std::nearbyint((v - middle + half) / step), 0.0, top);
    error += std::pow(v - (middle - half + step * code), 2);
  }
  return error / static_cast<double>(x.size());
}

TEST(WaterFillTest, ErrorsOfGaussianGroups) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (const int bits : kQuadWidths) {
    double sum = 0;
    constexpr int kGroups = 4000;
    for (int g = 0; g < kGroups; ++g) {
      std::vector<double> x(128);
      for (double& v : x) v = normal(random);
      double least = ErrorOf(x, bits, 1);
      for (const double ratio : {.9, .8, .7, .6, .5}) {
        if (bits <= 3) least = std::min(least, ErrorOf(x, bits, ratio));
      }
      sum += least;
    }
    EXPECT_NEAR(sum / kGroups / GaussianError(bits), 1, .03) << bits;
  }
}

double Damage(const std::vector<double>& importance, const std::vector<uint8_t>& widths) {
  double sum = 0;
  for (size_t i = 0; i < widths.size(); ++i) sum += importance[i] * GaussianError(widths[i]);
  return sum;
}

// The least damage of all allocations of up to `total` bits.
double BestDamage(const std::vector<double>& importance, int total) {
  std::vector<uint8_t> widths(importance.size());
  double best = INFINITY;
  const auto go = [&](auto self, size_t quad, int left) -> void {
    if (quad == widths.size()) {
      best = std::min(best, Damage(importance, widths));
      return;
    }
    for (const int bits : kQuadWidths) {
      if (bits > left) continue;
      widths[quad] = static_cast<uint8_t>(bits);
      self(self, quad + 1, left - bits);
    }
  };
  go(go, 0, total);
  return best;
}

TEST(WaterFillTest, NoAllocationIsMuchBetter) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> spread(0, 2);
  for (int round = 0; round < 20; ++round) {
    std::vector<double> importance(5);
    for (double& x : importance) x = spread(random);
    for (int total = 10; total <= 40; ++total) {
      const std::vector<uint8_t> widths = FillWidths(importance, total);
      const int sum = std::accumulate(widths.begin(), widths.end(), 0);
      EXPECT_LE(sum, total);
      EXPECT_GE(sum, total - 1);
      // Where two bits did not fit any more, one that was spent elsewhere may be missing.
      const double damage = Damage(importance, widths);
      EXPECT_LE(damage, BestDamage(importance, total - 2) * (1 + 1e-12));
      EXPECT_GE(damage, BestDamage(importance, total) * (1 - 1e-12));
    }
  }
}

// By hand: a quad that matters 100 times as much gets the bits first. Gains per bit of the steps
// 2-3, 3-4, 4-5, 5-6, 6-8 are .0864, .0245, .00774, .00179, .000268.
TEST(WaterFillTest, ByHand) {
  using Widths = std::vector<uint8_t>;
  const std::vector<double> importance = {1, 100};
  EXPECT_EQ(FillWidths(importance, 4), Widths({2, 2}));
  EXPECT_EQ(FillWidths(importance, 6), Widths({2, 4}));
  EXPECT_EQ(FillWidths(importance, 8), Widths({2, 6}));  // .179 a bit before .0864
  EXPECT_EQ(FillWidths(importance, 9), Widths({3, 6}));
  EXPECT_EQ(FillWidths(importance, 11), Widths({3, 8}));  // .0268 a bit before .0245
  EXPECT_EQ(FillWidths(importance, 16), Widths({8, 8}));
  EXPECT_EQ(FillWidths(std::vector<double>{1, 1, 1}, 10), Widths({4, 3, 3}));
}

}  // namespace
}  // namespace shorthand
