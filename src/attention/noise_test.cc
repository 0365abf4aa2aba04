// The noise of formats in attention's output, against values worked out by hand.
#include "attention/noise.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shorthand {
namespace {

constexpr int kDim = 16;
constexpr int kTokens = 384;

Shape OneLayer() {
  Shape shape;
  shape.layers = {{.query_heads = 2, .kv_heads = 1, .k_dim = kDim, .v_dim = kDim, .scale = 1}};
  return shape;
}

// Zero keys and queries: every token weighs the same. Values 0, 3 and 1/4 in each row, which two
// bits of min/max read as 0, 3 and 0.
TextRows EvenText() {
  LayerRows rows = {.k = std::vector<float>(kTokens * kDim),
                    .v = std::vector<float>(kTokens * kDim, 0.25f),
                    .q = std::vector<float>(kPageTokens * 2 * kDim)};
  for (int t = 0; t < kTokens; ++t) rows.v[t * kDim] = 0, rows.v[t * kDim + 1] = 3;
  return {.tokens = kTokens, .layers = {rows}};
}

std::vector<double> Noise(const char* recipe, const Shape& shape, const TextRows& text,
                          int threads = 1) {
  const auto parsed = *Recipe::Parse(recipe);
  const auto noise = AttentionNoise(shape, {&parsed, 1}, nullptr, text, threads);
  EXPECT_TRUE(noise.ok()) << noise.status().message();
  return noise.ok() ? noise->front() : std::vector<double>();
}

// Of the queries of the last page, each seeing `sealed` tokens with the errors of EvenText.
double EvenNoise(int sealed) {
  const double of_sealed = 14 * 0.0625 / (9 + 14 * 0.0625);
  double sum = 0;
  for (int p = kTokens - kPageTokens; p < kTokens; ++p) sum += std::pow(sealed / (p + 1.0), 2);
  return of_sealed * sum / kPageTokens;
}

TEST(AttentionNoiseTest, OfValuesByHand) {
  const TextRows text = EvenText();
  for (const int threads : {1, 3}) {
    EXPECT_NEAR(Noise("k=f16,v=u2/tok", OneLayer(), text, threads)[0], EvenNoise(256), 1e-6);
  }
  EXPECT_NEAR(Noise("k=f16,v=u2/tok,sink=4", OneLayer(), text)[0], EvenNoise(252), 1e-6);
  EXPECT_NEAR(Noise("k=f16,v=u2/tok,recent=128", OneLayer(), text)[0], EvenNoise(128), 1e-6);
  EXPECT_EQ(Noise("k=u2/ch,v=f32", OneLayer(), text)[0], 0);  // zero keys stay zero
  EXPECT_EQ(Noise("f32", OneLayer(), text)[0], 0);
}

TEST(AttentionNoiseTest, OfKeysByHand) {
  // Channel 0 of the keys is 0, 3 or 1/4 by turns, and all queries look at it; two bits read 1/4
  // as 0. Values are 1 where the key is 1/4.
  TextRows text = EvenText();
  LayerRows& rows = text.layers[0];
  static constexpr float kKeys[] = {0, 3, 0.25f};
  for (int t = 0; t < kTokens; ++t) {
    rows.k[t * kDim] = kKeys[t % 3];
    for (int c = 0; c < kDim; ++c) rows.v[t * kDim + c] = t % 3 == 2 ? 1.0f : 0.0f;
  }
  for (size_t i = 0; i < rows.q.size(); i += kDim) rows.q[i] = 1;
  double noise = 0, signal = 0;
  for (int p = 256; p < kTokens; ++p) {
    double exact = 0, read = 0, exact_sum = 0, read_sum = 0;
    for (int t = 0; t <= p; ++t) {
      const double key = kKeys[t % 3];
      const double weight = std::exp(key);
      const double weight_read = std::exp(t < 256 && t % 3 == 2 ? 0.0 : key);
      exact_sum += weight;
      read_sum += weight_read;
      if (t % 3 == 2) exact += weight, read += weight_read;
    }
    noise += std::pow(read / read_sum - exact / exact_sum, 2);
    signal += std::pow(exact / exact_sum, 2);
  }
  EXPECT_NEAR(Noise("k=u2/ch,v=f32", OneLayer(), text)[0], noise / signal, 1e-4 * noise / signal);
}

TEST(AttentionNoiseTest, CountsForTheLayerThatStores) {
  Shape shape = OneLayer();
  shape.layers.push_back(shape.layers[0]);
  shape.layers[1].kv_owner = 0;
  TextRows text = EvenText();
  text.layers.push_back({.k = {}, .v = {}, .q = text.layers[0].q});
  const std::vector<double> noise = Noise("k=f16,v=u2/tok", shape, text);
  EXPECT_NEAR(noise[0], 2 * EvenNoise(256), 1e-6);
  EXPECT_EQ(noise[1], 0);
}

TEST(AttentionNoiseTest, FailuresOfTheCacheAreNamed) {
  const auto recipe = *Recipe::Parse("4bit");
  const auto noise = AttentionNoise(OneLayer(), {&recipe, 1}, nullptr, EvenText(), 1);
  EXPECT_EQ(noise.status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace shorthand
