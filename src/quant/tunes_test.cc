// Tunes: the examples of docs/formats/ worked out by hand, and what each tune promises, in double
// precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

// A page whose tokens all hold `row`.
std::vector<float> Repeated(const std::vector<float>& row) {
  std::vector<float> x;
  for (int t = 0; t < kPageTokens; ++t) x.insert(x.end(), row.begin(), row.end());
  return x;
}

double Product(const std::vector<float>& x, const std::vector<float>& y, int first, int count) {
  double sum = 0;
  for (int i = first; i < first + count; ++i) sum += static_cast<double>(x[i]) * y[i];
  return sum;
}

// docs/formats/table.md: the group 2 -2 0.5 -0.5 has the codes 3 0 2 1 and the levels 60 -60 18
// -18.
TEST(TunesTest, ScalesOfLloydMaxByHand) {
  const std::vector<float> x = Repeated({2, -2, 0.5f, -0.5f, 2, -2, 0.5f, -0.5f});
  const std::pair<const char*, float> scales[] = {
      {"lm2/tok", .0328674f}, {"lm2/tok:norm", .0328979f}, {"lm2/tok:ub", .0329590f}};
  for (const auto& [text, scale] : scales) {
    const std::vector<float> read = SealedSide(ResolveText(text, SideKind::kKey, 8), x).Unsealed();
    EXPECT_NEAR(read[0], 60 * scale, 1e-5) << text;
    EXPECT_NEAR(read[1], -60 * scale, 1e-5) << text;
    EXPECT_NEAR(read[2], 18 * scale, 1e-5) << text;
    EXPECT_NEAR(read[7], -18 * scale, 1e-5) << text;
  }
}

TEST(TunesTest, UnbiasedScalesKeepTheProductWithTheGroup) {
  const std::vector<float> x = Normals(64, 1);
  for (const char* text : {"lm2/tok:ub", "lm3/tok:ub", "lm4/tok:ub"}) {
    const SealedSide sealed(ResolveText(text, SideKind::kValue, 64), x);
    const std::vector<float> read = sealed.Unsealed();
    for (int t = 0; t < kPageTokens; ++t) {
      const double square = Product(x, x, 64 * t, 64);
      EXPECT_NEAR(Product(read, x, 64 * t, 64), square, square * 0x1p-11) << text;
    }
  }
}

// By what `ub` makes values larger than least squares does: 1 / (1 - error) of
// docs/formats/table.md.
TEST(TunesTest, LeastSquaresShrinksValues) {
  const std::vector<float> x = Normals(128, 2);
  const std::pair<int, double> errors[] = {{2, .117482}, {3, .034561}, {4, .009522}};
  for (const auto& [bits, error] : errors) {
    const std::string text = "lm" + std::to_string(bits) + "/tok";
    const SealedSide least(ResolveText(text, SideKind::kValue, 128), x);
    const int count = kPageTokens * 128;
    EXPECT_NEAR(Product(least.Unsealed(), x, 0, count) / Product(x, x, 0, count), 1 - error, .004);
  }
}

// docs/formats/uniform.md: 70 per cent of the range stay.
TEST(TunesTest, LeastErrorByHand) {
  const std::vector<float> x = Repeated({1, -1, 1, -1, 1, -1, 1, 1.5f});
  const float scale = RoundToF16(1.05f);
  for (float v : SealedSide(ResolveText("i2/tok:mse", SideKind::kKey, 8), x).Unsealed()) {
    EXPECT_EQ(std::fabs(v), scale);
  }
}

TEST(TunesTest, LeastErrorIsNeverAboveThatOfTheWholeRange) {
  const std::vector<float> x = Normals(128, 3);
  for (const char* code : {"u2", "u3", "u4", "u5", "u8", "i2", "i3", "i4", "i6", "rn2", "rn4"}) {
    for (const char* group : {"/tok", "/ch", "/tok32"}) {
      const auto error = [&](const char* tune) {
        const std::string text = std::string(code) + group + tune;
        std::vector<float> off = SealedSide(ResolveText(text, SideKind::kKey, 128), x).Unsealed();
        for (size_t i = 0; i < x.size(); ++i) off[i] -= x[i];
        return Product(off, off, 0, kPageTokens * 128);
      };
      EXPECT_LE(error(":mse"), error("") * (1 + 1e-6)) << code << group;
    }
  }
}

// docs/formats/planes.md: eight tokens behind 120 sinks.
TEST(TunesTest, LinesFittedToCodesByHand) {
  const std::vector<float> group = {0, 0, 0, 1, 1, 2.5f, 3, 4};
  const std::vector<float> codes = {0, 0, 0, 1, 1, 2, 3, 3};
  std::vector<float> x(static_cast<size_t>(kPageTokens) * 8, 100.0f);
  for (int t = 0; t < 8; ++t) std::fill_n(x.end() - 8 * (8 - t), 8, group[t]);
  const SealedSide sealed(ResolveText("w2/ch", SideKind::kKey, 8), x, 120);
  const std::vector<float> read = sealed.Unsealed();
  for (int t = 0; t < 8; ++t) {
    EXPECT_NEAR(read[(120 + t) * 8], 1.1848f * codes[t] - .0435f, .002) << t;
  }
}

// The errors in docs/formats/planes.md, per value of variance 1.
TEST(TunesTest, LinesFittedToCodesLeaveLessThanTheBestClip) {
  constexpr int kDim = 256;
  const std::vector<float> normal = Normals(kDim, 5);
  std::vector<float> laplace = Normals(kDim, 6);
  std::mt19937 random(7);
  std::exponential_distribution<float> exponential(std::sqrt(2.0f));
  for (float& v : laplace) v = RoundToF16(std::copysign(exponential(random), v));
  const auto error = [&](const std::string& text, int bits, const std::vector<float>& x) {
    const SideFormat format = ResolveText(text, SideKind::kKey, kDim);
    HeadTables tables;
    if (format.planes()) {
      tables.order.resize(kDim);
      std::iota(tables.order.begin(), tables.order.end(), uint16_t{0});
      tables.widths.assign(kDim / 4, static_cast<uint8_t>(bits));
    }
    std::vector<float> off = SealedSide(format, tables, x, 0).Unsealed();
    for (size_t i = 0; i < x.size(); ++i) off[i] -= x[i];
    return Product(off, off, 0, kPageTokens * kDim) / (kPageTokens * kDim);
  };
  struct Case {
    int bits;
    const std::vector<float>& x;
    double clipped, fitted;
  };
  for (const Case& c : {Case{2, normal, .119, .115}, Case{3, normal, .0341, .0334},
                        Case{2, laplace, .186, .178}, Case{3, laplace, .0572, .0562}}) {
    const std::string bits = std::to_string(c.bits);
    const double clipped = error("u" + bits + "/ch:mse", c.bits, c.x);
    const double fitted = error("w" + bits + "/ch", c.bits, c.x);
    EXPECT_NEAR(clipped / c.clipped, 1, .05);
    EXPECT_NEAR(fitted / c.fitted, 1, .05);
    EXPECT_LT(fitted, clipped);
  }
}

// Two and three bits gain most: the reference for Gaussian groups of 128 is .2504 without and .1617
// with a fixed cut of .2 at 2 bits, .0457 and .0348 at 3.
TEST(TunesTest, LeastErrorOfGaussianGroups) {
  const std::vector<float> x = Normals(128, 4);
  const std::pair<const char*, double> errors[] = {{"u2/tok:mse", .1617}, {"u3/tok:mse", .0348}};
  for (const auto& [text, fixed_cut] : errors) {
    std::vector<float> off = SealedSide(ResolveText(text, SideKind::kValue, 128), x).Unsealed();
    for (size_t i = 0; i < x.size(); ++i) off[i] -= x[i];
    const double error = Product(off, off, 0, kPageTokens * 128) / (kPageTokens * 128);
    EXPECT_LT(error, fixed_cut) << text;
    EXPECT_GT(error, fixed_cut * .6) << text;
  }
}

}  // namespace
}  // namespace shorthand
