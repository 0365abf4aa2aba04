// nuqB and its outliers: the examples of docs/formats/table.md, ranks, and what is read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/half.h"
#include "quant/meta.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;

struct Outliers {
  explicit Outliers(const SealedSide& sealed)
      : places(sealed.format.outliers), values(sealed.format.outliers) {
    ReadMeta(sealed.format, sealed.page.data(), sealed.descriptor,
             {.outlier_places = places.data(), .outlier_values = values.data()});
  }
  std::vector<uint16_t> places;
  std::vector<float> values;
};

TEST(OutliersTest, SignpostsByHand) {
  std::vector<float> x;
  for (int i = 0; i < 2 * kPageTokens; ++i) x.insert(x.end(), {-1, 0, 0.5f, 3});
  const SealedSide sealed(ResolveText("nuq2/tok", SideKind::kKey, 8), x);
  const std::vector<float> read = sealed.Unsealed();
  EXPECT_EQ(read[0], 1 - 39 * RoundToF16(2.0f / 39));
  EXPECT_NEAR(read[0], -.99951, 1e-5);
  EXPECT_EQ(read[1], read[0]);
  EXPECT_EQ(read[2], 1);
  EXPECT_NEAR(read[3], 2.99951, 1e-5);
}

TEST(OutliersTest, RanksAndRangesByHand) {
  std::vector<float> x;
  for (int t = 0; t < kPageTokens; ++t) x.insert(x.end(), {0, 0, 0, 0, 0, 0, 0, 8});
  const SealedSide sealed(ResolveText("nuq2/tok:out1", SideKind::kKey, 8), x);
  const Outliers outliers(sealed);
  std::vector<uint16_t> places;
  for (int t = 0; t < 11; ++t) places.push_back(static_cast<uint16_t>(16 * t + 7));
  EXPECT_EQ(outliers.places, places);
  EXPECT_THAT(outliers.values, Each(8.0f));
  std::vector<float> scales(kPageTokens), offsets(kPageTokens);
  ReadMeta(sealed.format, sealed.page.data(), sealed.descriptor,
           {.scales = scales.data(), .offsets = offsets.data()});
  for (int t = 0; t < kPageTokens; ++t) {
    EXPECT_EQ(scales[t], t < 11 ? 0 : RoundToF16(4.0f / 39)) << t;
    EXPECT_EQ(offsets[t], t < 11 ? 0 : 4) << t;
    EXPECT_EQ(sealed.Codes()[t * 16 + 7], t < 11 ? 0 : 3) << t;
  }
  const std::vector<float> read = sealed.Unsealed();
  for (int i = 0; i < 11 * 8; ++i) EXPECT_EQ(read[i], x[i]);
}

// Loud outliers are exact, and their groups are coded as if they were not there.
TEST(OutliersTest, OutliersAreExactAndLeaveTheRange) {
  std::vector<float> x = Normals(64, 64);
  const std::vector<float> calm = x;
  const int places[] = {5, 64 + 5, 100 * 64 + 63, 127 * 64};
  for (int at : places) x[at] = at % 2 == 0 ? 777.0f : -777.0f;
  const SideFormat format = ResolveText("nuq4/ch:out0.05", SideKind::kKey, 64);
  ASSERT_EQ(format.outliers, 5);
  const SealedSide sealed(format, x);
  const std::vector<float> read = sealed.Unsealed();
  for (int at : places) {
    EXPECT_EQ(read[at], x[at]);
    EXPECT_THAT(Outliers(sealed).places, Contains(at));
  }
  const std::vector<float> plain =
      SealedSide(ResolveText("nuq4/ch", SideKind::kKey, 64), calm).Unsealed();
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::find(std::begin(places), std::end(places), i) != std::end(places)) continue;
    ASSERT_LE(std::fabs(read[i] - x[i]), std::fabs(plain[i] - calm[i]) + .5) << i;
  }
}

// Ranks are relative to the group: a loud channel has no more outliers than a quiet one.
TEST(OutliersTest, LoudGroupsAreNoOutliers) {
  std::vector<float> x = Normals(64, 64);
  std::vector<float> loud = x;
  for (int t = 0; t < kPageTokens; ++t) loud[t * 64 + 9] *= 1024;
  const SideFormat format = ResolveText("nuq2/ch:out1", SideKind::kKey, 64);
  EXPECT_EQ(Outliers(SealedSide(format, x)).places, Outliers(SealedSide(format, loud)).places);
}

TEST(OutliersTest, SinksLeaveFewerValuesThanPlaces) {
  const SideFormat format = ResolveText("nuq3/tok:out50", SideKind::kKey, 8);
  ASSERT_EQ(format.outliers, 512);
  const std::vector<float> x = Normals(8, 8);
  const Outliers outliers(SealedSide(format, x, 126));
  ASSERT_EQ(std::count(outliers.places.begin(), outliers.places.end(), 0), 496);
  EXPECT_TRUE(std::is_sorted(outliers.places.begin(), outliers.places.end()));
  EXPECT_THAT(std::vector(outliers.values.begin(), outliers.values.begin() + 496), Each(0.0f));
  const std::vector<float> read = SealedSide(format, x, 126).Unsealed();
  for (int i = 126 * 8; i < 128 * 8; ++i) EXPECT_EQ(read[i], x[i]);
  EXPECT_THAT(Outliers(SealedSide(format, x, 128)).places, Each(0));
}

TEST(OutliersTest, ExtremesStayFinite) {
  for (const char* text : {"nuq2/tok:out1", "had:nuq4/tok:out99", "had:nuq3/ch32:out3"}) {
    const SideFormat format = ResolveText(text, SideKind::kValue, 64);
    std::vector<float> x(kPageTokens * 64, 65504.0f);
    for (float v : SealedSide(format, x).Unsealed()) ASSERT_TRUE(std::isfinite(v)) << text;
    for (size_t i = 0; i < x.size(); i += 3) x[i] = -65504.0f;
    for (float v : SealedSide(format, x).Unsealed()) ASSERT_TRUE(std::isfinite(v)) << text;
  }
}

}  // namespace
}  // namespace shorthand
