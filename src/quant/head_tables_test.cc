// What a calibration makes constant for a head, by hand.
#include "quant/head_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

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
