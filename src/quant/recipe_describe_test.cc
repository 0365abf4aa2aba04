#include <gtest/gtest.h>

#include <string>

#include "shorthand/recipe.h"

namespace shorthand {
namespace {

std::string Words(std::string_view text) {
  const Result<Recipe> recipe = Recipe::Parse(text);
  EXPECT_TRUE(recipe.ok()) << recipe.status().message();
  return recipe.ok() ? Describe(*recipe) : "";
}

TEST(RecipeDescribeTest, SaysWhatIsStored) {
  EXPECT_EQ(Words("f16"), "Keys and values in f16.");
  EXPECT_EQ(Words("q4_0"), "Keys and values in q4_0 blocks; the page being written exact.");
  EXPECT_EQ(Words("k=u4/ch,v=had:lm4/tok,sink=4,recent=128"),
            "Keys in 4 bits, one scale and offset per channel and page of 128 tokens; values "
            "Hadamard-rotated, in 4-bit Lloyd-Max levels, one scale per token; the first 4 tokens "
            "exact; the page being written and 128 tokens before it exact.");
  EXPECT_EQ(Words("k=u8/ch,v=had:i8/tok,sink=4"),
            "Keys in 8 bits, one scale and offset per channel and page of 128 tokens; values "
            "Hadamard-rotated, in 8 bits, symmetric, one scale per token; the first 4 tokens "
            "exact; the page being written exact.");
  EXPECT_EQ(Words("kivi2"),
            "Keys in 2 bits, one scale and offset per channel and 32 tokens; values in 2 bits, one "
            "scale and offset per token and 32 channels; the page being written and 128 tokens "
            "before it exact.");
  EXPECT_EQ(Words("q4_0_rot"),
            "Keys Hadamard-rotated, in q4_0 blocks; values Hadamard-rotated over 64 channels, in "
            "q4_0 blocks; the page being written exact.");
}

TEST(RecipeDescribeTest, NamesStepsAndTunes) {
  EXPECT_EQ(Words("kvquant2"),
            "Keys as they are before RoPE, in 2-bit learned levels, one scale and offset per "
            "channel and page of 128 tokens, statistics from calibration, 1 % outliers exact; "
            "values in 2-bit learned levels, one scale and offset per token, statistics from "
            "calibration, 1 % outliers exact; the first token exact; the page being written "
            "exact.");
  EXPECT_EQ(Words("k=nuq4/ch:out1,v=f16"),
            "Keys in 4-bit range-normalised normal-float levels, one scale and offset per channel "
            "and page of 128 tokens, 1 % outliers exact; values in f16; the page being written "
            "exact.");
  EXPECT_EQ(Words("k=mu:u4/tok:cal,v=f16"),
            "Keys less the mean of the head, in 4 bits, one scale and offset per token, statistics "
            "from calibration; values in f16; the page being written exact.");
  EXPECT_EQ(Words("kv=e4m3/page:one"),
            "Keys and values as 8-bit floats (e4m3), scale 1; the page being written exact.");
  EXPECT_EQ(Words("k=mu:had:lm3/tok:ub,v=u4/tok:clip0.95"),
            "Keys less the mean of the page, Hadamard-rotated, in 3-bit Lloyd-Max levels, one "
            "scale per token, scale unbiased; values in 4 bits, one scale and offset per token, "
            "clipped to 0.95 of the range; the page being written exact.");
  EXPECT_EQ(Words("k=w2.5/ch,v=f16,cal=ab12"),
            "Keys in 2.5 bits on average, each channel with a width of its own, one scale and "
            "offset per channel and page of 128 tokens; values in f16; the page being written "
            "exact; calibration ab12.");
}

TEST(RecipeDescribeTest, OverridesAreASentenceOfTheirOwn) {
  EXPECT_EQ(Words("int4@0..1+-2..-1,kv=i8/tok@swa,kv=f16@3+2..-2+-1,kv=f32"),
            "Keys and values in 4 bits, one scale and offset per token; the page being written "
            "exact. Layers 0 to 1 and the last 2 layers: keys and values in 8 bits, symmetric, one "
            "scale per token; layers with a sliding window: keys and values in f16; layer 3 and "
            "layers 2 to 2 from the end and the last layer: keys and values in f32.");
}

TEST(RecipeDescribeTest, EveryPresetHasASentence) {
  for (const Preset& preset : Presets()) {
    const std::string words = Words(preset.name);
    ASSERT_GT(words.size(), 10u) << preset.name;
    EXPECT_EQ(words.substr(0, 4), "Keys") << preset.name;
    EXPECT_EQ(words.back(), '.') << preset.name;
  }
}

}  // namespace
}  // namespace shorthand
