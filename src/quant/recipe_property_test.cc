// Properties over generated recipes: printing and parsing are inverse, and no text, however broken,
// does worse than an error.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "shorthand/recipe.h"

namespace shorthand {
namespace {

// Builds valid recipes field by field, from the rules of docs/recipes.md.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool Coin() { return Below(2) == 0; }
  template <typename T>
  T Pick(const std::vector<T>& values) {
    return values[Below(static_cast<int>(values.size()))];
  }

  Recipe MakeRecipe() {
    Recipe recipe;
    recipe.kv = MakePair();
    if (Coin()) recipe.sink_tokens = Below(129);
    if (Coin()) recipe.recent_tokens = 128 * Below(1000);
    for (int n = Below(4); n > 0; --n) recipe.overrides.push_back(MakeOverride());
    bool uses_cal = UsesCal(recipe.kv);
    for (const Override& override : recipe.overrides) uses_cal |= UsesCal(override.kv);
    if (uses_cal && Coin()) {
      for (int n = 1 + Below(64); n > 0; --n) recipe.cal += "0123456789abcdef"[Below(16)];
    }
    return recipe;
  }

 private:
  static bool UsesCal(const SidePair& kv) {
    return kv.k.cal || kv.v.cal || kv.k.bal || kv.k.code == Code::kWater;
  }

  SidePair MakePair() {
    SidePair kv;
    kv.v = MakeSide(false);
    kv.k = Below(4) == 0 ? kv.v : MakeSide(true);
    return kv;
  }

  Side MakeSide(bool is_key) {
    Side side;
    if (Below(6) == 0) {
      side.code = Pick<Code>({Code::kF32, Code::kF16, Code::kBf16});
      return side;
    }
    if (is_key && Below(8) == 0) {
      side.code = Code::kWater;
      side.pre = Coin();
      side.width.millionths = 2'000'000 + Below(6'000'001);
      side.axis = Axis::kChannel;
      return side;
    }
    side.code =
        Pick<Code>({Code::kE4m3, Code::kE5m2, Code::kQ8_0, Code::kQ5_1, Code::kQ5_0, Code::kQ4_1,
                    Code::kQ4_0, Code::kIq4Nl, Code::kMxfp4, Code::kNvfp4, Code::kInt, Code::kUint,
                    Code::kUint, Code::kNf, Code::kLm, Code::kRn, Code::kNuq});
    if (side.code == Code::kInt || side.code == Code::kUint) {
      side.bits = Pick<int>({2, 3, 4, 5, 6, 8});
    } else if (side.code >= Code::kNf) {
      side.bits = Pick<int>({2, 3, 4});
    }
    if (!IsBlock(side.code)) MakeGroup(&side);
    MakeSteps(is_key, &side);
    MakeTunes(is_key, &side);
    return side;
  }

  void MakeGroup(Side* side) {
    side->axis = Pick<Axis>({Axis::kToken, Axis::kChannel, Axis::kGrid, Axis::kPage});
    if (side->axis == Axis::kToken) side->group = Pick<int>({0, 32, 64});
    if (side->axis == Axis::kChannel) side->group = Pick<int>({0, 32});
  }

  void MakeSteps(bool is_key, Side* side) {
    if (is_key) {
      side->pre = Below(4) == 0;
      side->mu = Below(4) == 0 && side->axis != Axis::kChannel && side->axis != Axis::kGrid;
      side->smooth = Below(4) == 0;
      side->bal = !side->smooth && Below(4) == 0;
    }
    if (!side->pre && Coin()) side->hadamard = Pick<int>({kHadamardWhole, 64});
  }

  void MakeTunes(bool is_key, Side* side) {
    const Code code = side->code;
    const bool is_float8 = code == Code::kE4m3 || code == Code::kE5m2;
    if (code == Code::kInt || code == Code::kUint || code == Code::kRn) {
      if (Below(3) == 0) side->clip.millionths = 1 + Below(999'999);
      side->mse = side->clip == Decimal{} && Below(3) == 0;
    }
    if (code == Code::kLm) {
      side->norm = Below(3) == 0;
      side->ub = !side->norm && Below(3) == 0;
    }
    if (code == Code::kNuq && Coin()) side->out.millionths = 1 + Below(99'999'999);
    if (is_key && code == Code::kUint && side->axis == Axis::kChannel && side->bits <= 4 &&
        Coin()) {
      side->hi.millionths = 1 + Below(99'999'999);
    }
    const bool float8_page = is_float8 && side->axis == Axis::kPage;
    side->one = float8_page && Below(3) == 0;
    side->cal =
        !side->one && Coin() &&
        (float8_page || code == Code::kNuq || side->mu || side->smooth || side->hi != Decimal{});
  }

  Override MakeOverride() {
    Override override;
    override.set = Pick<LayerSet>({LayerSet::kSpans, LayerSet::kWindowed, LayerSet::kFull});
    if (override.set == LayerSet::kSpans) {
      for (int n = 1 + Below(3); n > 0; --n) override.spans.push_back(MakeSpan());
    }
    override.kv = MakePair();
    return override;
  }

  LayerSpan MakeSpan() {
    LayerSpan span;
    span.first = Below(200) - 100;
    span.last = span.first + Below(20);
    if (span.first < 0 && span.last >= 0 && Coin()) span.last = -1;
    return span;
  }

  std::mt19937 random_;
};

TEST(RecipePropertyTest, ParsingInvertsPrinting) {
  Generator generator(1);
  for (int i = 0; i < 30'000; ++i) {
    const Recipe recipe = generator.MakeRecipe();
    const std::string text = recipe.ToString();
    const Result<Recipe> parsed = Recipe::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    ASSERT_EQ(*parsed, recipe) << text;
    ASSERT_EQ(parsed->ToString(), text);
    ASSERT_FALSE(Describe(recipe).empty());
  }
}

// Whatever is read has a canonical text that reads as itself.
void ExpectCanonicalOrRefused(const std::string& text) {
  const Result<Recipe> recipe = Recipe::Parse(text);
  if (!recipe.ok()) {
    ASSERT_EQ(recipe.status().code(), StatusCode::kInvalidArgument);
    ASSERT_NE(recipe.status().message().find("at byte "), std::string::npos);
    return;
  }
  const std::string canonical = recipe->ToString();
  const Result<Recipe> again = Recipe::Parse(canonical);
  ASSERT_TRUE(again.ok()) << text << " -> " << again.status().message();
  ASSERT_EQ(*again, *recipe) << text;
  ASSERT_EQ(again->ToString(), canonical) << text;
}

TEST(RecipePropertyTest, BrokenTextsAreRefusedOrCanonical) {
  Generator generator(2);
  const std::string alphabet = "kvsinkrecentcalhadmutokchpagegrid0123456789=,:/@+-._ \xff";
  for (int i = 0; i < 60'000; ++i) {
    std::string text = generator.Below(8) == 0
                           ? std::string(Presets()[generator.Below(Presets().size())].name)
                           : generator.MakeRecipe().ToString();
    for (int n = 1 + generator.Below(3); n > 0 && !text.empty(); --n) {
      const size_t at = generator.Below(static_cast<int>(text.size()));
      const char byte = generator.Coin() ? static_cast<char>(generator.Below(256))
                                         : alphabet[generator.Below(alphabet.size())];
      switch (generator.Below(4)) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        case 2:
          text.erase(at, 1);
          break;
        default:
          text.resize(at);
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectCanonicalOrRefused(text));
  }
}

TEST(RecipePropertyTest, CaseDoesNotMatter) {
  Generator generator(3);
  for (int i = 0; i < 2'000; ++i) {
    const Recipe recipe = generator.MakeRecipe();
    std::string text = recipe.ToString();
    for (char& c : text) {
      if (c >= 'a' && c <= 'z' && generator.Coin()) c = static_cast<char>(c - 'a' + 'A');
    }
    const Result<Recipe> parsed = Recipe::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    ASSERT_EQ(*parsed, recipe);
  }
}

}  // namespace
}  // namespace shorthand
