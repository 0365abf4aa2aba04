// nuqB with `cal`: levels as integers, the head's ranges, outliers beyond them; by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/half.h"
#include "quant/meta.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

using ::testing::ElementsAre;

// One head of 8 channels that lie between -2 and 4, before RoPE between 10 and 12.
LayerStatistics Layer() {
  Shape shape;
  shape.layers.push_back({.query_heads = 1, .kv_heads = 1, .k_dim = 8, .v_dim = 8});
  LayerStatistics layer = NeutralCalibration(shape).layers[0];
  HeadStatistics& head = layer.heads[0];
  head.keys.low.assign(8, -2.0f);
  head.keys.high.assign(8, 4.0f);
  head.keys_before_rope.low.assign(8, 10.0f);
  head.keys_before_rope.high.assign(8, 12.0f);
  layer.k_levels[0] = {-1, -0.25f, 0.5f, 0.75f};
  layer.k_levels[1] = {-0.825f, -0.5f, -0.25f, 0, 0.0625f, 0.4f, 0.6f, 0.95f};
  layer.v_levels[0] = {-1.25f, -0.5f, 0.5f, 1};
  return layer;
}

HeadTables Tables(const std::string& text, SideKind kind = SideKind::kKey) {
  return TablesOf(ResolveText(text, kind, 8), Layer(), 0);
}

TEST(LearnedTest, LevelsAreIntegers) {
  const HeadTables keys = Tables("nuq3/tok:cal");
  EXPECT_THAT(keys.levels, ElementsAre(-55, -33, -17, 0, 4, 27, 40, 63));
  EXPECT_FLOAT_EQ(keys.step, 0.95f / 63);
  EXPECT_TRUE(keys.low.empty());
  // 25.2, 25.2 and 50.4; Q-Norm may put levels beyond the range.
  const HeadTables values = Tables("nuq2/tok:cal", SideKind::kValue);
  EXPECT_THAT(values.levels, ElementsAre(-63, -25, 25, 50));
  EXPECT_FLOAT_EQ(values.step, 1.25f / 63);
  EXPECT_TRUE(Tables("nuq3/tok").levels.empty());
}

TEST(LearnedTest, RangesAreThoseOfTheHead) {
  const HeadTables plain = Tables("nuq2/ch:cal");
  EXPECT_EQ(plain.low[7], -2);
  EXPECT_EQ(plain.high[7], 4);
  EXPECT_EQ(plain.high[8], 0);  // padding
  EXPECT_EQ(Tables("pre:nuq2/ch32:cal").low[3], 10);
  EXPECT_TRUE(Tables("had:nuq2/ch:cal").low.empty());
  EXPECT_TRUE(Tables("nuq2/grid:cal").low.empty());
  EXPECT_TRUE(Tables("nuq2/ch:cal", SideKind::kValue).low.empty());
  LayerStatistics layer = Layer();
  layer.heads[0].k_spread[1] = 16;
  layer.heads[0].q_rms[1] = 1;  // a balance of 4
  const SideFormat format = ResolveText("bal:nuq2/ch:cal", SideKind::kKey, 8);
  EXPECT_EQ(TablesOf(format, layer, 0).low[1], -0.5f);
  EXPECT_EQ(TablesOf(format, layer, 0).high[1], 1);
}

// Middle 1, half-range 3: the levels -63 -16 32 47 with the step 1/63 stand for -2, .24, 2.52 and
// 3.24. Midpoints are at -.88, 1.38 and 2.88; what lies outside gets the last levels.
TEST(LearnedTest, KeysByHand) {
  const float column[] = {-100, -0.9f, -0.8f, 1.3f, 1.4f, 2.8f, 2.9f, 100};
  std::vector<float> x;
  for (int t = 0; t < kPageTokens; ++t) x.insert(x.end(), 8, column[t % 8]);
  const SideFormat format = ResolveText("nuq2/ch:cal", SideKind::kKey, 8);
  const SealedSide sealed(format, Tables("nuq2/ch:cal"), x, 0);
  const int codes[] = {0, 0, 1, 1, 2, 2, 3, 3};
  const float scale = RoundToF16(3.0f / 63);
  const float levels[] = {-63, -16, 32, 47};
  const std::vector<float> read = sealed.Unsealed();
  for (int t = 0; t < 8; ++t) {
    EXPECT_EQ(sealed.Codes()[t * 16 + 5], codes[t]) << t;
    EXPECT_EQ(read[t * 8 + 5], std::fma(scale, levels[codes[t]], 1.0f)) << t;
  }
}

// The first channel of token 9 lies furthest beyond the range, then token 3; the third outlier is
// the first of those at an end of the range.
TEST(LearnedTest, OutliersLieBeyondTheRange) {
  std::vector<float> x(kPageTokens * 8, 1.0f);
  x[5 * 8 + 2] = 4;
  x[4 * 8 + 6] = -2;
  x[9 * 8] = -30;
  x[3 * 8 + 1] = 9;
  const SideFormat format = ResolveText("nuq2/ch:cal:out0.25", SideKind::kKey, 8);
  ASSERT_EQ(format.outliers, 3);
  const SealedSide sealed(format, TablesOf(format, Layer(), 0), x, 0);
  std::vector<uint16_t> places(3);
  std::vector<float> values(3);
  ReadMeta(format, sealed.page.data(), sealed.descriptor,
           {.outlier_places = places.data(), .outlier_values = values.data()});
  EXPECT_THAT(places, ElementsAre(3 * 16 + 1, 4 * 16 + 6, 9 * 16));
  EXPECT_THAT(values, ElementsAre(9, -2, -30));
}

// A channel that was constant: its value is the offset, another one the first outlier.
TEST(LearnedTest, ChannelsWithoutARange) {
  LayerStatistics layer = Layer();
  layer.heads[0].keys.low[4] = layer.heads[0].keys.high[4] = 3;
  const SideFormat format = ResolveText("nuq3/ch:cal:out0.05", SideKind::kKey, 8);
  ASSERT_EQ(format.outliers, 1);
  std::vector<float> x(kPageTokens * 8, 3.0f);
  x[0] = 1000;
  x[50 * 8 + 4] = 3.5f;
  const std::vector<float> read = SealedSide(format, TablesOf(format, layer, 0), x, 0).Unsealed();
  EXPECT_EQ(read[50 * 8 + 4], 3.5f);
  EXPECT_EQ(read[51 * 8 + 4], 3);
}

// Values keep the range of their token.
TEST(LearnedTest, ValuesByHand) {
  std::vector<float> x;
  for (int t = 0; t < kPageTokens; ++t) x.insert(x.end(), {-1, 0, 0.9f, 3, 1, 1.1f, 2, 3});
  const SideFormat format = ResolveText("nuq2/tok:cal", SideKind::kValue, 8);
  const SealedSide sealed(format, TablesOf(format, Layer(), 0), x, 0);
  // Middle 1, half-range 2: levels -63 -25 25 50 at about -1.5, 0, 2 and 3.
  const int codes[] = {0, 1, 1, 3, 1, 2, 2, 3};
  for (int c = 0; c < 8; ++c) EXPECT_EQ(sealed.Codes()[c], codes[c]) << c;
}

}  // namespace
}  // namespace shorthand
