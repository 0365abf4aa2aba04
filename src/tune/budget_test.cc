// Budgets: which allocation keeps one, in bits and in memory.
#include "tune/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tune/rungs.h"

namespace shorthand {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 8192;

Shape TwoLayers() {
  Shape shape;
  shape.layers.resize(2);
  for (LayerShape& layer : shape.layers) {
    layer.query_heads = layer.kv_heads = 4;
    layer.k_dim = layer.v_dim = 64;
  }
  return shape;
}

std::vector<Allocation> Alike() {
  Damage damage;
  damage.k.assign(2, std::vector<double>(KeyRungs().size(), 1.0));
  damage.v.assign(2, std::vector<double>(ValueRungs().size(), 1.0));
  return AllocationsAlike(damage);
}

Result<Allocation> Largest(const Budget& budget) {
  return LargestWithin(TwoLayers(), Alike(), budget);
}

TEST(BudgetTest, BitsAreTheMeanOfKeysAndValues) {
  EXPECT_EQ(Largest(BitBudget{2})->bits, 2);
  EXPECT_EQ(Largest(BitBudget{4.2})->bits, 4);
  EXPECT_EQ(Largest(BitBudget{4.25})->bits, 4.25);
  EXPECT_EQ(Largest(BitBudget{8})->bits, 8);
}

TEST(BudgetTest, BitsOutsideTheRungsAreRefused) {
  for (const double bits : {1.9, 8.1, std::nan("")}) {
    const Status status = Largest(BitBudget{bits}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("2 to 8"));
  }
}

// Codes of 4 bits and 2 x 2 bytes of scale and offset for a channel and page, 2 bytes for a token.
TEST(BudgetTest, MemoryIsWhatACacheAllocates) {
  const auto bytes = AllocatedBytes(TwoLayers(), *Recipe::Parse("4bit"), kTokens);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const double codes = 2 * 4 * 64 * 2 * kTokens * 4.25 / 8;
  EXPECT_GT(static_cast<double>(*bytes), codes);
  EXPECT_LT(static_cast<double>(*bytes), codes * 1.4);  // exact pages and whole extents

  EXPECT_EQ(Largest(MemoryBudget{*bytes, kTokens})->bits, 4);
  EXPECT_LT(Largest(MemoryBudget{*bytes - 1, kTokens})->bits, 4);
  EXPECT_LT(Largest(MemoryBudget{*bytes, 2 * kTokens})->bits, 4);
}

TEST(BudgetTest, WhatDoesNotFitNamesTheLeastThatWould) {
  const Status status = Largest(MemoryBudget{10000, kTokens}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("9.8 KiB for 8k tokens: the smallest recipe needs"));
}

}  // namespace
}  // namespace shorthand
