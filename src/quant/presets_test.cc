#include "quant/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace shorthand {
namespace {

// The table of docs/recipes.md.
const std::map<std::string, std::string>& Expected() {
  static const std::map<std::string, std::string> expected = {
      {"8bit", "k=bal:had:u8/ch,v=had:i8/tok,sink=4"},
      {"6bit", "k=w6/ch,v=had:i6/tok,sink=4"},
      {"5bit", "k=w5.1/ch,v=had:i5/tok,sink=4"},
      {"4bit", "k=w4/ch,v=had:lm4/tok:ub,sink=4,recent=128"},
      {"3bit", "k=w3.1/ch,v=had:lm3/tok:ub,sink=4,recent=128"},
      {"2bit", "k=w2.6/ch,v=had:lm2/tok:ub,sink=4,recent=128"},
      {"f32", "kv=f32"},
      {"f16", "kv=f16"},
      {"bf16", "kv=bf16"},
      {"fp8_e4m3", "kv=e4m3/page"},
      {"fp8_e5m2", "kv=e5m2/page"},
      {"q8_0", "kv=q8_0"},
      {"q5_1", "kv=q5_1"},
      {"q5_0", "kv=q5_0"},
      {"q4_1", "kv=q4_1"},
      {"q4_0", "kv=q4_0"},
      {"iq4_nl", "kv=iq4_nl"},
      {"mxfp4", "kv=mxfp4"},
      {"nvfp4", "kv=nvfp4"},
      {"q8_0_rot", "k=had:q8_0,v=had64:q8_0"},
      {"q4_0_rot", "k=had:q4_0,v=had64:q4_0"},
      {"int8", "kv=u8/tok"},
      {"int4", "kv=u4/tok"},
      {"nf4", "kv=nf4/tok64"},
      {"kivi4", "k=u4/ch32,v=u4/tok32,recent=128"},
      {"kivi2", "k=u2/ch32,v=u2/tok32,recent=128"},
      {"kvquant4", "k=pre:nuq4/ch:out1,v=nuq4/tok:out1,sink=1"},
      {"kvquant3", "k=pre:nuq3/ch:out1,v=nuq3/tok:out1,sink=1"},
      {"kvquant2", "k=pre:nuq2/ch:cal:out1,v=nuq2/tok:cal:out1,sink=1"},
      {"quarot4", "kv=had:u4/tok:clip0.95"},
      {"qserve4", "k=smooth:u4/tok,v=u4/tok"},
      {"turbo4", "kv=had:lm4/tok:norm"},
      {"turbo3", "kv=had:lm3/tok:norm"},
      {"turbo2", "kv=had:lm2/tok:norm"},
      {"kvarn4", "kv=had:u4/grid,sink=128"},
      {"kvarn_k4v2", "k=had:u4/grid,v=had:u2/grid,sink=128"},
      {"kvarn2", "kv=had:u2/grid,sink=128"},
      {"kitty2", "k=u2/ch:hi12.5,v=u2/tok,sink=32,recent=128"},
  };
  return expected;
}

TEST(PresetsTest, EveryPresetIsListedOnceWithItsText) {
  std::map<std::string, std::string> actual;
  for (const Preset& preset : Presets()) {
    EXPECT_TRUE(actual.emplace(preset.name, preset.canonical).second) << preset.name;
    EXPECT_FALSE(preset.source.empty()) << preset.name;
  }
  EXPECT_EQ(actual, Expected());
}

TEST(PresetsTest, NameAndCanonicalTextAreTheSameRecipe) {
  for (const Preset& preset : Presets()) {
    const Result<Recipe> by_name = Recipe::Parse(preset.name);
    const Result<Recipe> by_text = Recipe::Parse(preset.canonical);
    ASSERT_TRUE(by_name.ok()) << by_name.status().message();
    ASSERT_TRUE(by_text.ok()) << by_text.status().message();
    EXPECT_EQ(*by_name, *by_text) << preset.name;
    EXPECT_EQ(by_name->ToString(), preset.canonical);
  }
}

TEST(PresetsTest, OptionsReplaceThePresetsOwn) {
  const auto text = [](std::string_view given) { return Recipe::Parse(given)->ToString(); };
  EXPECT_EQ(text("kivi2,recent=256"), "k=u2/ch32,v=u2/tok32,recent=256");
  EXPECT_EQ(text("kivi2,recent=0"), "k=u2/ch32,v=u2/tok32");
  EXPECT_EQ(text("kitty2,sink=0,recent=0"), "k=u2/ch:hi12.5,v=u2/tok");
  EXPECT_EQ(text("4bit,recent=256,sink=8"), "k=w4/ch,v=had:lm4/tok:ub,sink=8,recent=256");
  EXPECT_EQ(text("int4@swa,kv=f16"), "kv=u4/tok@swa,kv=f16");
}

TEST(PresetsTest, NearestIsFewestEditsAway) {
  EXPECT_EQ(NearestPreset("kiwi4").name, "kivi4");
  EXPECT_EQ(NearestPreset("turbo5").name, "turbo4");
  EXPECT_EQ(NearestPreset("q40").name, "q4_0");
  EXPECT_EQ(NearestPreset("quaro4").name, "quarot4");
  EXPECT_EQ(NearestPreset("fp8e4m3").name, "fp8_e4m3");
  EXPECT_EQ(NearestPreset("7bit").name, "8bit");
}

TEST(PresetsTest, UnknownNamesAreRefusedWithTheNearest) {
  const Result<Recipe> recipe = Recipe::Parse("Kiwi4,recent=128");
  ASSERT_FALSE(recipe.ok());
  EXPECT_EQ(recipe.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(recipe.status().message(), ::testing::HasSubstr("the nearest is \"kivi4\""));
}

}  // namespace
}  // namespace shorthand
