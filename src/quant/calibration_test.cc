#include "shorthand/calibration.h"

#include <gtest/gtest.h>

#include <string>

#include "quant/head_tables.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

Shape TwoLayers() {
  Shape shape;
  shape.name = "two";
  for (int i = 0; i < 2; ++i) {
    shape.layers.push_back({.query_heads = 4, .kv_heads = 2, .k_dim = 16, .v_dim = 16});
  }
  return shape;
}

Calibration Sample() {
  Calibration sample = NeutralCalibration(TwoLayers());
  sample.source = "a \"text\"";
  sample.tokens = 512;
  sample.layers[1].rope_pairs = RopePairs::kHalves;
  sample.layers[1].rope_dims = 16;
  sample.layers[0].heads[1].k_spread[3] = 0.123456789f;
  for (LayerStatistics& layer : sample.layers) {
    layer.k_noise = {0.25f, 0.125f, 0.0625f, 0.015625f};
    layer.v_noise = {0.5f, 0.125f, 0.03125f};
  }
  return sample;
}

TEST(CalibrationTest, TextGivesItBackToFiveDigits) {
  const auto once = Calibration::Parse(Sample().ToText());
  ASSERT_TRUE(once.ok()) << once.status().message();
  EXPECT_EQ(once->layers[0].heads[1].k_spread[3], 0.12346f);
  EXPECT_EQ(once->layers[1].rope_pairs, RopePairs::kHalves);
  EXPECT_EQ(once->source, "a \"text\"");
  const auto twice = Calibration::Parse(once->ToText());
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(*twice, *once);
  EXPECT_EQ(twice->Hash(), Sample().Hash());
  EXPECT_EQ(twice->Hash().size(), 16u);
}

TEST(CalibrationTest, EveryNumberIsInTheHash) {
  Calibration other = Sample();
  other.layers[1].heads[0].q_rms[15] *= 1.01f;
  EXPECT_NE(other.Hash(), Sample().Hash());
  other = Sample();
  other.layers[1].v_noise[2] *= 1.01f;
  EXPECT_NE(other.Hash(), Sample().Hash());
}

TEST(CalibrationTest, EveryPrefixIsRefused) {
  const std::string text = Sample().ToText();
  for (size_t size = 0; size + 1 < text.size(); size += 7) {
    const auto parsed = Calibration::Parse(text.substr(0, size));
    ASSERT_FALSE(parsed.ok()) << size;
    EXPECT_EQ(parsed.status().code(), StatusCode::kDataLoss);
  }
}

// Replaces the first `from` in the sample's text.
Status ParseChanged(const std::string& from, const std::string& to) {
  std::string text = Sample().ToText();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return Calibration::Parse(text.replace(at, from.size(), to)).status();
}

TEST(CalibrationTest, WhatIsWrongIsNamed) {
  const auto expect = [](const Status& status, StatusCode code, const char* part) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  expect(ParseChanged("\"version\":2", "\"version\":3"), StatusCode::kUnimplemented, "version 3");
  expect(ParseChanged("\"version\":2", "\"version\":1"), StatusCode::kUnimplemented, "version 1");
  expect(ParseChanged("\"v_noise\"", "\"noise\""), StatusCode::kDataLoss, "'v_noise'");
  expect(ParseChanged("shorthand calibration", "x"), StatusCode::kDataLoss, "'format'");
  expect(ParseChanged("\"tokens\":512", "\"tokens\":\"many\""), StatusCode::kDataLoss, "'tokens'");
  expect(ParseChanged("\"halves\"", "\"thirds\""), StatusCode::kDataLoss, "thirds");
  expect(ParseChanged("[1.0,", "[-1.0,"), StatusCode::kDataLoss, "-1.0");
  expect(ParseChanged("[1.0,", "[1e300,"), StatusCode::kDataLoss, "1e+300");
  expect(ParseChanged("[1.0,", "[null,"), StatusCode::kDataLoss, "null");
  expect(ParseChanged("\"q_rms\"", "\"q_rns\""), StatusCode::kDataLoss, "'q_rms'");
}

TEST(CalibrationTest, AnotherShapeIsRefused) {
  EXPECT_TRUE(Sample().CheckFits(TwoLayers()).ok());
  const auto refused = [](auto change, const char* part) {
    Shape shape = TwoLayers();
    change(shape);
    const Status status = Sample().CheckFits(shape);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  refused([](Shape& s) { s.layers.pop_back(); }, "2 layers, the model 1");
  refused([](Shape& s) { s.layers[1].k_dim = 32; }, "layer 1");
  refused([](Shape& s) { s.layers[0].kv_heads = 1; }, "layer 0");
}

TEST(CalibrationTest, NoiseIsThereForEveryWidthOrNone) {
  Calibration other = Sample();
  other.layers[0].k_noise.clear();
  EXPECT_TRUE(other.CheckFits(TwoLayers()).ok());
  other.layers[1].v_noise.pop_back();
  EXPECT_NE(other.CheckFits(TwoLayers()).message().find("layer 1"), std::string::npos);
}

TEST(HeadTablesTest, BalanceIsTheRootOfSpreadOverQuery) {
  const SideFormat format = ResolveText("bal:had:u4/ch", SideKind::kKey, 16);
  LayerStatistics layer = Sample().layers[0];
  layer.heads[0].k_spread[2] = 8;
  layer.heads[0].q_rms[2] = 0.5f;
  layer.heads[0].k_spread[5] = 0;  // counts as 1e-5
  layer.heads[0].q_rms[5] = 0;     // counts as 1e-4
  const HeadTables tables = KeyTables(format, layer, 0);
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
  const HeadTables tables = KeyTables(format, layer, 0);
  EXPECT_EQ(tables.order,
            std::vector<uint16_t>({3, 11, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15}));
  // Importance of the first quad: (2 * 5000.5 + 2) / 4. All bits beyond 2, 2 and 2 are worth more
  // there: gains from 6 to 8 are 2501 * .000268 = .67 a bit beside .0864.
  EXPECT_EQ(tables.widths, std::vector<uint8_t>({8, 3, 3, 2}));
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
