// The orders in which numbers are combined: reductions and the Hadamard transform; smoothing.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "base/half.h"
#include "quant/hadamard.h"
#include "quant/meta.h"
#include "quant/page_test_util.h"
#include "quant/reduce.h"

namespace shorthand {
namespace {

std::vector<float> Normals(int n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

TEST(ReduceTest, LanesAddInTheDocumentedTree) {
  // In lane 0: (2^24 + 1) loses the 1. Across lanes 0 and 8 it would be lost too, but the ones of
  // lanes 1 and 9 meet each other first.
  std::vector<float> x(32);
  x[0] = 0x1p24f;
  x[16] = 1;
  EXPECT_EQ(Dot(Order::kLanes, x.data(), std::vector<float>(32, 1).data(), 32), 0x1p24f);
  x[16] = 0;
  x[1] = x[9] = 1;
  EXPECT_EQ(Dot(Order::kLanes, x.data(), std::vector<float>(32, 1).data(), 32), 0x1p24f + 2);
  // One after the other both are lost.
  EXPECT_EQ(Dot(Order::kSequential, x.data(), std::vector<float>(32, 1).data(), 32), 0x1p24f);
}

TEST(ReduceTest, EveryLengthAgreesWithDoublePrecision) {
  for (int n = 1; n <= 130; ++n) {
    const std::vector<float> x = Normals(n);
    double sum = 0, absolute = 0;
    for (float v : x) {
      sum += static_cast<double>(v) * v;
      absolute = std::max(absolute, std::fabs(static_cast<double>(v)));
    }
    EXPECT_NEAR(Dot(Order::kLanes, x.data(), x.data(), n), sum, 1e-5 * sum);
    EXPECT_NEAR(Dot(Order::kSequential, x.data(), x.data(), n), sum, 1e-5 * sum);
    EXPECT_EQ(AbsMax(x.data(), n), absolute);
    EXPECT_EQ(Max(x.data(), n), *std::max_element(x.begin(), x.end()));
    EXPECT_EQ(Min(x.data(), n), *std::min_element(x.begin(), x.end()));
  }
}

TEST(HadamardTest, EqualsTheMatrixOfItsDefinition) {
  for (int block = 1; block <= 1024; block *= 2) {
    std::vector<float> x = Normals(block);
    const std::vector<float> before = x;
    Hadamard(x.data(), block, block);
    for (int i = 0; i < block; i += 1 + block / 37) {
      double expected = 0;
      for (int j = 0; j < block; ++j) {
        const int sign = std::popcount(static_cast<unsigned>(i & j)) % 2 == 0 ? 1 : -1;
        expected += sign * static_cast<double>(before[j]);
      }
      EXPECT_NEAR(x[i], expected / std::sqrt(block), 1e-5) << block << " " << i;
    }
  }
}

TEST(HadamardTest, IsItsOwnInverseInBlocks) {
  for (int n : {8, 24, 64, 80, 96, 128, 256, 1024}) {
    for (int block = 1; block <= LargestPowerOfTwoDividing(n); block *= 2) {
      std::vector<float> x = Normals(n);
      const std::vector<float> before = x;
      Hadamard(x.data(), n, block);
      Hadamard(x.data(), n, block);
      for (int i = 0; i < n; ++i) EXPECT_NEAR(x[i], before[i], 4e-6) << n << " " << block;
    }
  }
}

TEST(HadamardTest, FactorIsTheNearestFloat) {
  EXPECT_EQ(HadamardFactor(1), 1.0f);
  EXPECT_EQ(HadamardFactor(2), 0x1.6a09e6p-1f);
  EXPECT_EQ(HadamardFactor(64), 0.125f);
  EXPECT_EQ(HadamardFactor(128), 0x1.6a09e6p-4f);
}

TEST(HadamardTest, LargestPowerOfTwo) {
  EXPECT_EQ(LargestPowerOfTwoDividing(80), 16);
  EXPECT_EQ(LargestPowerOfTwoDividing(96), 32);
  EXPECT_EQ(LargestPowerOfTwoDividing(128), 128);
}

// docs/formats/page.md: channels c and c + d/2 share the root of their largest magnitude.
TEST(SmoothTest, FactorsByHand) {
  std::vector<float> x(kPageTokens * 8);
  for (int t = 0; t < kPageTokens; ++t) {
    const float row[] = {1, -9, 0.25f, 0, 4, 2, 0.5f, 0};  // pairs 1 4, -9 2, .25 .5, 0 0
    for (int c = 0; c < 8; ++c) x[t * 8 + c] = t == 77 ? row[c] : row[c] / 2;
  }
  const SealedSide sealed(ResolveText("smooth:u8/tok", SideKind::kKey, 8), x);
  float factors[4];
  ReadMeta(sealed.format, sealed.page.data(), sealed.descriptor, {.smooth = factors});
  EXPECT_EQ(factors[0], 2);
  EXPECT_EQ(factors[1], 3);
  EXPECT_EQ(factors[2], RoundToF16(std::sqrt(.5f)));
  EXPECT_EQ(factors[3], 1);
  // Without token 77 all magnitudes are half as large.
  const SealedSide later(sealed.format, x, 78);
  ReadMeta(later.format, later.page.data(), later.descriptor, {.smooth = factors});
  EXPECT_EQ(factors[0], RoundToF16(std::sqrt(2.0f)));
}

// A loud channel spoils the scales of whole tokens; divided by the root of its magnitude it does so
// less.
TEST(SmoothTest, LoudChannelsSpoilLess) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(kPageTokens * 64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = RoundToF16(normal(random) * (i % 64 == 9 ? 60 : 1));
  const auto error = [&](const char* text) {
    const std::vector<float> read = SealedSide(ResolveText(text, SideKind::kKey, 64), x).Unsealed();
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += i % 64 == 9 ? 0 : std::pow(read[i] - x[i], 2);
    return sum;
  };
  EXPECT_LT(error("smooth:u4/tok"), error("u4/tok") / 8);
}

}  // namespace
}  // namespace shorthand
