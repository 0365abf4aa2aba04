// The group /grid: the example of docs/formats/grid.md, what balancing is for, and bounds of what
// is read back.
#include "quant/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "quant/meta.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

std::vector<float> FactorsOf(const SealedSide& sealed) {
  std::vector<float> factors(sealed.format.factors());
  ReadMeta(sealed.format, sealed.page.data(), sealed.descriptor, {.factors = factors.data()});
  return factors;
}

// Standard deviation of values `stride` apart, the sample's.
double Deviation(const float* x, int count, int stride) {
  double sum = 0, squares = 0;
  for (int i = 0; i < count; ++i) sum += x[i * stride];
  for (int i = 0; i < count; ++i) squares += std::pow(x[i * stride] - sum / count, 2);
  return std::sqrt(squares / (count - 1));
}

// docs/formats/grid.md: tokens whose channels are +-1 and -+3 in turn, of which every second one
// becomes a third as loud.
TEST(GridTest, LoudTokensAreBalancedAsByHand) {
  std::vector<float> x(kPageTokens * 8);
  for (int t = 0; t < kPageTokens; ++t) {
    for (int c = 0; c < 8; ++c) x[t * 8 + c] = (t % 2 == 0 ? 1.0f : -3.0f) * (c % 2 == 0 ? 1 : -1);
  }
  const SealedSide sealed(ResolveText("u4/grid", SideKind::kKey, 8), x);
  const std::vector<float> factors = FactorsOf(sealed);
  for (int t = 0; t < kPageTokens; t += 2) {
    EXPECT_NEAR(factors[t + 1] / factors[t], 3, .1);
    EXPECT_GE(factors[t], .74f);
  }
}

// Tokens and channels of very different loudness: divided by both factors, rows and columns spread
// alike, up to what the bounds of the factors leave. Keys keep the factors of tokens, values those
// of channels, of the same balance.
TEST(GridTest, RowsAndColumnsSpreadAlike) {
  constexpr int kDim = 64;
  std::vector<float> x = Normals(kDim, 1);
  for (int t = 0; t < kPageTokens; ++t) {
    for (int c = 0; c < kDim; ++c) x[t * kDim + c] *= (1 + t % 7) * std::exp2(c % 5 - 2.0f);
  }
  const auto imbalance = [](const std::vector<float>& rows) {
    double low = 1e30, high = 0;
    const auto visit = [&](double deviation) {
      low = std::min(low, deviation);
      high = std::max(high, deviation);
    };
    for (int t = 0; t < kPageTokens; ++t) visit(Deviation(&rows[t * kDim], kDim, 1));
    for (int c = 0; c < kDim; ++c) visit(Deviation(&rows[c], kPageTokens, kDim));
    return high / low;
  };
  std::vector<float> balanced = x, values = x, tokens(kPageTokens), channels(kDim);
  BalanceGrid(ResolveText("u4/grid", SideKind::kKey, kDim), 0, balanced.data(), tokens.data());
  BalanceGrid(ResolveText("u4/grid", SideKind::kValue, kDim), 0, values.data(), channels.data());
  for (int t = 0; t < kPageTokens; ++t) {
    for (int c = 0; c < kDim; ++c) {
      EXPECT_EQ(balanced[t * kDim + c], x[t * kDim + c] / tokens[t]);
      EXPECT_EQ(values[t * kDim + c], x[t * kDim + c] / channels[c]);
      balanced[t * kDim + c] /= channels[c];
    }
  }
  EXPECT_GT(imbalance(x), 10);
  EXPECT_LT(imbalance(balanced), 2);
}

// Half a step of what was divided, times the factor; scales and offsets add roundings.
TEST(GridTest, ErrorIsHalfAStepTimesTheFactor) {
  for (int first : {0, 5, 100, 127}) {
    const std::vector<float> x = Normals(80, 2);
    const SealedSide sealed(ResolveText("u4/grid", SideKind::kKey, 80), x, first);
    const std::vector<float> factors = FactorsOf(sealed), read = sealed.Unsealed();
    for (int t = 0; t < first; ++t) EXPECT_EQ(factors[t], 0);
    for (int c = 0; c < 80; ++c) {
      float low = 1e30f, high = -1e30f;
      for (int t = first; t < kPageTokens; ++t) {
        low = std::min(low, x[t * 80 + c] / factors[t]);
        high = std::max(high, x[t * 80 + c] / factors[t]);
      }
      const float step = (high - low) / 15 / 2 + (high - low + std::fabs(low)) * 0x1p-9f;
      for (int t = first; t < kPageTokens; ++t) {
        ASSERT_NEAR(read[t * 80 + c], x[t * 80 + c], step * factors[t] + 1e-6) << t << " " << c;
      }
    }
  }
}

TEST(GridTest, SpecialPagesAreFinite) {
  for (const char* text :
       {"u2/grid", "had:u4/grid", "i4/grid", "lm3/grid", "nf4/grid", "rn2/grid"}) {
    for (SideKind kind : {SideKind::kKey, SideKind::kValue}) {
      const SideFormat format = ResolveText(text, kind, 64);
      std::vector<float> x(kPageTokens * 64, 0.0f);
      for (float v : SealedSide(format, x).Unsealed()) ASSERT_EQ(v, 0) << text;
      for (size_t i = 0; i < x.size(); ++i) x[i] = i % 3 == 0 ? 65504.0f : -65504.0f;
      for (float v : SealedSide(format, x).Unsealed()) ASSERT_TRUE(std::isfinite(v)) << text;
      std::fill(x.begin(), x.end(), 65504.0f);
      for (float v : SealedSide(format, x).Unsealed()) ASSERT_TRUE(std::isfinite(v)) << text;
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) * 0x1p-24f;
      for (float v : SealedSide(format, x).Unsealed()) ASSERT_NEAR(v, 0, 0x1p-20f) << text;
      for (float v : SealedSide(format, x, 128).Unsealed()) ASSERT_TRUE(std::isfinite(v)) << text;
    }
  }
}

}  // namespace
}  // namespace shorthand
