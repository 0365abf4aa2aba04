// Choices by hand-made statistics, sizes and wishes that cannot be met.
#include "tune/auto_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/footprint.h"
#include "quant/head_tables.h"

namespace shorthand {
namespace {

using ::testing::HasSubstr;

Shape FourLayers() {
  Shape shape;
  for (int i = 0; i < 4; ++i) {
    shape.layers.push_back({.query_heads = 2, .kv_heads = 1, .k_dim = 64, .v_dim = 64});
  }
  return shape;
}

// Keys of layer 2 have `loud` times the noise of the others, which are alike.
Calibration OneLoudLayer(float loud = 1e6f) {
  Calibration calibration = NeutralCalibration(FourLayers());
  for (LayerStatistics& layer : calibration.layers) {
    layer.k_noise = {0.016f, 0.008f, 0.004f, 0.001f};
    layer.v_noise = {0.016f, 0.004f, 0.001f};
  }
  for (float& noise : calibration.layers[2].k_noise) noise *= loud;
  return calibration;
}

ChosenRecipe Choose(AutoBits wish, float loud = 1e6f) {
  const auto chosen = ChooseRecipe(FourLayers(), OneLoudLayer(loud), wish);
  EXPECT_TRUE(chosen.ok()) << chosen.status().message();
  return chosen.ok() ? *chosen : ChosenRecipe();
}

TEST(AutoRecipeTest, Requests) {
  EXPECT_FALSE(std::get<AutoBits>(*ParseRecipeRequest("auto")).bits);
  EXPECT_EQ(std::get<AutoBits>(*ParseRecipeRequest("auto:3.5")).bits, 3.5);
  EXPECT_EQ(std::get<Recipe>(*ParseRecipeRequest("4bit")), *Recipe::Parse("4bit"));
  for (const char* text : {"auto:", "auto:1.9", "auto:8.1", "auto:4bit", "auto:nan", "auto:-3"}) {
    const auto request = ParseRecipeRequest(text);
    EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(request.status().message(), HasSubstr("2 to 8 bits"));
  }
  EXPECT_EQ(std::get<AutoBits>(*ParseRecipeRequest("auto:3,recent=0")).options, ",recent=0");
  for (const char* text : {"auto,recent=1", "auto:4,sink=4@0,kv=f16", "auto,", "auto:4,x=1"}) {
    EXPECT_EQ(ParseRecipeRequest(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(ParseRecipeRequest("automatic").status().code(), StatusCode::kInvalidArgument);
}

TEST(AutoRecipeTest, TheSensitiveLayerIsProtected) {
  const ChosenRecipe chosen = Choose({.bits = 4});
  EXPECT_LE(chosen.bits, 4);
  EXPECT_GT(chosen.bits, 3.9);
  const Recipe& recipe = chosen.recipe;
  EXPECT_EQ(Recipe::Parse(recipe.ToString())->ToString(), recipe.ToString());
  const auto keys = [&](int layer) { return recipe.ForLayer(layer, 4, false).k; };
  EXPECT_EQ(keys(2), Recipe::Parse("8bit")->kv.k);
  EXPECT_EQ(keys(0).code, Code::kWater);
  EXPECT_LE(keys(0).width.value(), 4);
  EXPECT_THAT(chosen.reason, HasSubstr("auto:4: "));
  EXPECT_THAT(chosen.reason, HasSubstr("8 bits (layer 2)"));
}

TEST(AutoRecipeTest, OptionsReplaceThoseOfThePreset) {
  EXPECT_EQ(Choose({.bits = 3}).recipe.recent_tokens, 128);
  EXPECT_EQ(Choose({.bits = 6}).recipe.recent_tokens, 0);
  const Recipe recipe = Choose({.bits = 3, .options = ",sink=8,recent=0"}).recipe;
  EXPECT_EQ(recipe.sink_tokens, 8);
  EXPECT_EQ(recipe.recent_tokens, 0);
}

TEST(AutoRecipeTest, WithoutBitsAsFewAsDo) {
  const ChosenRecipe chosen = Choose({}, 1000);
  EXPECT_LE(chosen.predicted_kl, kAutoKl);
  EXPECT_GT(Choose({.bits = chosen.bits - 0.2}, 1000).predicted_kl, kAutoKl);
}

TEST(AutoRecipeTest, MemoryDecides) {
  const Shape shape = FourLayers();
  const auto bytes = [&](const Recipe& recipe) {
    return FootprintOf(*ResolveGroups(shape, recipe), 8192, 1).allocated_bytes;
  };
  const auto choose = [&](uint64_t most) {
    return ChooseRecipe(shape, OneLoudLayer(), MemoryBudget{most, 8192});
  };
  EXPECT_EQ(choose(bytes(Recipe()))->recipe.ToString(), "kv=f16");
  const uint64_t four_bits = bytes(*Recipe::Parse("4bit"));
  const auto chosen = choose(four_bits);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_LE(bytes(chosen->recipe), four_bits);
  EXPECT_GT(bytes(chosen->recipe), four_bits * 9 / 10);
  EXPECT_NEAR(chosen->bits, 4, 0.5);
  const Status none = choose(10000).status();
  EXPECT_EQ(none.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(none.message(), HasSubstr("the smallest recipe needs"));
}

TEST(AutoRecipeTest, NoNoiseNoChoice) {
  const auto chosen =
      ChooseRecipe(FourLayers(), NeutralCalibration(FourLayers()), AutoBits{.bits = 4});
  EXPECT_EQ(chosen.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(chosen.status().message(), HasSubstr("256 tokens"));
  Shape other = FourLayers();
  other.layers.pop_back();
  EXPECT_EQ(ChooseRecipe(other, OneLoudLayer(), AutoBits{.bits = 4}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shorthand
