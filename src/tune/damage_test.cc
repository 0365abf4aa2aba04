// Curves of noise by hand, and whose layers count.
#include "tune/damage.h"

#include <gtest/gtest.h>

#include "quant/head_tables.h"
#include "tune/rungs.h"

namespace shorthand {
namespace {

TEST(DamageTest, NoiseBetweenAndBeyondWhatWasMeasured) {
  constexpr std::array<double, 3> kBits = {2, 3, 5};
  constexpr std::array<float, 3> kNoise = {0.64f, 0.16f, 0.01f};
  const auto at = [&](double bits) { return NoiseAt(kBits, kNoise, bits); };
  EXPECT_NEAR(at(2), 0.64, 1e-7);
  EXPECT_NEAR(at(2.5), 0.32, 1e-7);  // the geometric mean
  EXPECT_NEAR(at(3), 0.16, 1e-7);
  EXPECT_NEAR(at(4), 0.04, 1e-7);
  EXPECT_NEAR(at(5), 0.01, 1e-7);
  EXPECT_NEAR(at(6.5), 0.01 / 8, 1e-7);
  constexpr std::array<float, 3> kNone = {0, 0, 0};
  EXPECT_GT(NoiseAt(kBits, kNone, 4), 0);
  EXPECT_LT(NoiseAt(kBits, kNone, 4), 1e-9);
}

TEST(DamageTest, LayersThatAreNeverSealedHaveNone) {
  Shape shape;
  for (int i = 0; i < 3; ++i) {
    shape.layers.push_back({.query_heads = 2, .kv_heads = 1, .k_dim = 64, .v_dim = 64});
  }
  shape.layers[1].window = 1;    // sees nothing but itself
  shape.layers[2].kv_owner = 0;  // reads another's
  Calibration calibration = NeutralCalibration(shape);
  calibration.layers[0].k_noise = {0.4f, 0.2f, 0.1f, 0.02f};
  calibration.layers[0].v_noise = {0.3f, 0.1f, 0.03f};
  const auto damage = PredictDamage(shape, calibration);
  ASSERT_TRUE(damage.ok()) << damage.status().message();
  EXPECT_EQ(damage->k[0].size(), KeyRungs().size());
  EXPECT_EQ(damage->v[0].size(), ValueRungs().size());
  EXPECT_NEAR(damage->k[0][0] / damage->k[0][4], 4, 1e-6);  // 2 and 3 bits
  EXPECT_NEAR(damage->v[0][0] / damage->v[0][2], 10, 1e-5);
  EXPECT_TRUE(damage->k[1].empty() && damage->v[1].empty());
  EXPECT_TRUE(damage->k[2].empty() && damage->v[2].empty());
}

TEST(DamageTest, LayersAreLessUnlikeThanTheirNoise) {
  Shape shape;
  shape.layers.assign(2, {.query_heads = 2, .kv_heads = 1, .k_dim = 64, .v_dim = 64});
  Calibration calibration = NeutralCalibration(shape);
  for (int l = 0; l < 2; ++l) {
    const float scale = l == 0 ? 1.0f : 1e-5f;
    calibration.layers[l].k_noise = {0.8f * scale, 0.4f * scale, 0.1f * scale, 0.02f * scale};
    calibration.layers[l].v_noise = {0.4f * scale, 0.1f * scale, 0.02f * scale};
  }
  const auto damage = PredictDamage(shape, calibration);
  ASSERT_TRUE(damage.ok()) << damage.status().message();
  for (const size_t rung : {0, 4, 8}) {
    EXPECT_NEAR(damage->k[0][rung] / damage->k[1][rung], 1000, 0.01);  // (1e5)^0.6
  }
  EXPECT_NEAR(damage->v[0][1] / damage->v[1][1], 1000, 0.01);
  // The geometric mean is kept.
  EXPECT_NEAR(damage->k[0][4] * damage->k[1][4], 0.12 * 0.12 * 1e-7, 1e-12);
}

}  // namespace
}  // namespace shorthand
