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
  sample.layers[0].heads[1].keys_before_rope.low[3] = -12.3456789f;
  sample.layers[1].v_levels[0] = {-1, -0.5f, 0.25f, 1.0625f};
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
  EXPECT_EQ(once->layers[0].heads[1].keys_before_rope.low[3], -12.346f);
  EXPECT_EQ(once->layers[1].v_levels[0], Sample().layers[1].v_levels[0]);
  EXPECT_EQ(once->layers[0].heads[0].v_max, 4);
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
  const auto changes_the_hash = [](auto change) {
    Calibration changed = Sample();
    change(changed.layers[1]);
    EXPECT_NE(changed.Hash(), Sample().Hash());
  };
  changes_the_hash([](LayerStatistics& l) { l.heads[1].keys.mean[2] = 0.5f; });
  changes_the_hash([](LayerStatistics& l) { l.heads[1].keys.max[2] = 5.5f; });
  changes_the_hash([](LayerStatistics& l) { l.heads[1].keys_before_rope.high[2] = 5.5f; });
  changes_the_hash([](LayerStatistics& l) { l.heads[1].v_max = 5; });
  changes_the_hash([](LayerStatistics& l) { l.v_noise[2] *= 1.01f; });
  changes_the_hash([](LayerStatistics& l) { l.k_levels[2][15] = 1.5f; });
}

TEST(CalibrationTest, EveryPrefixIsRefused) {
  const std::string text = Sample().ToText();
  for (size_t size = 0; size + 1 < text.size(); size += 37) {
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
  expect(ParseChanged("\"version\":3", "\"version\":4"), StatusCode::kUnimplemented, "version 4");
  expect(ParseChanged("\"version\":3", "\"version\":1"), StatusCode::kUnimplemented,
         "make it anew");
  expect(ParseChanged("\"version\":3", "\"revision\":3"), StatusCode::kDataLoss, "'version'");
  expect(ParseChanged("shorthand calibration", "x"), StatusCode::kDataLoss, "'format'");
  expect(ParseChanged("\"tokens\":512", "\"tokens\":\"many\""), StatusCode::kDataLoss, "'tokens'");
  expect(ParseChanged("\"halves\"", "\"thirds\""), StatusCode::kDataLoss, "thirds");
  expect(ParseChanged("[1.0,", "[-1.0,"), StatusCode::kDataLoss, "-1.0");
  expect(ParseChanged("[1.0,", "[1e300,"), StatusCode::kDataLoss, "1e+300");
  expect(ParseChanged("[1.0,", "[null,"), StatusCode::kDataLoss, "null");
  expect(ParseChanged("\"low\":[-4.0", "\"low\":[4.1"), StatusCode::kDataLoss, "below 'low'");
  expect(ParseChanged("\"min\":[-4.0", "\"min\":[4.1"), StatusCode::kDataLoss, "below 'min'");
  expect(ParseChanged("\"min\":[-4.0", "\"min\":[\"-4\""), StatusCode::kDataLoss, "'min' holds");
  expect(ParseChanged("\"v_max\":4.0", "\"v_max\":-4.0"), StatusCode::kDataLoss, "'v_max'");
  expect(ParseChanged("\"v_max\":4.0", "\"v_max\":1e39"), StatusCode::kDataLoss, "'v_max'");
  expect(ParseChanged("\"v_max\"", "\"v_min\""), StatusCode::kDataLoss, "'v_max'");
  expect(ParseChanged("[[-1.0,", "[[0.5,"), StatusCode::kDataLoss, "not ascending");
  expect(ParseChanged("\"k_levels\":[[", "\"k_levels\":[[],["), StatusCode::kDataLoss,
         "2, 3 and 4");
  expect(ParseChanged("\"v_noise\"", "\"noise\""), StatusCode::kDataLoss, "'v_noise'");
  expect(ParseChanged("\"keys\"", "\"key\""), StatusCode::kDataLoss, "'keys'");
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
  const auto other = [](auto change) {
    Calibration sample = Sample();
    change(sample.layers[1]);
    EXPECT_EQ(sample.CheckFits(TwoLayers()).code(), StatusCode::kInvalidArgument);
  };
  other([](LayerStatistics& l) { l.v_levels[1].pop_back(); });
  other([](LayerStatistics& l) { l.heads[1].keys_before_rope.low.pop_back(); });
  other([](LayerStatistics& l) { l.rope_dims = 18; });
}

TEST(CalibrationTest, NoiseIsThereForEveryWidthOrNone) {
  Calibration other = Sample();
  other.layers[0].k_noise.clear();
  EXPECT_TRUE(other.CheckFits(TwoLayers()).ok());
  other.layers[1].v_noise.pop_back();
  EXPECT_NE(other.CheckFits(TwoLayers()).message().find("layer 1"), std::string::npos);
}

}  // namespace
}  // namespace shorthand
