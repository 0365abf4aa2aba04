// What a calibration makes constant for a head, by hand.
#include "quant/head_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/half.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

LayerStatistics NeutralLayer(int dim) {
  Shape shape;
  shape.layers.push_back({.query_heads = 2, .kv_heads = 2, .k_dim = dim, .v_dim = dim});
  return NeutralCalibration(shape).layers[0];
}

TEST(HeadTablesTest, BalanceIsTheRootOfSpreadOverQuery) {
  const SideFormat format = ResolveText("bal:had:u4/ch", SideKind::kKey, 16);
  LayerStatistics layer = NeutralLayer(16);
  layer.heads[0].k_spread[2] = 8;
  layer.heads[0].q_rms[2] = 0.5f;
  layer.heads[0].k_spread[5] = 0;  // counts as 1e-5
  layer.heads[0].q_rms[5] = 0;     // counts as 1e-4
  const HeadTables tables = TablesOf(format, layer, 0);
  EXPECT_EQ(tables.balance[2], 4.0f);
  EXPECT_EQ(tables.inverse_balance[2], 0.25f);
  EXPECT_NEAR(tables.balance[5], 0.3162278f, 1e-6);
  EXPECT_TRUE(tables.order.empty());
}

// Spread times query is 1 but for channels 3 and 11, a pair of RoPE, of which one is loud.
TEST(HeadTablesTest, PairsShareTheirImportance) {
  const SideFormat format = ResolveText("w4/ch", SideKind::kKey, 16);
  LayerStatistics layer;
  layer.rope_pairs = RopePairs::kHalves;
  layer.rope_dims = 16;
  layer.heads.resize(1);
  layer.heads[0].k_spread.assign(16, 1.0f);
  layer.heads[0].q_rms.assign(16, 1.0f);
  layer.heads[0].k_spread[11] = 100;
  const HeadTables tables = TablesOf(format, layer, 0);
  EXPECT_EQ(tables.order,
            std::vector<uint16_t>({3, 11, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15}));
  // Importance of the first quad: (2 * 5000.5 + 2) / 4. All bits beyond 2, 2 and 2 are worth more
  // there: gains from 6 to 8 are 2501 * .000268 = .67 a bit beside .0864.
  EXPECT_EQ(tables.widths, std::vector<uint8_t>({8, 3, 3, 2}));
}

// hi25 of 16 channels: the four whose pairs matter most, in twice the bits.
TEST(HeadTablesTest, PromotedChannelsAreThoseThatMatterMost) {
  const SideFormat format = ResolveText("u2/ch:cal:hi25", SideKind::kKey, 16);
  LayerStatistics layer = NeutralLayer(16);
  layer.rope_pairs = RopePairs::kHalves;
  layer.rope_dims = 16;
  HeadStatistics& head = layer.heads[1];
  head.k_spread.assign(16, 1.0f);
  head.q_rms.assign(16, 1.0f);
  head.k_spread[11] = 100;  // with its partner 3
  head.q_rms[6] = 50;       // with its partner 14
  const HeadTables tables = TablesOf(format, layer, 1);
  EXPECT_EQ(tables.order,
            std::vector<uint16_t>({3, 11, 6, 14, 0, 1, 2, 4, 5, 7, 8, 9, 10, 12, 13, 15}));
  EXPECT_EQ(tables.widths, std::vector<uint8_t>({4, 2, 2, 2}));
  EXPECT_EQ(tables.centres[3], 8);
  EXPECT_EQ(tables.centres[4], 2);
  EXPECT_EQ(tables.centre_bytes[3], 8);
  EXPECT_EQ(tables.centre_bytes[4], 2);
}

// Behind a Hadamard transform the channels of a block matter the same: of 24 channels in blocks of
// 8 the second block is the loudest, and its first channels are taken.
TEST(HeadTablesTest, PromotedChannelsOfBlocks) {
  const SideFormat format = ResolveText("had:u4/ch:cal:hi15", SideKind::kKey, 24);
  LayerStatistics layer = NeutralLayer(24);
  HeadStatistics& head = layer.heads[0];
  head.k_spread.assign(24, 1.0f);
  head.q_rms.assign(24, 1.0f);
  head.k_spread[15] = 9;
  const HeadTables tables = TablesOf(format, layer, 0);
  EXPECT_EQ(std::vector<uint16_t>(tables.order.begin(), tables.order.begin() + 5),
            std::vector<uint16_t>({8, 9, 10, 11, 12}));
  EXPECT_EQ(tables.widths, std::vector<uint8_t>({8, 4, 4, 4, 4, 4, 4, 4}));
}

// Pages do not choose: without `cal` the loud channel would be promoted.
TEST(HeadTablesTest, PagesNameNoPromotedChannels) {
  const SideFormat format = ResolveText("u2/ch:cal:hi12.5", SideKind::kKey, 128);
  EXPECT_EQ(format.promoted, 16);
  EXPECT_EQ(format.meta_bytes(), 512u);  // 2 * 128 * 2
  EXPECT_EQ(format.codes_bytes(), 72u * 64);
  EXPECT_TRUE(format.plain());
  EXPECT_FALSE(ResolveText("u2/ch32:cal:hi12.5", SideKind::kKey, 128).plain());
  std::vector<float> x = Normals(128, 5);
  for (int t = 0; t < kPageTokens; ++t) x[t * 128 + 100] *= 50;
  const std::vector<float> narrow =
      SealedSide(ResolveText("u2/ch", SideKind::kKey, 128), x).Unsealed();
  const std::vector<float> wide =
      SealedSide(ResolveText("u4/ch", SideKind::kKey, 128), x).Unsealed();
  // The neutral calibration has the first channels loudest.
  const std::vector<float> read = SealedSide(format, x).Unsealed();
  for (int i = 0; i < kPageTokens * 128; ++i) {
    EXPECT_EQ(read[i], i % 128 < 16 ? wide[i] : narrow[i]) << i;
  }
}

// A head whose channel 2 lies between -3 and 5, channel 10 (its partner) between -9 and 1, about 1
// and -4.
LayerStatistics OffCentreLayer() {
  LayerStatistics layer = NeutralLayer(16);
  layer.rope_pairs = RopePairs::kHalves;
  layer.rope_dims = 16;
  HeadStatistics& head = layer.heads[0];
  for (KeyRange* keys : {&head.keys, &head.keys_before_rope}) {
    keys->mean.assign(16, 0.0f);
    keys->min.assign(16, -1.0f);
    keys->max.assign(16, 1.0f);
  }
  head.keys.min[2] = -3;
  head.keys.max[2] = 5;
  head.keys.mean[2] = 1;
  head.keys.min[10] = -9;
  head.keys.max[10] = 1;
  head.keys.mean[10] = -4;
  head.keys_before_rope.max[7] = 25;
  head.v_max = 7;
  return layer;
}

HeadTables OffCentreTables(const std::string& text, SideKind kind = SideKind::kKey) {
  return TablesOf(ResolveText(text, kind, 16), OffCentreLayer(), 0);
}

TEST(HeadTablesTest, MeansAreRoundedAsTheyAreStored) {
  LayerStatistics layer = OffCentreLayer();
  layer.heads[0].keys.mean[3] = 0.1f;
  layer.heads[0].keys.mean[4] = 1e6f;
  const HeadTables tables = TablesOf(ResolveText("mu:u4/tok:cal", SideKind::kKey, 16), layer, 0);
  EXPECT_EQ(tables.mean[2], 1);
  EXPECT_EQ(tables.mean[3], RoundToF16(0.1f));
  EXPECT_EQ(tables.mean[4], 65504);
  EXPECT_EQ(OffCentreTables("pre:mu:u4/tok:cal").mean[2], 0);
  EXPECT_TRUE(OffCentreTables("u4/tok").mean.empty());
}

// Without a mean the pair reaches 9, less the mean 5; channel 7 and its partner 15 reach 25 before
// RoPE.
TEST(HeadTablesTest, SmoothFactorsAreSharedByPairs) {
  const HeadTables plain = OffCentreTables("smooth:u4/tok:cal");
  EXPECT_EQ(plain.balance[2], 3);
  EXPECT_EQ(plain.balance[10], 3);
  EXPECT_EQ(plain.inverse_balance[10], 1.0f / 3);
  EXPECT_EQ(plain.balance[7], 1);
  EXPECT_EQ(OffCentreTables("mu:smooth:u4/tok:cal").balance[2], std::sqrt(5.0f));
  EXPECT_EQ(OffCentreTables("pre:smooth:u4/tok:cal").balance[15], 5);
  LayerStatistics layer = OffCentreLayer();
  for (const int c : {0, 8}) layer.heads[0].keys.min[c] = layer.heads[0].keys.max[c] = 0;
  const SideFormat format = ResolveText("smooth:u4/tok:cal", SideKind::kKey, 16);
  EXPECT_EQ(TablesOf(format, layer, 0).balance[0], 1);
}

TEST(HeadTablesTest, PageScalesCoverWhatTheTextShowed) {
  EXPECT_EQ(OffCentreTables("e4m3/page:cal").page_scale, 9.0f / 448);
  EXPECT_EQ(OffCentreTables("e5m2/page:cal").page_scale, 9.0f / 57344);
  EXPECT_EQ(OffCentreTables("e4m3/page:cal", SideKind::kValue).page_scale, 7.0f / 448);
  EXPECT_EQ(OffCentreTables("mu:e4m3/page:cal").page_scale, 5.0f / 448);
  EXPECT_EQ(OffCentreTables("pre:e4m3/page:cal").page_scale, 25.0f / 448);
  // 9 / 3; the others are at most 1.
  EXPECT_FLOAT_EQ(OffCentreTables("smooth:e4m3/page:cal").page_scale, 3.0f / 448);
  // 14 channels of 1, one of 5 and one of 9.
  EXPECT_FLOAT_EQ(OffCentreTables("had:e4m3/page:cal").page_scale, std::sqrt(120.0f) / 448);
  EXPECT_FLOAT_EQ(OffCentreTables("had:e4m3/page:cal", SideKind::kValue).page_scale, 28.0f / 448);
  EXPECT_EQ(OffCentreTables("e4m3/page").page_scale, 0);
  LayerStatistics layer = OffCentreLayer();
  layer.heads[0].v_max = 0;
  const SideFormat format = ResolveText("e4m3/page:cal", SideKind::kValue, 16);
  EXPECT_EQ(TablesOf(format, layer, 0).page_scale, 1e-4f / 448);
}

// Two values lie beyond 7 in magnitude and become 7; a sink does not count.
TEST(HeadTablesTest, WhatSaturatesIsCounted) {
  const SideFormat format = ResolveText("e4m3/page:cal", SideKind::kValue, 16);
  const HeadTables tables = TablesOf(format, OffCentreLayer(), 0);
  std::vector<float> x(kPageTokens * 16, 3.5f);
  x[0] = 100;  // a sink
  x[5 * 16 + 2] = 7.5f;
  x[6 * 16 + 2] = -7000;
  x[7 * 16 + 2] = 7;
  const SealedSide sealed(format, tables, x, 2);
  EXPECT_EQ(sealed.descriptor.clipped_values, 2u);
  EXPECT_EQ(sealed.descriptor.v_page_scale, 7.0f / 448);
  const std::vector<float> read = sealed.Unsealed();
  EXPECT_EQ(read[5 * 16 + 2], 7);
  EXPECT_EQ(read[6 * 16 + 2], -7);
  EXPECT_EQ(read[7 * 16 + 2], 7);
  EXPECT_EQ(read[8 * 16 + 2], 3.5f);
}

// Pages keep neither mean nor factors of the head, and are read back with them.
TEST(HeadTablesTest, MeansAndFactorsAreNoPartOfPages) {
  const SideFormat format = ResolveText("mu:smooth:u8/tok:cal", SideKind::kKey, 16);
  EXPECT_EQ(format.meta_bytes(), ResolveText("u8/tok", SideKind::kKey, 16).meta_bytes());
  EXPECT_TRUE(format.plain());
  LayerStatistics layer = OffCentreLayer();
  layer.heads[0].keys.mean[5] = 100;
  layer.heads[0].keys.min[5] = 100 - 64;
  layer.heads[0].keys.max[5] = 100 + 64;
  std::vector<float> x = Normals(16, 3);
  for (int t = 0; t < kPageTokens; ++t) x[t * 16 + 5] = 100 + 60 * x[t * 16 + 5] / 4;
  const std::vector<float> read = SealedSide(format, TablesOf(format, layer, 0), x, 0).Unsealed();
  for (int i = 0; i < kPageTokens * 16; ++i) {
    // Steps of at most 16 / 255 of codes, times the factor 8 in channel 5 and its partner.
    EXPECT_NEAR(read[i], x[i], i % 8 == 5 ? 0.3 : 0.1) << i;
  }
}

TEST(HeadTablesTest, WidthsSumToTheFormatsLines) {
  for (const int dim : {8, 64, 80, 128, 256}) {
    for (const char* text : {"w2/ch", "w2.5/ch", "w3/ch", "w4/ch", "w5.25/ch", "w8/ch"}) {
      const SideFormat format = ResolveText(text, SideKind::kKey, dim);
      const HeadTables tables = NeutralTables(format);
      int sum = 0;
      for (const uint8_t width : tables.widths) sum += width;
      EXPECT_EQ(tables.widths.size(), static_cast<size_t>(format.padded_dim) / 4);
      EXPECT_GE(sum, format.plane_lines - 1) << text << " " << dim;
      EXPECT_LE(sum, format.plane_lines) << text << " " << dim;
      EXPECT_TRUE(std::is_sorted(tables.widths.rbegin(), tables.widths.rend()));
    }
  }
}

}  // namespace
}  // namespace shorthand
