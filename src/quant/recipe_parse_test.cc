#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quant/recipe_names.h"
#include "shorthand/recipe.h"

namespace shorthand {
namespace {

using ::testing::HasSubstr;

TEST(RecipeParseTest, FieldsAreWhatTheTextSays) {
  const Result<Recipe> recipe = Recipe::Parse(
      "k=pre:mu:smooth:lm3/tok64:ub:cal,v=had64:u8/ch32:clip0.5,sink=128,recent=256,cal=0fA9"
      "@-3..-1+4,k=w2.5/ch,v=e4m3/page:one");
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  Recipe expected;
  Side& k = expected.kv.k;
  k.pre = k.mu = k.smooth = k.ub = k.cal = true;
  k.code = Code::kLm;
  k.bits = 3;
  k.axis = Axis::kToken;
  k.group = 64;
  Side& v = expected.kv.v;
  v.hadamard = 64;
  v.code = Code::kUint;
  v.bits = 8;
  v.axis = Axis::kChannel;
  v.group = 32;
  v.clip.millionths = 500'000;
  expected.sink_tokens = 128;
  expected.recent_tokens = 256;
  expected.cal = "0fa9";
  Override& override = expected.overrides.emplace_back();
  override.spans = {{-3, -1}, {4, 4}};
  override.kv.k.code = Code::kWater;
  override.kv.k.width.millionths = 2'500'000;
  override.kv.k.axis = Axis::kChannel;
  override.kv.v.code = Code::kE4m3;
  override.kv.v.axis = Axis::kPage;
  override.kv.v.one = true;
  EXPECT_EQ(*recipe, expected);
}

struct Pair {
  std::string given;
  std::string canonical;
};

TEST(RecipeParseTest, CanonicalTextIsUnique) {
  const std::vector<Pair> pairs = {
      {"k=u4/tok,v=u4/tok", "kv=u4/tok"},
      {"KV=Had:U4/Tok:CLIP0.950", "kv=had:u4/tok:clip0.95"},
      {"kv=lm4/tok:ls", "kv=lm4/tok"},
      {"k=lm4/tok:ls,v=lm4/tok", "kv=lm4/tok"},
      {"kv=f16,sink=0,recent=0", "kv=f16"},
      {"kv=u4/tok,recent=128,sink=4", "kv=u4/tok,sink=4,recent=128"},
      {"k=bal:had:u4/ch,v=i4/tok,cal=AB,recent=128,sink=1",
       "k=bal:had:u4/ch,v=i4/tok,sink=1,recent=128,cal=ab"},
      {"k=u2/ch:hi50:cal:mse,v=had:lm3/tok", "k=u2/ch:mse:cal:hi50,v=had:lm3/tok"},
      {"k=w5.0/ch,v=i5/tok", "k=w5/ch,v=i5/tok"},
      {"kv=u4/tok@0..0+2..2,kv=f16", "kv=u4/tok@0+2,kv=f16"},
      {"kv=u4/tok@FULL,k=f16,v=f16", "kv=u4/tok@full,kv=f16"},
      {"k=nuq4/ch:out1.500000000:cal,v=nuq4/tok,cal=1", "k=nuq4/ch:cal:out1.5,v=nuq4/tok,cal=1"},
      {"kv=e5m2/page:cal", "kv=e5m2/page:cal"},
      {"k=mu:u4/tok:cal,v=u4/page", "k=mu:u4/tok:cal,v=u4/page"},
      {"kv=f16@swa,k=w8/ch,v=f16", "kv=f16@swa,k=w8/ch,v=f16"},
      {"k=pre:w2/ch,v=f16", "k=pre:w2/ch,v=f16"},
      {"k=mu:had:q4_0,v=had64:iq4_nl", "k=mu:had:q4_0,v=had64:iq4_nl"},
  };
  for (const Pair& pair : pairs) {
    const Result<Recipe> recipe = Recipe::Parse(pair.given);
    ASSERT_TRUE(recipe.ok()) << recipe.status().message();
    EXPECT_EQ(recipe->ToString(), pair.canonical);
  }
}

struct Refused {
  std::string text;
  size_t byte;
  std::string says;
};

void ExpectRefused(const std::vector<Refused>& cases) {
  for (const Refused& refused : cases) {
    const Result<Recipe> recipe = Recipe::Parse(refused.text);
    ASSERT_FALSE(recipe.ok()) << refused.text;
    EXPECT_EQ(recipe.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(recipe.status().message(),
                HasSubstr("\": at byte " + std::to_string(refused.byte) + ": "))
        << refused.text;
    EXPECT_THAT(recipe.status().message(), HasSubstr(refused.says));
  }
}

TEST(RecipeParseTest, TheSentenceIsWhole) {
  EXPECT_EQ(Recipe::Parse("k=u9/ch").status().message(),
            "recipe \"k=u9/ch\": at byte 3: \"u9\" is not a width; uB takes 2, 3, 4, 5, 6 or 8 "
            "bits");
}

TEST(RecipeParseTest, HeadsAreRefusedAtTheirByte) {
  ExpectRefused({
      {"", 0, "starts with a preset"},
      {",kv=f16", 0, "starts with a preset"},
      {"auto", 0, "when a model is loaded"},
      {"auto:4.5", 0, "when a model is loaded"},
      {"u4/tok", 0, "\"u4\" is not a preset; the nearest is \""},
      {"kv", 0, "is not a preset"},
      {"v=u4/tok", 0, "\"v=\" behind \"k=\""},
      {"sink=4", 0, "\"kv=\" or \"k=\" is expected"},
      {"k=u4/ch", 7, "\",v=\""},
      {"k=u4/ch,sink=4", 7, "\",v=\""},
      {"k=u4/ch,k=u4/ch", 7, "\",v=\""},
      {"kv=u4/tok,v=u4/tok", 10, "stands too late"},
      {"4bit,kv=f16", 5, "stands too late"},
      {"kv=f16 ", 6, "no spaces"},
      {"kv=f16\n", 6, "0x0a"},
      {std::string("kv=f16\0", 7), 6, "0x00"},
      {"kv=f\xc3\xbc", 4, "0xc3"},
      {"kv=f16;", 6, "or the end is expected"},
  });
}

TEST(RecipeParseTest, StepsAreRefusedAtTheirByte) {
  ExpectRefused({
      {"k=rot:u4/ch,v=f16", 2, "reserved"},
      {"k=mu:pre:u4/tok,v=f16", 5, "too late"},
      {"k=had:mu:u4/tok,v=f16", 6, "too late"},
      {"k=mu:mu:u4/tok,v=f16", 5, "twice"},
      {"k=had:had64:u4/tok,v=f16", 6, "twice"},
      {"k=had32:u4/tok,v=f16", 5, "\"32\" is not a length"},
      {"k=had64.0:u4/tok,v=f16", 5, "is not a length"},
      {"k=pre:had:u4/ch,v=f16", 6, "exclude each other"},
      {"k=smooth:bal:u4/ch,v=f16", 9, "exclude each other"},
      {"k=f16,v=pre:u4/tok", 8, "keys only"},
      {"k=f16,v=mu:u4/tok", 8, "keys only"},
      {"k=f16,v=smooth:u4/tok", 8, "keys only"},
      {"k=f16,v=bal:u4/tok", 8, "keys only"},
      {"kv=mu:u4/tok", 3, "write k= and v= apart"},
      {"k=had:f16,v=f16", 6, "exact and takes no steps"},
      {"k=pre:bf16,v=f16", 6, "exact and takes no steps"},
      {"k=had,v=f16", 5, "followed by \":\""},
      {"k=had:,v=f16", 6, "a code is expected"},
  });
}

TEST(RecipeParseTest, CodesAreRefusedAtTheirByte) {
  ExpectRefused({
      {"kv=", 3, "a code is expected"},
      {"kv=x4/tok", 3, "\"x4\" is not a code"},
      {"kv=q4/tok", 3, "\"q4\" is not a code"},
      {"kv=f16x", 3, "\"f16x\" is not a code"},
      {"kv=i7/tok", 4, "iB takes 2, 3, 4, 5, 6 or 8 bits"},
      {"kv=u/tok", 4, "uB takes"},
      {"kv=u44/tok", 4, "uB takes"},
      {"kv=u4.0/tok", 4, "uB takes"},
      {"kv=lm5/tok", 5, "lmB takes 2, 3 or 4 bits"},
      {"kv=nuq8/tok", 6, "nuqB takes 2, 3 or 4 bits"},
      {"kv=nf/tok", 5, "nfB takes"},
      {"k=w1.999999/ch,v=f16", 3, "2 to 8 bits"},
      {"k=w8.000001/ch,v=f16", 3, "2 to 8 bits"},
      {"k=w/ch,v=f16", 3, "whole number"},
      {"k=w4./ch,v=f16", 5, "digit is expected behind the point"},
      {"k=w4.2.5/ch,v=f16", 6, "digit is expected behind the point"},
      {"k=w04/ch,v=f16", 3, "starts with a zero"},
      {"k=f16,v=w4/ch", 8, "keys only"},
      {"kv=w4/ch", 3, "write k= and v= apart"},
      {"k=had:w4/ch,v=f16", 6, "no step before it but pre"},
      {"k=bal:w4/ch,v=f16", 6, "no step before it but pre"},
      {"k=pre:bal:w4/ch,v=f16", 10, "no step before it but pre"},
  });
}

TEST(RecipeParseTest, GroupsAreRefusedAtTheirByte) {
  ExpectRefused({
      {"k=u4,v=f16", 4, "u4 needs a group"},
      {"kv=e4m3", 7, "e4m3 needs a group"},
      {"kv=f16/tok", 6, "takes no group"},
      {"kv=q4_0/tok32", 7, "takes no group"},
      {"kv=u4/", 6, "a group is expected"},
      {"kv=u4/row", 6, "\"row\" is not a group"},
      {"kv=u4/tok48", 9, "\"tok48\" is not a group"},
      {"kv=u4/ch64", 8, "\"ch64\" is not a group"},
      {"kv=u4/tok032", 9, "is not a group"},
      {"kv=u4/page1", 6, "is not a group"},
      {"k=w4/tok,v=f16", 5, "its group is ch"},
      {"k=w4/ch32,v=f16", 5, "its group is ch"},
      {"k=mu:u4/ch,v=f16", 8, "offset"},
      {"k=mu:u4/ch32,v=f16", 8, "offset"},
      {"k=mu:had:u4/grid,v=f16", 12, "grid"},
  });
}

TEST(RecipeParseTest, TunesAreRefusedAtTheirByte) {
  ExpectRefused({
      {"kv=u4/tok:", 10, "a tune is expected"},
      {"kv=u4/tok:foo", 10, "\"foo\" is not a tune"},
      {"kv=u4/tok:norm", 10, "u4/tok does not use norm; lmB uses it"},
      {"kv=u4/tok:ls", 10, "does not use ls"},
      {"kv=u4/tok:ub", 10, "does not use ub"},
      {"kv=u4/tok:one", 10, "does not use one"},
      {"kv=u4/tok:cal", 10, "does not use cal"},
      {"kv=u4/tok:out1", 10, "does not use out"},
      {"kv=u4/tok:hi25", 10, "does not use hi"},
      {"kv=lm4/tok:clip0.9", 11, "does not use clip"},
      {"kv=nf4/tok:mse", 11, "does not use mse"},
      {"kv=f16:cal", 7, "f16 does not use cal"},
      {"kv=q4_0:mse", 8, "q4_0 does not use mse"},
      {"kv=e4m3/tok:one", 12, "e4m3/tok does not use one"},
      {"kv=e4m3/tok:cal", 12, "e4m3/tok does not use cal"},
      {"k=w4/ch:cal,v=f16", 8, "w4/ch does not use cal"},
      {"k=u2/ch:cal:mse,v=f16", 8, "u2/ch does not use cal"},
      {"k=u5/ch:hi25,v=f16", 8, "does not use hi"},
      {"k=i2/ch:hi25,v=f16", 8, "does not use hi"},
      {"k=f16,v=u2/ch:hi25", 14, "does not use hi"},
      {"kv=u2/ch:hi25", 9, "does not use hi"},
      {"kv=u4/tok:clip", 14, "needs a number"},
      {"kv=u4/tok:clip0", 14, "above 0 and below 1"},
      {"kv=u4/tok:clip1", 14, "above 0 and below 1"},
      {"kv=u4/tok:clip00.5", 14, "starts with a zero"},
      {"kv=u4/tok:clip.5", 14, "whole number"},
      {"kv=u4/tok:clip0.", 16, "behind the point"},
      {"kv=u4/tok:clip0.9999999", 22, "too many digits"},
      {"kv=u4/tok:clip9999999999", 14, "too large"},
      {"kv=u4/tok:clip0_5", 15, "digits"},
      {"kv=nuq4/tok:out100", 15, "above 0 and below 100"},
      {"k=u2/ch:hi0.0,v=f16", 10, "above 0 and below 100"},
      {"kv=u4/tok:mse2", 13, "mse takes no number"},
      {"kv=u4/tok:mse:mse", 14, "twice"},
      {"kv=u4/tok:clip0.9:mse", 18, "exclude each other"},
      {"kv=lm4/tok:norm:ub", 16, "exclude each other"},
      {"kv=lm4/tok:ls:norm", 14, "exclude each other"},
      {"kv=e4m3/page:cal:one", 17, "exclude each other"},
  });
}

TEST(RecipeParseTest, OptionsAreRefusedAtTheirByte) {
  ExpectRefused({
      {"kv=u4/tok,", 10, "is not an option"},
      {"kv=u4/tok,snk=4", 10, "\"snk\" is not an option"},
      {"kv=u4/tok,sink", 14, "needs \"=\""},
      {"kv=u4/tok,sink=", 15, "whole number"},
      {"kv=u4/tok,sink=-1", 15, "whole number"},
      {"kv=u4/tok,sink=129", 15, "sink takes 0 to 128"},
      {"kv=u4/tok,sink=04", 15, "starts with a zero"},
      {"kv=u4/tok,sink=99999999999999999999", 15, "too large"},
      {"kv=u4/tok,sink=4x", 16, "the end is expected"},
      {"kv=u4/tok,sink=4,recent=128,sink=4", 28, "the option sink is given twice"},
      {"kv=u4/tok,recent=127", 17, "a multiple of 128"},
      {"kv=u4/tok,recent=1", 17, "a multiple of 128"},
      {"k=w4/ch,v=f16,cal=", 18, "hexadecimal"},
      {"k=w4/ch,v=f16,cal=12g4", 20, "hexadecimal"},
      {"k=w4/ch,v=f16,cal=/tmp/x", 18, "never by a path"},
      {"k=w4/ch,v=f16,cal=" + std::string(65, 'a'), 18, "at most 64"},
      {"kv=u4/tok,cal=ab", 10, "nothing uses it"},
      {"kv=u4/tok,cal=ab,sink=4@swa,kv=f16", 10, "nothing uses it"},
  });
}

TEST(RecipeParseTest, OverridesAreRefusedAtTheirByte) {
  ExpectRefused({
      {"kv=f16@", 7, "swa, full or layer numbers"},
      {"kv=f16@all,kv=f16", 7, "swa, full or layer numbers"},
      {"kv=f16@swap,kv=f16", 10, "behind the layers"},
      {"kv=f16@swa", 10, "behind the layers"},
      {"kv=f16@0", 8, "behind the layers"},
      {"kv=f16@0,", 9, "\"kv=\" or \"k=\" is expected"},
      {"kv=f16@0,4bit", 9, "\"kv=\" or \"k=\" is expected"},
      {"kv=f16@0,kv", 11, "lacks its ="},
      {"kv=f16@0..,kv=f16", 10, "layer numbers"},
      {"kv=f16@0...1,kv=f16", 10, "layer numbers"},
      {"kv=f16@-,kv=f16", 8, "layer numbers"},
      {"kv=f16@-0,kv=f16", 7, "-0 is no layer"},
      {"kv=f16@00,kv=f16", 7, "starts with a zero"},
      {"kv=f16@0+,kv=f16", 9, "layer numbers"},
      {"kv=f16@3..1,kv=f16", 7, "the smaller number comes first"},
      {"kv=f16@0+-1..-2,kv=f16", 9, "the smaller number comes first"},
      {"kv=f16@9999999999,kv=f16", 7, "too large"},
      {"kv=f16@swa,k=u4/ch", 18, "\",v=\""},
      {"kv=f16@swa,kv=f16,sink=4", 17, "options stand before"},
      {"kv=f16@swa,kv=mu:u4/tok", 14, "write k= and v= apart"},
  });
}

TEST(RecipeParseTest, LongTextsAreRefusedCleanly) {
  ExpectRefused({{std::string(4097, 'a'), 4096, "4097 bytes"},
                 {std::string(4096, 'a'), 0, "is not a preset"},
                 {std::string(1 << 20, '\xff'), 4096, "1048576 bytes"}});
  for (const std::string& text : {std::string(4096, '\1'), std::string(1 << 20, 'k')}) {
    EXPECT_LT(Recipe::Parse(text).status().message().size(), 1000u);
  }
  // 4090 bytes, but a preset in front makes the canonical text longer than what is read.
  std::string text = "kitty2";
  while (text.size() + 14 <= 4096) text += "@10..11,kv=f16";
  ExpectRefused({{text, 0, "the canonical text has"}});
}

TEST(RecipeParseTest, DecimalsAreExact) {
  const auto clip = [](const std::string& number) {
    return Recipe::Parse("kv=u4/tok:clip" + number)->kv.k.clip.millionths;
  };
  EXPECT_EQ(clip("0.1"), 100'000);
  EXPECT_EQ(clip("0.000001"), 1);
  EXPECT_EQ(clip("0.999999"), 999'999);
  EXPECT_EQ(clip("0.12345600000000000000000000000"), 123'456);
  EXPECT_EQ(DecimalText({1}), "0.000001");
  EXPECT_EQ(DecimalText({999'999}), "0.999999");
  EXPECT_EQ(DecimalText({1'000'000}), "1");
  EXPECT_EQ(DecimalText({10'000'000}), "10");
  EXPECT_EQ(DecimalText({12'500'000}), "12.5");
  EXPECT_EQ(DecimalText({0}), "0");
  EXPECT_EQ(Decimal{2'500'000}.value(), 2.5);
}

}  // namespace
}  // namespace shorthand
