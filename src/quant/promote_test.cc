// The tune hiX: which channels are promoted, and what that is worth.
#include "quant/promote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "quant/meta.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

using ::testing::ElementsAre;

std::vector<uint16_t> PromotedOf(const SealedSide& sealed) {
  std::vector<uint16_t> promoted(sealed.format.promoted);
  ReadMeta(sealed.format, sealed.page.data(), sealed.descriptor, {.promoted = promoted.data()});
  return promoted;
}

double ErrorOf(const std::vector<float>& x, const std::vector<float>& read, int dim, int channel) {
  double sum = 0;
  for (int t = 0; t < kPageTokens; ++t) {
    sum += std::pow(x[t * dim + channel] - read[t * dim + channel], 2);
  }
  return sum / kPageTokens;
}

// Channels 3, 20, 41 and 63 are loud, by mean or by spread; 10 has one loud token only.
TEST(PromoteTest, TheLargestMeanMagnitudes) {
  std::vector<float> x = Normals(64, 64);
  for (int t = 0; t < kPageTokens; ++t) {
    x[t * 64 + 3] += 50;
    x[t * 64 + 20] -= 30;
    x[t * 64 + 41] *= 40;
    x[t * 64 + 63] = t % 2 == 0 ? 20.0f : -20.0f;
  }
  x[77 * 64 + 10] = 1000;
  const SideFormat format = ResolveText("u2/ch:hi5", SideKind::kKey, 64);
  EXPECT_THAT(PromotedOf(SealedSide(format, x)), ElementsAre(3, 20, 41, 63));
  // A sink's row takes no part; token 77 alone promotes channel 10.
  EXPECT_THAT(PromotedOf(SealedSide(format, x, 100)), ElementsAre(3, 20, 41, 63));
  x[120 * 64 + 10] = 10000;
  EXPECT_THAT(PromotedOf(SealedSide(format, x, 100)), ::testing::Contains(10));
}

TEST(PromoteTest, OfEqualsTheFirst) {
  const std::vector<float> x(kPageTokens * 64, 1.0f);
  const SideFormat format = ResolveText("u2/ch:hi5", SideKind::kKey, 64);
  EXPECT_THAT(PromotedOf(SealedSide(format, x)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(PromotedOf(SealedSide(format, x, 128)), ElementsAre(0, 1, 2, 3));
}

// Min/max in 4 bits instead of 2: 15 steps for 3, an error 25 times smaller.
TEST(PromoteTest, PromotedChannelsHaveTheErrorOfTwiceTheBits) {
  std::vector<float> x = Normals(80, 80);
  for (int t = 0; t < kPageTokens; ++t) x[t * 80 + 17] *= 4;
  const std::vector<float> plain =
      SealedSide(ResolveText("u2/ch", SideKind::kKey, 80), x).Unsealed();
  const std::vector<float> wide =
      SealedSide(ResolveText("u4/ch", SideKind::kKey, 80), x).Unsealed();
  const SealedSide sealed(ResolveText("u2/ch:hi12.5", SideKind::kKey, 80), x);
  const std::vector<float> read = sealed.Unsealed();
  const std::vector<uint16_t> promoted = PromotedOf(sealed);
  ASSERT_EQ(promoted.size(), 12u);
  EXPECT_THAT(promoted, ::testing::Contains(17));
  for (int c = 0; c < 80; ++c) {
    const bool high = std::find(promoted.begin(), promoted.end(), c) != promoted.end();
    EXPECT_EQ(ErrorOf(x, read, 80, c), ErrorOf(x, high ? wide : plain, 80, c)) << c;
  }
  EXPECT_NEAR(ErrorOf(x, plain, 80, 17) / ErrorOf(x, read, 80, 17), 25, 8);
}

}  // namespace
}  // namespace shorthand
