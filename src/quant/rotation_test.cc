// The step `pre`: rotations by hand and in double precision, and what it is for.
#include "quant/rotation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "base/half.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

constexpr float kQuarter = std::numbers::pi_v<float> / 2;

// A quarter of a turn a position: (1, 0) becomes (0, 1), then (-1, 0), ...
TEST(RotationTest, QuartersByHand) {
  for (RopePairs pairs : {RopePairs::kAdjacent, RopePairs::kHalves}) {
    const Rotation rotation({pairs, {kQuarter, 0}}, 0);
    const int partner = pairs == RopePairs::kAdjacent ? 1 : 2;
    float key[5] = {1, 0, 0, 0, 7};
    rotation.Apply(1, key);
    EXPECT_NEAR(key[0], 0, 1e-6);
    EXPECT_NEAR(key[partner], 1, 1e-6);
    rotation.Apply(1, key);
    EXPECT_NEAR(key[0], -1, 1e-6);
    rotation.Undo(2, key);
    EXPECT_NEAR(key[0], 1, 1e-6);
    EXPECT_NEAR(key[partner], 0, 1e-6);
    EXPECT_EQ(key[3], 0);
    EXPECT_EQ(key[4], 7);  // not rotated
  }
}

TEST(RotationTest, AnglesAreThoseOfDoublePrecision) {
  const std::vector<float> frequencies = {1, 0.37f, 1e-3f, 1e-7f};
  for (int64_t first : {int64_t{0}, int64_t{128}, int64_t{131072}, int64_t{10'000'000}}) {
    const Rotation rotation({RopePairs::kHalves, frequencies}, first);
    for (int t : {0, 1, 77, 127}) {
      for (size_t i = 0; i < frequencies.size(); ++i) {
        float key[8] = {};
        key[i] = 1;
        rotation.Apply(t, key);
        const double angle = static_cast<double>(first + t) * frequencies[i];
        EXPECT_NEAR(key[i], std::cos(angle), 1e-7) << first << " " << t << " " << i;
        EXPECT_NEAR(key[i + 4], std::sin(angle), 1e-7) << first << " " << t << " " << i;
      }
    }
  }
}

// Keys that are alike before RoPE: after it their channels swing, and scales per channel get worse.
TEST(RotationTest, KeysThatRopeTurnsAreStoredBetterBeforeIt) {
  const Rope rope = {RopePairs::kHalves, std::vector<float>(32, 0.1f)};
  const Rotation rotation(rope, 5120);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(kPageTokens * 64);
  for (int t = 0; t < kPageTokens; ++t) {
    for (int c = 0; c < 64; ++c) x[t * 64 + c] = 20 + normal(random);
    rotation.Apply(t, &x[t * 64]);
  }
  for (float& v : x) v = RoundToF16(v);
  const auto error = [&](const char* text) {
    SideFormat format = ResolveText(text, SideKind::kKey, 64);
    format.rope = rope;
    const SealedSide sealed(format, {}, x, 0, 5120);
    EXPECT_EQ(sealed.descriptor.first_position, 5120);
    const std::vector<float> read = sealed.Unsealed();
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += std::pow(read[i] - x[i], 2);
    return sum / static_cast<double>(x.size());
  };
  EXPECT_LT(error("pre:u4/ch"), error("u4/ch") / 30);
  // Almost exact: rotating back and forth loses next to nothing.
  EXPECT_LT(error("pre:u8/ch"), 2e-4);
}

}  // namespace
}  // namespace shorthand
