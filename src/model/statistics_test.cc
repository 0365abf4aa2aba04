// Statistics of rows made up by hand: percentiles, extremes, sampling, learned levels.
#include "model/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "quant/rotation.h"

namespace shorthand {
namespace {

constexpr int kDim = 8;

Shape OneHead() {
  Shape shape;
  shape.layers.push_back({.query_heads = 2, .kv_heads = 1, .k_dim = kDim, .v_dim = kDim});
  return shape;
}

// Feeds `tokens` tokens whose key, value and query channels are value(input, token, channel).
template <typename ValueOf>
Result<std::vector<LayerStatistics>> Gathered(const Shape& shape, int tokens, ValueOf value_of) {
  Statistics statistics(shape, tokens);
  for (int page = 0; page < tokens; page += kPageTokens) {
    for (const AttentionInput input :
         {AttentionInput::kKeys, AttentionInput::kValues, AttentionInput::kQueries}) {
      const int heads = input == AttentionInput::kQueries ? 2 : 1;
      std::vector<float> rows;
      for (int t = page; t < page + kPageTokens; ++t) {
        for (int i = 0; i < heads * kDim; ++i) rows.push_back(value_of(input, t, i % kDim));
      }
      statistics.Add({.input = input, .layer = 0, .heads = heads, .dim = kDim, .rows = rows}, page);
    }
  }
  return statistics.Finish();
}

// Channel 0 of keys counts 0, 1, ... behind the four tokens that are left out: 1020 values have the
// percentiles .005 * 1019 = 5.095 and 1013.905, the mean 509.5.
TEST(StatisticsTest, RangesOfKeysByHand) {
  const auto layers = Gathered(OneHead(), 1024, [](AttentionInput input, int t, int c) {
    if (input != AttentionInput::kKeys) return 1.0f;
    if (t < 4) return t == 2 ? -7000.0f : 8000.0f;
    return c == 0 ? static_cast<float>(t - 4) : static_cast<float>(-c);
  });
  ASSERT_TRUE(layers.ok()) << layers.status().message();
  const KeyRange& keys = (*layers)[0].heads[0].keys;
  EXPECT_NEAR(keys.low[0], 5.095, 1e-5);
  EXPECT_NEAR(keys.high[0], 1013.905, 1e-3);
  EXPECT_EQ(keys.mean[0], 509.5f);
  EXPECT_EQ(keys.min[0], -7000);
  EXPECT_EQ(keys.max[0], 8000);
  EXPECT_EQ(keys.low[3], -3);
  EXPECT_EQ(keys.high[3], -3);
  EXPECT_EQ(keys, (*layers)[0].heads[0].keys_before_rope);  // nothing is rotated
}

// Of 8192 tokens every fourth is kept: token 0 alone stands for those left out.
TEST(StatisticsTest, LongTextsAreSampled) {
  const auto layers = Gathered(OneHead(), 8192, [](AttentionInput, int t, int) {
    return t == 0 ? -1e6f : t % 4 == 0 ? static_cast<float>(t) : 1e9f;
  });
  ASSERT_TRUE(layers.ok());
  const KeyRange& keys = (*layers)[0].heads[0].keys;
  EXPECT_EQ(keys.min[0], -1e6f);
  EXPECT_EQ(keys.max[0], 8188);
  EXPECT_EQ(keys.mean[0], 4096);  // of 4, 8, ..., 8188
  EXPECT_EQ((*layers)[0].heads[0].v_max, 1e9f);
}

// Keys that are constant but for RoPE: before it every percentile is the constant.
TEST(StatisticsTest, RopeIsTakenBack) {
  Shape shape = OneHead();
  shape.layers[0].rope = {RopePairs::kHalves, {1.0f, 0.3f, 0.1f, 0.01f}};
  const auto layers = Gathered(shape, 256, [&](AttentionInput, int t, int c) {
    std::vector<float> key = {1, 2, 3, 4, 5, 6, 7, 8};
    Rotation(shape.layers[0].rope, t / kPageTokens * kPageTokens)
        .Apply(t % kPageTokens, key.data());
    return key[c];
  });
  ASSERT_TRUE(layers.ok());
  const HeadStatistics& head = (*layers)[0].heads[0];
  for (int c = 0; c < kDim; ++c) {
    for (const auto values : {&KeyRange::mean, &KeyRange::min, &KeyRange::high}) {
      EXPECT_NEAR((head.keys_before_rope.*values)[c], c + 1, 1e-5);
    }
  }
  EXPECT_NEAR(head.keys.max[0], std::sqrt(26), 0.01);  // the pair 1, 5 turned to its loudest
}

// Values that take eight places between -1 and 1 of their token, which levels of 3 bits can have.
// Every tenth token is eight times as loud: its weight, not its places.
TEST(StatisticsTest, LevelsOfValues) {
  const float places[] = {-1, -0.5f, -0.25f, 0, 0.2f, 0.4f, 0.6f, 1};
  const auto layers = Gathered(OneHead(), 512, [&](AttentionInput, int t, int c) {
    return places[c] * (t % 10 == 0 ? 8.0f : 1.0f);
  });
  ASSERT_TRUE(layers.ok());
  const LearnedLevels& levels = (*layers)[0].v_levels;
  ASSERT_EQ(levels[0].size(), 4u);
  ASSERT_EQ(levels[2].size(), 16u);
  EXPECT_EQ((*layers)[0].heads[0].v_max, 8);
  // -1 lies furthest from the mean and is an outlier in every token: the others lie between -.5 and
  // 1, with the middle .25 and the half-range .75.
  for (int i = 1; i < 8; ++i) {
    double nearest = 1;
    for (const float level : levels[1]) {
      nearest = std::min(nearest, std::fabs(level - (places[i] - 0.25) / 0.75));
    }
    EXPECT_LT(nearest, 0.01) << places[i];
  }
}

// Channels that no query looks at teach nothing: keys take -1, 0 and 1 of their range in channel 0,
// and a third of it in the others.
TEST(StatisticsTest, LevelsOfKeysWeighWhatQueriesSee) {
  const auto layers = Gathered(OneHead(), 512, [](AttentionInput input, int t, int c) {
    if (input == AttentionInput::kQueries) return c == 0 ? 1.0f : 0.0f;
    if (c == 0) return static_cast<float>(t % 3 - 1);
    return static_cast<float>(t % 4);  // -1, -1/3, 1/3, 1 of the range
  });
  ASSERT_TRUE(layers.ok());
  for (const float level : (*layers)[0].k_levels[1]) {
    EXPECT_GT(std::fabs(std::fabs(level) - 1.0f / 3), 0.01);
  }
}

TEST(StatisticsTest, WhatIsNotFiniteIsRefused) {
  const auto refused = [](AttentionInput bad) {
    return Gathered(OneHead(), 128,
                    [&](AttentionInput input, int t, int c) {
                      return input == bad && t == 50 && c == 3
                                 ? std::numeric_limits<float>::infinity()
                                 : static_cast<float>(c);
                    })
        .status();
  };
  for (const AttentionInput input :
       {AttentionInput::kKeys, AttentionInput::kValues, AttentionInput::kQueries}) {
    EXPECT_EQ(refused(input).code(), StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace shorthand
