// The arithmetic of the papers that presets come from, on cases worked out by hand, and where pages
// differ from them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/half.h"
#include "cache/view.h"
#include "quant/levels.h"
#include "quant/meta.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

// A page whose tokens all hold `row`, read back: its first token.
std::vector<float> RowRead(const std::string& side, SideKind kind, const std::vector<float>& row) {
  std::vector<float> x;
  for (int t = 0; t < kPageTokens; ++t) x.insert(x.end(), row.begin(), row.end());
  const int dim = static_cast<int>(row.size());
  std::vector<float> read = SealedSide(ResolveText(side, kind, dim), x).Unsealed();
  read.resize(row.size());
  return read;
}

// Bits a value of a sealed side of `dim` channels.
double BitsOf(const std::string& side, SideKind kind, int dim) {
  const SideFormat format = ResolveText(side, kind, dim);
  return 8.0 * static_cast<double>(format.meta_bytes() + format.codes_bytes()) /
         (kPageTokens * dim);
}

// Section 3 of arXiv 2402.02750 with R = 128, 300 tokens: of the keys 256 are quantized and 44 are
// not, of the values 172 and 128. Here both sides move by pages: the 44 tokens of the page being
// written and the page before it are exact, 172 tokens, and the first 128 are quantized.
TEST(Kivi, ResidualOf300Tokens) {
  const Recipe recipe = *Recipe::Parse("kivi2");
  Shape shape;
  shape.layers.push_back({.query_heads = 1, .kv_heads = 1, .k_dim = 128, .v_dim = 128});
  const std::vector<LayerGroup> groups = *ResolveGroups(shape, recipe);
  int exact = 0, sealed = 0;
  for (int entry = 0; entry < 3; ++entry) {
    const int tokens = std::min(300 - entry * kPageTokens, kPageTokens);
    (ViewOf(groups[0], entry, 2) == View::kExact ? exact : sealed) += tokens;
  }
  EXPECT_EQ(exact, 172);
  EXPECT_EQ(sealed, 128);
}

// Keys in groups of 32 tokens of a channel, values in groups of 32 channels of a token, from 0 to
// 31: s = 31 / 3; 5 / s = .48 goes to 0, 6 / s = .58 to 1, 15 / s = 1.45 to 1, 16 / s = 1.55 to 2.
TEST(Kivi, GroupsOf32AlongBothAxes) {
  std::vector<float> keys(kPageTokens * 32), values(keys.size());
  for (int t = 0; t < kPageTokens; ++t) {
    for (int c = 0; c < 32; ++c) {
      keys[t * 32 + c] = static_cast<float>(t % 32);
      values[t * 32 + c] = static_cast<float>(c);
    }
  }
  const float s = RoundToF16(31.0f / 3);
  const SealedSide k(ResolveText("u2/ch32", SideKind::kKey, 32), keys);
  const SealedSide v(ResolveText("u2/tok32", SideKind::kValue, 32), values);
  for (int i = 0; i < 32; ++i) {
    const float expected = s * static_cast<float>(i < 6 ? 0 : i < 16 ? 1 : i < 26 ? 2 : 3);
    EXPECT_EQ(k.Unsealed()[i * 32], expected) << i;
    EXPECT_EQ(k.Unsealed()[(96 + i) * 32 + 31], expected) << i;
    EXPECT_EQ(v.Unsealed()[i], expected) << i;
  }
  EXPECT_EQ(BitsOf("u2/ch32", SideKind::kKey, 128), 3.0);
  EXPECT_EQ(BitsOf("u2/tok32", SideKind::kValue, 128), 3.0);
}

// arXiv 2401.18079 without Fisher information: normal-float signposts of z = (x - mid) /
// half-range, for 2 bits -1 0 .436 1, the nearest of which is taken.
TEST(KvQuant, NearestSignposts) {
  const std::vector<float> row = {-1, -.6f, -.4f, .2f, .25f, .7f, .75f, 1};
  const std::vector<float> read = RowRead("nuq2/tok", SideKind::kValue, row);
  const float z[] = {-1, -1, 0, 0, .436f, .436f, 1, 1};
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(read[i], z[i], 1e-3) << row[i];
}

// One per cent of a page of 128 by 8, 11 values, chosen by rank, are exact, and the ranges of their
// channels are those of the rest: two loud values do not spoil the others.
TEST(KvQuant, OutliersLeaveTheRange) {
  std::vector<float> x(kPageTokens * 8);
  for (int i = 0; i < kPageTokens * 8; ++i) x[i] = static_cast<float>(i / 8 % 3) - 1;  // -1 0 1
  x[50 * 8 + 3] = 300;
  x[90 * 8 + 3] = -200;
  const std::vector<float> read =
      SealedSide(ResolveText("nuq3/ch:out1", SideKind::kKey, 8), x).Unsealed();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(read[i], x[i], 1e-3) << i;
  const std::vector<float> without =
      SealedSide(ResolveText("nuq3/ch", SideKind::kKey, 8), x).Unsealed();
  EXPECT_GT(std::fabs(without[4 * 8 + 3] - x[4 * 8 + 3]), 5);
}

// arXiv 2404.00456: minimum and maximum times .95, s = (19 + 9.5) / 15 = 1.9, zero = round(9.5
// / 1.9) = 5, value (q - 5) s. Here the offset is not rounded to a step, which it is anyway.
TEST(QuaRot, ScaleAndZero) {
  const std::vector<float> row = {-10, 0, 1, 1.9f, 3, 9.5f, 18.9f, 20};
  const std::vector<float> read = RowRead("u4/tok:clip0.95", SideKind::kKey, row);
  const int q[] = {0, 5, 6, 6, 7, 10, 15, 15};
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(read[i], 1.9 * (q[i] - 5), .01) << row[i];
  EXPECT_EQ(BitsOf("had:u4/tok:clip0.95", SideKind::kKey, 128), 4.25);
}

// arXiv 2405.04532: lambda = sqrt(max |K|) of the pair i, i + d/2; then per token s = (max - min) /
// 15, value (q - zero) s. Row 16 -4 1 0 | 4 9 1 0: lambda 4 3 1 1, so 4 -1.333 1 0 1 3 1 0 is
// coded.
TEST(QServe, LambdaOfPairsThenScaleAndZero) {
  const std::vector<float> row = {16, -4, 1, 0, 4, 9, 1, 0};
  const std::vector<float> read = RowRead("smooth:u4/tok", SideKind::kKey, row);
  const double lambda[] = {4, 3, 1, 1}, low = -4.0 / 3, s = (4 - low) / 15;
  for (int i = 0; i < 8; ++i) {
    const double code = std::round((row[i] / lambda[i % 4] - low) / s);
    EXPECT_NEAR(read[i], lambda[i % 4] * (low + s * code), .01) << i;
  }
}

// OCP 8-bit floats: the least and the greatest numbers, ties to even, saturation; a page's scale
// brings its greatest magnitude to the top.
TEST(Fp8, TablesAndScale) {
  EXPECT_EQ(E4m3Levels()[0x7e], 448);
  EXPECT_EQ(E4m3Levels()[0x01], 0x1p-9f);
  EXPECT_EQ(E4m3Levels()[0x08], 0x1p-6f);
  EXPECT_EQ(E5m2Levels()[0x7b], 57344);
  EXPECT_EQ(E5m2Levels()[0x01], 0x1p-16f);
  const std::vector<float> row = {17, 19, 464, -1000, 0x1p-10f, 0x3p-10f, 1.0625f, 1.1875f};
  const float one[] = {16, 20, 448, -448, 0, 0x1p-8f, 1, 1.25f};
  const std::vector<float> read = RowRead("e4m3/page:one", SideKind::kKey, row);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(read[i], one[i]) << row[i];
  const std::vector<float> scaled = {896, 34, 38, -896, 0, 2, 4, 8};
  const float two[] = {896, 32, 40, -896, 0, 2, 4, 8};
  const std::vector<float> read_scaled = RowRead("e4m3/page", SideKind::kKey, scaled);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(read_scaled[i], two[i]) << scaled[i];
}

// What the papers count, in bytes of a tile and bits of a value.
TEST(Sizes, AreThePapers) {
  const auto bytes = [](const char* k, const char* v, int dim) {
    return LayoutOf(ResolveText(k, SideKind::kKey, dim), ResolveText(v, SideKind::kValue, dim))
        .bytes;
  };
  // KVarN (arXiv 2606.03458): 9728 bytes for k2v2 and 128 channels, 26880 for k4v2 and 256.
  EXPECT_EQ(bytes("had:u2/grid", "had:u2/grid", 128), 9728u);
  EXPECT_EQ(bytes("had:u4/grid", "had:u2/grid", 256), 26880u);
  // Kitty (arXiv 2511.18643): 2.39 bits.
  EXPECT_NEAR(
      (BitsOf("u2/ch:hi12.5", SideKind::kKey, 128) + BitsOf("u2/tok", SideKind::kValue, 128)) / 2,
      2.39, .005);
  // TurboQuant (arXiv 2504.19874): a norm for each token.
  EXPECT_EQ(BitsOf("had:lm3/tok:norm", SideKind::kValue, 128), 3.125);
}

}  // namespace
}  // namespace shorthand
