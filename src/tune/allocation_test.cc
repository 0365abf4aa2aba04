// Allocations against every other choice of rungs, and recipes against their text.
#include "tune/allocation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tune/rungs.h"

namespace shorthand {
namespace {

Shape TwoLayers() {
  Shape shape;
  for (int i = 0; i < 2; ++i) {
    shape.layers.push_back({.query_heads = 2, .kv_heads = 1, .k_dim = 64, .v_dim = 64});
  }
  shape.layers[1].v_dim = 128;  // its values weigh twice
  return shape;
}

std::vector<double> Falling(const std::vector<Rung>& rungs, double at_two_bits, double factor) {
  std::vector<double> damage;
  for (const Rung& rung : rungs) damage.push_back(at_two_bits * std::pow(factor, 2 - rung.bits));
  return damage;
}

Damage UnlikeLayers() {
  return {.k = {Falling(KeyRungs(), 0.3, 4), Falling(KeyRungs(), 0.02, 6)},
          .v = {Falling(ValueRungs(), 0.01, 4), Falling(ValueRungs(), 0.2, 3)}};
}

TEST(AllocationTest, NoOtherChoiceOfTheSameSizeIsBetter) {
  const Damage damage = UnlikeLayers();
  const auto allocations = AllocationsByBits(TwoLayers(), damage);
  EXPECT_EQ(allocations.front().bits, 2);
  EXPECT_EQ(allocations.back().bits, 8);
  std::vector<std::pair<double, double>> all;  // bits, KL of every choice
  const int keys = static_cast<int>(KeyRungs().size());
  const int values = static_cast<int>(ValueRungs().size());
  for (int k0 = 0; k0 < keys; ++k0) {
    for (int k1 = 0; k1 < keys; ++k1) {
      for (int v0 = 0; v0 < values; ++v0) {
        for (int v1 = 0; v1 < values; ++v1) {
          const double bits = 64 * (KeyRungs()[k0].bits + KeyRungs()[k1].bits) +
                              64 * ValueRungs()[v0].bits + 128 * ValueRungs()[v1].bits;
          all.emplace_back(bits / 320,
                           damage.k[0][k0] + damage.k[1][k1] + damage.v[0][v0] + damage.v[1][v1]);
        }
      }
    }
  }
  for (const Allocation& allocation : allocations) {
    for (const auto& [bits, kl] : all) {
      if (bits > allocation.bits + 1e-9) continue;
      ASSERT_GE(kl, allocation.kl - 1e-12) << allocation.bits;
    }
  }
}

TEST(AllocationTest, EveryStepAddsBitsAndTakesDamage) {
  const auto allocations = AllocationsByBits(TwoLayers(), UnlikeLayers());
  for (size_t i = 1; i < allocations.size(); ++i) {
    EXPECT_GT(allocations[i].bits, allocations[i - 1].bits);
    EXPECT_LT(allocations[i].kl, allocations[i - 1].kl);
  }
}

TEST(AllocationTest, AlikeFromTheLowestRungsToTheHighest) {
  const Damage damage = {.k = {std::vector<double>(KeyRungs().size(), 1.0), {}},
                         .v = {std::vector<double>(ValueRungs().size(), 0.5), {}}};
  const auto allocations = AllocationsAlike(damage);
  ASSERT_EQ(allocations.size(), KeyRungs().size());
  EXPECT_EQ(RecipeOf(allocations.front()).ToString(), "k=w2/ch,v=had:lm2/tok:ub,sink=4,recent=128");
  EXPECT_EQ(RecipeOf(allocations.back()).ToString(), "k=bal:had:u8/ch,v=had:i8/tok,sink=4");
  const auto& between = allocations[9];  // w4.5 beside lm4: there are no values of 4.5 bits
  EXPECT_EQ(between.bits, 4.25);
  EXPECT_EQ(between.kl, 1.5);
  EXPECT_EQ(RecipeOf(between).ToString(), "k=w4.5/ch,v=had:lm4/tok:ub,sink=4,recent=128");
}

TEST(AllocationTest, LayersThatSealNothingTakeNoPart) {
  Damage damage = UnlikeLayers();
  damage.k[0].clear();
  damage.v[0].clear();
  const auto allocations = AllocationsByBits(TwoLayers(), damage);
  EXPECT_EQ(allocations.back().bits, 8);
  EXPECT_EQ(allocations.back().layers[0], LayerRungs());
  Damage none;
  none.k.resize(2);
  none.v.resize(2);
  EXPECT_EQ(AllocationsByBits(TwoLayers(), none).size(), 1u);
}

TEST(AllocationTest, RecipesNameTheCommonPairOnce) {
  Allocation allocation = {.layers = {{4, 1}, {8, 2}, {4, 1}, {4, 1}, {8, 2}, {0, 0}}, .bits = 3.1};
  EXPECT_EQ(RecipeOf(allocation).ToString(),
            "k=w3/ch,v=had:lm3/tok:ub,sink=4,recent=128"
            "@5,k=w2/ch,v=had:lm2/tok:ub@1+4,k=w4/ch,v=had:lm4/tok:ub");
  allocation = {.layers = {{14, 5}, {14, 5}}, .bits = 8};
  EXPECT_EQ(RecipeOf(allocation).ToString(), "k=bal:had:u8/ch,v=had:i8/tok,sink=4");
}

}  // namespace
}  // namespace shorthand
