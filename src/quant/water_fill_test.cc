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

// The codes of scale * code + offset nearest to x.
std::vector<double> CodesOf(const std::vector<double>& x, double scale, double offset, double top) {
  std::vector<double> codes;
  for (const double v : x) {
    codes.push_back(std::clamp(std::nearbyint((v - offset) / scale), 0.0, top));
  }
  return codes;
}

// The error of one group in double: codes of `ratio` of the range, then of the lines of least
// squares through the codes before, `rounds` times.
double ErrorOf(const std::vector<double>& x, int bits, double ratio, int rounds) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const double top = (1 << bits) - 1, count = static_cast<double>(x.size());
  double scale = (*high - *low) * ratio / top, offset = (*low + *high - scale * top) / 2;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<double> codes = CodesOf(x, scale, offset, top);
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / count;
    const double middle = std::accumulate(codes.begin(), codes.end(), 0.0) / count;
    double covariance = 0, variance = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      covariance += (x[i] - mean) * (codes[i] - middle);
      variance += (codes[i] - middle) * (codes[i] - middle);
    }
    scale = covariance / variance;
    offset = mean - scale * middle;
  }
  const std::vector<double> codes = CodesOf(x, scale, offset, top);
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) error += std::pow(x[i] - offset - scale * codes[i], 2);
  return error / count;
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
      sum += bits == 2   ? ErrorOf(x, 2, .65, 2)
             : bits == 3 ? ErrorOf(x, 3, .82, 2)
                         : ErrorOf(x, bits, 1, 0);
    }
    EXPECT_NEAR(sum / kGroups / GaussianError(bits), 1, .02) << bits;
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
// 2-3, 3-4, 4-5, 5-6, 6-8 are .0816, .0233, .00774, .00179, .000268.
TEST(WaterFillTest, ByHand) {
  using Widths = std::vector<uint8_t>;
  const std::vector<double> importance = {1, 100};
  EXPECT_EQ(FillWidths(importance, 4), Widths({2, 2}));
  EXPECT_EQ(FillWidths(importance, 6), Widths({2, 4}));
  EXPECT_EQ(FillWidths(importance, 8), Widths({2, 6}));  // .179 a bit before .0816
  EXPECT_EQ(FillWidths(importance, 9), Widths({3, 6}));
  EXPECT_EQ(FillWidths(importance, 11), Widths({3, 8}));  // .0268 a bit before .0233
  EXPECT_EQ(FillWidths(importance, 16), Widths({8, 8}));
  EXPECT_EQ(FillWidths(std::vector<double>{1, 1, 1}, 10), Widths({4, 3, 3}));
}

}  // namespace
}  // namespace shorthand
