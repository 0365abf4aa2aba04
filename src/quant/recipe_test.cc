#include "shorthand/recipe.h"

#include <gtest/gtest.h>

#include <vector>

#include "quant/recipe_names.h"

namespace shorthand {
namespace {

Recipe Parsed(std::string_view text) {
  const Result<Recipe> recipe = Recipe::Parse(text);
  EXPECT_TRUE(recipe.ok()) << recipe.status().message();
  return recipe.ok() ? *recipe : Recipe{};
}

TEST(RecipeTest, CodesFallIntoExactBlockAndOther) {
  for (const CodeName& name : kCodeNames) {
    const bool exact = name.name == "f32" || name.name == "f16" || name.name == "bf16";
    const bool block = name.name[0] == 'q' || name.name == "iq4_nl" || name.name == "mxfp4" ||
                       name.name == "nvfp4";
    EXPECT_EQ(IsExact(name.code), exact) << name.name;
    EXPECT_EQ(IsBlock(name.code), block) << name.name;
  }
}

TEST(RecipeTest, LayersWithoutOverrideUseTheRecipeItself) {
  const Recipe recipe = Parsed("k=u4/ch,v=i4/tok");
  for (int layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(&recipe.ForLayer(layer, 3, false), &recipe.kv);
    EXPECT_EQ(&recipe.ForLayer(layer, 3, true), &recipe.kv);
  }
}

TEST(RecipeTest, SpansCountFromBothEnds) {
  const Recipe recipe = Parsed("kv=u4/tok@0..1+-2..-1,kv=i8/tok");
  const std::vector<bool> overridden = {true, true, false, false, true, true};
  for (int layer = 0; layer < 6; ++layer) {
    EXPECT_EQ(recipe.ForLayer(layer, 6, false).k.bits, overridden[layer] ? 8 : 4) << layer;
  }
}

TEST(RecipeTest, MixedSpansFollowTheNumberOfLayers) {
  const Recipe recipe = Parsed("kv=u4/tok@2..-2,kv=i8/tok");
  EXPECT_EQ(recipe.ForLayer(1, 6, false).k.bits, 4);
  EXPECT_EQ(recipe.ForLayer(2, 6, false).k.bits, 8);
  EXPECT_EQ(recipe.ForLayer(4, 6, false).k.bits, 8);
  EXPECT_EQ(recipe.ForLayer(5, 6, false).k.bits, 4);
  // Of three layers, 2..-2 is 2..1: none.
  for (int layer = 0; layer < 3; ++layer) EXPECT_EQ(recipe.ForLayer(layer, 3, false).k.bits, 4);
}

TEST(RecipeTest, SpansBeyondTheModelMatchNothing) {
  const Recipe recipe = Parsed("kv=u4/tok@-9+7,kv=i8/tok");
  for (int layer = 0; layer < 4; ++layer) EXPECT_EQ(recipe.ForLayer(layer, 4, false).k.bits, 4);
}

TEST(RecipeTest, WindowedAndFullLayersAreToldApart) {
  const Recipe recipe = Parsed("kv=u4/tok@swa,kv=f16@full,kv=i8/tok");
  EXPECT_EQ(recipe.ForLayer(0, 2, true).k.code, Code::kF16);
  EXPECT_EQ(recipe.ForLayer(0, 2, false).k.code, Code::kInt);
}

TEST(RecipeTest, TheLastOverrideWins) {
  const Recipe recipe = Parsed("kv=u4/tok@0..-1,kv=u5/tok@swa,kv=u6/tok@1,kv=u8/tok");
  EXPECT_EQ(recipe.ForLayer(0, 3, false).k.bits, 5);
  EXPECT_EQ(recipe.ForLayer(0, 3, true).k.bits, 6);
  EXPECT_EQ(recipe.ForLayer(1, 3, true).k.bits, 8);
}

TEST(RecipeTest, RecentIsCountedInPages) {
  EXPECT_EQ(Parsed("kv=u4/tok").recent_pages(), 0);
  EXPECT_EQ(Parsed("kv=u4/tok,recent=384").recent_pages(), 3);
}

}  // namespace
}  // namespace shorthand
