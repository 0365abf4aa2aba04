// Slices by hand, and beside whole pages.
#include "quant/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "quant/every_side.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Slice> Quantize(const std::string& side, SideKind kind, std::span<const float> x,
                       int channels, const ExactTokens& exact = {}) {
  const bool keys = kind == SideKind::kKey;
  const auto recipe = Recipe::Parse(keys ? "k=" + side + ",v=f16" : "k=f16,v=" + side);
  EXPECT_TRUE(recipe.ok()) << recipe.status().message();
  return QuantizeSlice(keys ? recipe->kv.k : recipe->kv.v, kind, x, channels, exact);
}

constexpr int kDim = 8;

// Rows whose first channels are given, the others zero.
std::vector<float> Rows(const std::vector<std::vector<float>>& rows) {
  std::vector<float> x;
  for (const std::vector<float>& row : rows) {
    x.insert(x.end(), row.begin(), row.end());
    x.resize((x.size() + kDim - 1) / kDim * kDim);
  }
  return x;
}

const std::vector<float> kTile = Rows({{9, 0.25f}, {6, 0}, {1, 0.75f}, {0, 0.5f}});

// Two bits: channel 0 has steps of 3, channel 1 of 1/4.
TEST(SliceTest, ChannelsByHand) {
  const auto slice = Quantize("u2/ch", SideKind::kKey, kTile, kDim);
  ASSERT_TRUE(slice.ok()) << slice.status().message();
  EXPECT_EQ(slice->read, Rows({{9, 0.25f}, {6, 0}, {0, 0.75f}, {0, 0.5f}}));
  EXPECT_EQ(slice->relative_error, std::sqrt(1 / (81 + 36 + 1 + 0.0625 + 0.5625 + 0.25)));
  EXPECT_EQ(slice->group_tokens, 4);
  EXPECT_EQ(slice->group_channels, 1);
  EXPECT_EQ(slice->code_bits, 2);
  EXPECT_EQ(slice->scale_bits, 32);
  EXPECT_THAT(slice->token_edges, ElementsAre(0, 4));
  EXPECT_THAT(slice->channel_edges, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

// Steps of 3, 2, 1/3 and 1/6, the last two rounded to f16.
TEST(SliceTest, TokensByHand) {
  constexpr float kThird = 0.333251953125f, kSixth = 0.1666259765625f;
  const auto slice = Quantize("u2/tok", SideKind::kValue, kTile, kDim);
  ASSERT_TRUE(slice.ok()) << slice.status().message();
  EXPECT_EQ(slice->read, Rows({{9, 0}, {6, 0}, {3 * kThird, 2 * kThird}, {0, 3 * kSixth}}));
  EXPECT_EQ(slice->group_tokens, 1);
  EXPECT_EQ(slice->group_channels, kDim);
}

// Tokens 1 and 2 are coded: channel 0 from 1 in steps of f16(5/3).
TEST(SliceTest, ExactTokensTakeNoPart) {
  const auto slice = Quantize("u2/ch", SideKind::kKey, kTile, kDim, {.sinks = 1, .recent = 1});
  ASSERT_TRUE(slice.ok()) << slice.status().message();
  EXPECT_EQ(slice->read, Rows({{9, 0.25f}, {1 + 3 * 1.6669921875f, 0}, {1, 0.75f}, {0, 0.5f}}));
  EXPECT_EQ(slice->group_tokens, 2);
  EXPECT_EQ(Quantize("u2/ch", SideKind::kKey, kTile, kDim, {.recent = 9})->read, kTile);
}

TEST(SliceTest, GroupsOf32TokensAreCountedFromTheEndOfAShortPage) {
  std::vector<std::vector<float>> rows(40, {1});
  rows[7] = {4};   // tokens 0 to 7 are a group: steps of 1
  rows[39] = {7};  // tokens 8 to 39 another one: steps of 2
  rows[6] = rows[8] = {2};
  const auto slice = Quantize("u2/ch32", SideKind::kKey, Rows(rows), kDim);
  ASSERT_TRUE(slice.ok()) << slice.status().message();
  rows[8] = {1};  // halfway: to the even code
  EXPECT_EQ(slice->read, Rows(rows));
  EXPECT_THAT(slice->token_edges, ElementsAre(0, 8, 40));
}

TEST(SliceTest, EdgesFollowPagesAndLeaveOutWhatIsExact) {
  const std::vector<float> x(300 * kDim, 1.0f);
  const auto edges = [&](const char* side, const ExactTokens& exact = {}) {
    return Quantize(side, SideKind::kKey, x, kDim, exact)->token_edges;
  };
  EXPECT_THAT(edges("u4/ch"), ElementsAre(0, 128, 256, 300));
  EXPECT_THAT(edges("u4/ch", {.sinks = 3, .recent = 50}), ElementsAre(3, 128, 250));
  EXPECT_THAT(edges("u4/ch32", {.sinks = 120, .recent = 136}), ElementsAre(120, 128, 132, 164));
  EXPECT_THAT(edges("u4/tok", {.sinks = 297}), ElementsAre(297, 298, 299, 300));
  EXPECT_THAT(edges("u4/tok", {.sinks = 300}), ElementsAre(300));
  EXPECT_TRUE(edges("f16").empty());
  const auto blocks = Quantize("q8_0", SideKind::kKey, std::vector<float>(64, 1.0f), 64);
  EXPECT_THAT(blocks->channel_edges, ElementsAre(0, 32, 64));
}

// Two bits between 0 and 9, steps of 3; in the layer, up to 12, steps of 4.
TEST(SliceTest, PagesAndLayersByHand) {
  const auto page = QuantizeByPage(2, kTile, kDim, {});
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(page->read, Rows({{9}, {6}, {0}, {0}}));
  EXPECT_EQ(page->group_tokens * page->group_channels, 4 * kDim);
  EXPECT_THAT(page->channel_edges, ElementsAre(0, kDim));
  std::vector<float> layer;  // another head, then the tile's
  for (int t = 0; t < 4; ++t) {
    layer.insert(layer.end(), kDim, t == 2 ? 12.0f : 1.0f);
    layer.insert(layer.end(), kTile.begin() + t * kDim, kTile.begin() + (t + 1) * kDim);
  }
  const auto whole = QuantizeByLayer(2, kTile, kDim, {}, layer, 2 * kDim);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->read, Rows({{8}, {8}, {0}, {0}}));
  EXPECT_EQ(whole->group_tokens * whole->group_channels, 4 * 2 * kDim);
  // Without token 2 the layer reaches to 9.
  const auto exact = QuantizeByLayer(2, kTile, kDim, {.recent = 2}, layer, 2 * kDim);
  EXPECT_EQ(exact->read, Rows({{9}, {6}, {1, 0.75f}, {0, 0.5f}}));
}

// Pages of all channels: what a token of all of them would be.
TEST(SliceTest, EveryPageHasItsOwnScale) {
  std::vector<float> x(130 * kDim, 1.0f);
  x[0] = 4, x[128 * kDim] = 7;
  const auto slice = QuantizeByPage(2, x, kDim, {});
  EXPECT_EQ(slice->read, x);
  EXPECT_THAT(slice->token_edges, ElementsAre(0, 128, 130));
}

// Every format: a slice of whole pages is what its pages are read as.
TEST(SliceTest, PagesReadAsPages) {
  constexpr int kHeadDim = 64;
  std::vector<float> x = Normals(kHeadDim, 1, 2, 1);
  const std::vector<float> second = Normals(kHeadDim, 2);
  x.insert(x.end(), second.begin(), second.end());
  int sides = 0;
  for (const Codec& codec : Registry()) {
    std::vector<std::string> texts = EverySide(codec);
    for (const std::string& text : KeySides(codec)) texts.push_back(text);
    for (const std::string& text : texts) {
      const auto format = TryResolveText(text, SideKind::kKey, kHeadDim);
      if (!format.ok() || NeedsCalibration(format->tunes) || format->pre) continue;
      const auto slice = Quantize(text, SideKind::kKey, x, kHeadDim, {.sinks = 5});
      ASSERT_TRUE(slice.ok()) << text << ": " << slice.status().message();
      std::vector<float> expected;
      for (int page = 0; page < 2; ++page) {
        const std::vector<float> rows(x.begin() + page * 128 * kHeadDim,
                                      x.begin() + (page + 1) * 128 * kHeadDim);
        const std::vector<float> read = SealedSide(*format, rows, page == 0 ? 5 : 0).Unsealed();
        expected.insert(expected.end(), read.begin(), read.end());
      }
      std::copy(x.begin(), x.begin() + 5 * kHeadDim, expected.begin());
      EXPECT_EQ(slice->read, expected) << text;
      ++sides;
    }
  }
  EXPECT_GT(sides, 50);
}

TEST(SliceTest, KeysBeforeRopeAreTurnedByTheirOwnPositions) {
  SideFormat format = ResolveText("u4/ch", SideKind::kKey, 64);
  format.pre = true;
  format.rope = {.frequencies = std::vector<float>(32, 0.5f)};
  std::vector<float> x = Normals(64, 3);
  const std::vector<float> second = Normals(64, 4);
  x.insert(x.end(), second.begin(), second.end());
  const SealedSide page(format, {}, second, 0, 128);
  const std::vector<float> read = ReadBack(format, {}, x, 0, 256);
  EXPECT_EQ(std::vector<float>(read.begin() + 128 * 64, read.end()), page.Unsealed());
}

TEST(SliceTest, WhatItCannotTakeIsRefused) {
  const auto error = [](const std::string& side, std::span<const float> x, int channels) {
    return Quantize(side, SideKind::kKey, x, channels).status();
  };
  EXPECT_EQ(error("w4/ch", kTile, kDim).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(error("bal:had:u8/ch", kTile, kDim).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(error("pre:u4/ch", kTile, kDim).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(error("u4/ch", {}, kDim).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(error("u4/ch", kTile, 24).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(error("u4/ch", kTile, 4).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(error("u4/tok32", kTile, kDim).code(), StatusCode::kInvalidArgument);
  std::vector<float> broken = kTile;
  broken[kDim + 1] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(error("u4/ch", broken, kDim).message(), HasSubstr("token 1, channel 1"));
}

}  // namespace
}  // namespace shorthand
