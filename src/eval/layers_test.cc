// Layer diagnostics against values derived by hand, and on a real model.
#include "eval/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "eval/windows.h"
#include "model/test_models.h"
#include "quant/head_tables.h"

namespace shorthand {
namespace {

constexpr int kDim = 16;

Shape OneLayer() {
  Shape shape;
  shape.layers = {{.query_heads = 2, .kv_heads = 1, .k_dim = kDim, .v_dim = kDim, .scale = 1}};
  return shape;
}

// `tokens` rows of zeros, and queries at `positions`.
LayerCapture Zeros(int64_t tokens, std::vector<int64_t> positions) {
  LayerCapture capture;
  capture.tokens = tokens;
  const size_t values = static_cast<size_t>(tokens) * kDim;
  capture.layers = {{.k = std::vector<float>(values),
                     .v = std::vector<float>(values),
                     .q = std::vector<float>(positions.size() * 2 * kDim)}};
  capture.query_positions = std::move(positions);
  return capture;
}

LayerScore Diagnose(const char* recipe, const LayerCapture& capture, Shape shape = OneLayer()) {
  const auto scores = DiagnoseLayers(shape, *Recipe::Parse(recipe), nullptr, capture, 1);
  EXPECT_TRUE(scores.ok()) << scores.status().message();
  return scores->front();
}

// Values 0, 3 and 1/4: two bits of min/max read them as 0, 3 and 0.
void FillValues(LayerCapture& capture) {
  for (size_t i = 0; i < capture.layers[0].v.size(); ++i) {
    const size_t channel = i % kDim;
    capture.layers[0].v[i] = channel == 0 ? 0.0f : channel == 1 ? 3.0f : 0.25f;
  }
}

TEST(LayersTest, NoiseOfValuesIsThatOfTheSealedPart) {
  LayerCapture capture = Zeros(300, {299});
  FillValues(capture);
  // Zero keys: every token of 300 weighs the same, 256 of them are sealed.
  const double whole = 14 * 0.0625 / (9 + 14 * 0.0625);
  const auto expected = [&](double sealed) { return whole * std::pow(sealed / 300, 2); };
  const LayerScore score = Diagnose("k=f16,v=u2/tok", capture);
  EXPECT_TRUE(score.sealed);
  EXPECT_NEAR(score.v_nsr, expected(256), 1e-12);
  EXPECT_EQ(score.attention_kl, 0);
  EXPECT_EQ(score.logit_correlation, 1);
  // Sinks and recent pages are seen exact.
  EXPECT_NEAR(Diagnose("k=f16,v=u2/tok,sink=4", capture).v_nsr, expected(252), 1e-12);
  EXPECT_NEAR(Diagnose("k=f16,v=u2/tok,sink=128", capture).v_nsr, expected(128), 1e-12);
  EXPECT_NEAR(Diagnose("k=f16,v=u2/tok,recent=128", capture).v_nsr, expected(128), 1e-12);
  EXPECT_FALSE(Diagnose("k=f16,v=u2/tok,recent=256", capture).sealed);
  EXPECT_FALSE(Diagnose("f16", capture).sealed);
}

TEST(LayersTest, WindowsHideWhatLiesBefore) {
  LayerCapture capture = Zeros(700, {699});
  FillValues(capture);
  Shape shape = OneLayer();
  shape.layers[0].window = 300;
  // Tokens 400 to 699 are seen, of which 640 on lie in the page being written.
  const double whole = 14 * 0.0625 / (9 + 14 * 0.0625);
  EXPECT_NEAR(Diagnose("k=f16,v=u2/tok", capture, shape).v_nsr, whole * std::pow(240.0 / 300, 2),
              1e-12);
}

TEST(LayersTest, LogitsByHand) {
  // Channel 0 of the keys goes 0, 3, 1/4, 0, 3, 1/4, ...; both query heads look at it, one with
  // the opposite sign. Sealed with two bits, 1/4 reads as 0.
  LayerCapture capture = Zeros(256, {255});
  static constexpr float kKeys[] = {0, 3, 0.25f};
  for (int t = 0; t < 256; ++t) capture.layers[0].k[t * kDim] = kKeys[t % 3];
  capture.layers[0].q[0] = 1;
  capture.layers[0].q[kDim] = -1;
  double kl = 0, correlation = 0;
  for (const double sign : {1.0, -1.0}) {
    double sum_exact = 0, sum_read = 0;
    double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    const auto read = [](int t) { return t < 128 && t % 3 == 2 ? 0.0 : double{kKeys[t % 3]}; };
    for (int t = 0; t < 256; ++t) {
      sum_exact += std::exp(sign * kKeys[t % 3]);
      sum_read += std::exp(sign * read(t));
      if (t >= 128) continue;
      const double a = sign * kKeys[t % 3], b = sign * read(t);
      n += 1, x += a, y += b, xx += a * a, yy += b * b, xy += a * b;
    }
    for (int t = 0; t < 256; ++t) {
      const double p = std::exp(sign * kKeys[t % 3]) / sum_exact;
      kl += p * std::log(p / (std::exp(sign * read(t)) / sum_read)) / 2;
    }
    correlation += (xy - x * y / n) / std::sqrt((xx - x * x / n) * (yy - y * y / n)) / 2;
  }
  const LayerScore score = Diagnose("k=u2/ch,v=f16", capture);
  EXPECT_NEAR(score.attention_kl, kl, 1e-12);
  EXPECT_GT(score.attention_kl, 0);
  EXPECT_NEAR(score.logit_correlation, correlation, 1e-12);
  EXPECT_EQ(score.v_nsr, 0);

  Shape capped = OneLayer();
  capped.layers[0].softcap = 1e6f;  // tanh is a straight line there
  EXPECT_NEAR(Diagnose("k=u2/ch,v=f16", capture, capped).attention_kl, kl, 1e-9);
}

TEST(LayersTest, RecipesThatNeedACalibrationGetIt) {
  LayerCapture capture = Zeros(256, {255});
  for (int t = 0; t < 256; ++t) capture.layers[0].k[t * kDim + 1] = static_cast<float>(t % 7);
  for (size_t i = 0; i < capture.layers[0].q.size(); ++i) capture.layers[0].q[i] = 1;
  const Recipe recipe = *Recipe::Parse("k=bal:had:u4/ch,v=f16");
  const Shape shape = OneLayer();
  EXPECT_EQ(DiagnoseLayers(shape, recipe, nullptr, capture, 1).status().code(),
            StatusCode::kFailedPrecondition);
  const Calibration neutral = NeutralCalibration(shape);
  const auto balanced = DiagnoseLayers(shape, recipe, &neutral, capture, 1);
  ASSERT_TRUE(balanced.ok()) << balanced.status().message();
  // A balance of 1 changes nothing.
  EXPECT_EQ(balanced->front().attention_kl, Diagnose("k=had:u4/ch,v=f16", capture).attention_kl);
  EXPECT_GT(balanced->front().attention_kl, 0);
}

TEST(LayersTest, AModelsLayersLoseMoreWithFewerBits) {
  if (testing::StoriesPath().empty()) {
    GTEST_SKIP() << "stories260Ktok512.gguf is not in the data folder";
  }
  const std::string path = testing::EditedStories("layers_512.gguf", [](gguf_context* file) {
    gguf_set_val_u32(file, "llama.context_length", 512);
  });
  const auto model = Model::Load(path, {.precision = Precision::kF32, .threads = 2});
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto bytes = testing::ReadBytes(testing::DataPath("text/tinystories_sample_en.txt"));
  const auto windows =
      CutWindows((*model)->vocab(), std::string(bytes.begin(), bytes.end()), 512, 1);
  ASSERT_TRUE(windows.ok());
  const auto capture = CaptureLayers(**model, windows->front());
  ASSERT_TRUE(capture.ok()) << capture.status().message();
  EXPECT_EQ(capture->tokens, 512);
  EXPECT_EQ(capture->query_positions.size(), 64u);
  EXPECT_EQ(capture->query_positions.back(), 511);
  const Shape& shape = (*model)->shape();
  for (size_t i = 0; i < shape.layers.size(); ++i) {
    const LayerShape& layer = shape.layers[i];
    EXPECT_EQ(capture->layers[i].k.size(), size_t{512} * layer.kv_heads * layer.k_dim);
    EXPECT_EQ(capture->layers[i].q.size(), size_t{64} * layer.query_heads * layer.k_dim);
  }
  const auto diagnose = [&](const char* recipe, int threads) {
    const auto scores = DiagnoseLayers(shape, *Recipe::Parse(recipe), nullptr, *capture, threads);
    EXPECT_TRUE(scores.ok()) << scores.status().message();
    return scores.ok() ? *scores : std::vector<LayerScore>(shape.layers.size());
  };
  const auto eight = diagnose("k=u8/ch,v=i8/tok", 1), four = diagnose("k=u4/ch,v=i4/tok", 2),
             two = diagnose("k=u2/ch,v=i2/tok", 1);
  for (size_t i = 0; i < shape.layers.size(); ++i) {
    EXPECT_TRUE(eight[i].sealed);
    EXPECT_LT(eight[i].attention_kl, four[i].attention_kl);
    EXPECT_LT(four[i].attention_kl, two[i].attention_kl);
    EXPECT_GT(eight[i].logit_correlation, four[i].logit_correlation);
    EXPECT_GT(four[i].logit_correlation, two[i].logit_correlation);
    EXPECT_LT(eight[i].v_nsr, four[i].v_nsr);
    EXPECT_LT(four[i].v_nsr, two[i].v_nsr);
    EXPECT_GT(eight[i].logit_correlation, 0.999);
  }
  const auto again = diagnose("k=u4/ch,v=i4/tok", 1);
  for (size_t i = 0; i < four.size(); ++i) EXPECT_EQ(again[i].attention_kl, four[i].attention_kl);
  EXPECT_FALSE(DiagnoseLayers(shape, *Recipe::Parse("q8_0"), nullptr, *capture, 1).ok());
}

}  // namespace
}  // namespace shorthand
