// The evaluator on real models: against raw logits, against itself, and against known costs.
#include "eval/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "eval/windows.h"
#include "model/test_models.h"

namespace shorthand {
namespace {

using ::testing::HasSubstr;

std::vector<Recipe> Recipes(std::span<const char* const> texts) {
  std::vector<Recipe> recipes;
  for (const char* text : texts) {
    const auto recipe = Recipe::Parse(text);
    EXPECT_TRUE(recipe.ok()) << recipe.status().message();
    recipes.push_back(*recipe);
  }
  return recipes;
}

std::string Text(const std::string& file) {
  const std::vector<uint8_t> bytes = testing::ReadBytes(testing::DataPath(file));
  return {bytes.begin(), bytes.end()};
}

class StoriesEvaluation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::StoriesPath().empty()) {
      GTEST_SKIP() << "stories260Ktok512.gguf is not in the data folder";
    }
    // The file says 128 tokens, a single page; the model was trained on more.
    const std::string path = testing::EditedStories("stories_512.gguf", [](gguf_context* file) {
      gguf_set_val_u32(file, "llama.context_length", 512);
    });
    auto model = Model::Load(path, {.precision = Precision::kF32, .threads = 1});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(*model);
    text_ = Text("text/tinystories_sample_en.txt");
  }
  std::vector<Window> Cut(int64_t tokens, int64_t count, int64_t skipped = 0) const {
    auto windows = CutWindows(model_->vocab(), text_, tokens, count, skipped);
    EXPECT_TRUE(windows.ok()) << windows.status().message();
    return *windows;
  }
  std::vector<Passage> Windows(int64_t tokens, int64_t count) const {
    return PassagesOf(Cut(tokens, count), FirstScored(tokens));
  }
  std::unique_ptr<Model> model_;
  std::string text_;
};

TEST_F(StoriesEvaluation, WindowsAreConsecutiveAndOpenAsTheModelDoes) {
  const auto tokens = model_->vocab().Tokenize(text_, Place::kBegin, Markup::kIgnore);
  const auto windows = Cut(100, 3);
  ASSERT_EQ(windows.size(), 3u);
  for (size_t w = 0; w < windows.size(); ++w) {
    ASSERT_EQ(windows[w].size(), 100u);
    EXPECT_EQ(windows[w][0], 1);  // <s>
    for (size_t i = 1; i < 100; ++i) EXPECT_EQ(windows[w][i], (*tokens)[w * 100 + i]);
  }
  const int64_t all = static_cast<int64_t>(tokens->size());
  EXPECT_EQ(Cut(100, 1000000).size(), static_cast<size_t>(all / 100));
  EXPECT_EQ(Cut(all, 2).size(), 1u);

  const auto later = Cut(100, 2, 50);
  ASSERT_EQ(later.size(), 2u);
  EXPECT_EQ(later[1][0], 1);
  for (size_t i = 1; i < 100; ++i) EXPECT_EQ(later[1][i], (*tokens)[150 + i]);
  EXPECT_EQ(Cut(100, 1000000, 50).size(), static_cast<size_t>((all - 50) / 100));
}

TEST_F(StoriesEvaluation, TextsThatCannotBeUsedAreRefused) {
  const auto refusal = [&](std::string_view text, int64_t tokens) {
    const auto windows = CutWindows(model_->vocab(), text, tokens, 1);
    return windows.ok() ? "" : windows.status().message();
  };
  EXPECT_THAT(refusal("", 64), HasSubstr("empty"));
  EXPECT_THAT(refusal("Once upon a time", 64), HasSubstr("fewer than one window of 64"));
  EXPECT_THAT(refusal("Once \xff upon", 64), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal(text_, kMinWindowTokens - 1), HasSubstr("at least"));
  const auto beyond = CutWindows(model_->vocab(), text_, 64, 1, 1 << 30);
  ASSERT_FALSE(beyond.ok());
  EXPECT_THAT(beyond.status().message(), HasSubstr("0 tokens behind the first 1073741824"));
}

// Mean of -log p over the scored positions of all windows, from one step a window.
double MeanNllOfRawLogits(Model& model, std::span<const Window> windows) {
  long double nll = 0;
  int64_t positions = 0;
  for (const Window& window : windows) {
    const auto cache = Cache::Open(model.shape(), *Recipe::Parse("f16"));
    const BatchItem item = {(*cache)->Create(), static_cast<int>(window.size())};
    const auto batch = (*cache)->Begin({&item, 1});
    std::vector<int32_t> rows(window.size());
    std::iota(rows.begin(), rows.end(), 0);
    const auto logits = model.Forward(**batch, window, rows);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    const size_t vocabulary = logits->size() / window.size();
    for (size_t i = window.size() / 2; i + 1 < window.size(); ++i, ++positions) {
      const auto row = logits->subspan(i * vocabulary, vocabulary);
      long double sum = 0;
      for (const float logit : row) sum += std::exp(static_cast<long double>(logit));
      nll += std::log(sum) - row[window[i + 1]];
    }
  }
  return static_cast<double>(nll / positions);
}

TEST_F(StoriesEvaluation, PerplexityIsThatOfTheRawLogits) {
  for (const int64_t tokens : {17, 301, 512}) {
    const auto result = Evaluate(*model_, Windows(tokens, 2), {});
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->positions, 2 * ScoredPositions(tokens));
    EXPECT_NEAR(std::log(result->ppl_exact), MeanNllOfRawLogits(*model_, Cut(tokens, 2)), 1e-5)
        << tokens;
  }
}

TEST_F(StoriesEvaluation, FewerBitsDivergeMore) {
  constexpr const char* kTexts[] = {"f16", "f32", "k=u8/ch,v=had:i8/tok",
                                    "k=u4/ch,v=had:lm4/tok,recent=128", "k=rn2/ch,v=had:lm2/tok"};
  double done = 0;
  const auto result =
      Evaluate(*model_, Windows(512, 2), Recipes(kTexts), {.on_progress = [&](double share) {
        EXPECT_GE(share, done);
        done = share;
      }});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(done, 1);
  ASSERT_EQ(result->rows.size(), 5u);
  for (const EvaluationRow& row : result->rows) {
    ASSERT_TRUE(row.contender.status.ok()) << row.contender.status.message();
    EXPECT_EQ(row.summary.positions, 2 * 255);
    EXPECT_EQ(row.summary.ppl_exact, result->ppl_exact);
  }
  const Summary& f16 = result->rows[0].summary;
  EXPECT_EQ(f16.kl_max, 0);
  EXPECT_EQ(f16.same_top, 1);
  EXPECT_EQ(f16.ppl_ratio, 1);
  EXPECT_EQ(f16.ppl_ratio_error, 0);
  EXPECT_EQ(result->rows[0].contender.bits, 16);

  const Summary& f32 = result->rows[1].summary;
  EXPECT_GT(f32.kl_mean, 0);
  EXPECT_LT(f32.kl_mean, 1e-4);
  EXPECT_EQ(f32.kl_mean, result->floor.f32_cache.kl_mean);
  EXPECT_LT(result->floor.scaled_query.kl_mean, 1e-6);

  const auto kl = [&](size_t row) { return result->rows[row].summary.kl_mean; };
  EXPECT_LT(f32.kl_mean, kl(2));
  EXPECT_LT(2 * kl(2), kl(3));
  EXPECT_LT(2 * kl(3), kl(4));
}

TEST_F(StoriesEvaluation, ARecipeThatDoesNotFitFailsAlone) {
  constexpr const char* kTexts[] = {"q8_0", "k=u8/ch,v=had:i8/tok"};  // blocks of 32 in heads of 8
  const auto both = Evaluate(*model_, Windows(64, 1), Recipes(kTexts));
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_THAT(both->rows[0].contender.status.message(), HasSubstr("8"));
  EXPECT_FALSE(both->rows[0].contender.status.ok());
  EXPECT_TRUE(both->rows[1].contender.status.ok());
  EXPECT_EQ(both->positions, 31);

  const auto none = Evaluate(*model_, Windows(64, 1), Recipes(std::span(kTexts).first(1)));
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(none->positions, 0);
  EXPECT_FALSE(none->rows[0].contender.status.ok());
}

TEST_F(StoriesEvaluation, WindowsBeyondTheModelAreRefused) {
  const auto result = Evaluate(*model_, Windows(513, 1), {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kOutOfRange);
  EXPECT_THAT(result.status().message(), HasSubstr("512"));
}

TEST(SmolLM2Evaluation, CostsStayWithinTheirBounds) {
  const std::string path = testing::FetchedModelPath("smollm2");
  if (path.empty()) {
    GTEST_SKIP() << "smollm2 is not here; scripts/fetch-models smollm2 brings it";
  }
  if (testing::DataPath("wiki.test.raw").empty()) {
    GTEST_SKIP() << "wiki.test.raw is not in the data folder";
  }
  const auto model = Model::Load(path, {.precision = Precision::kF32});
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto windows = CutWindows((*model)->vocab(), Text("wiki.test.raw"), 512, 2);
  ASSERT_TRUE(windows.ok()) << windows.status().message();
  constexpr const char* kTexts[] = {"q8_0", "k=u4/ch,v=had:lm4/tok,recent=128"};
  const auto result = Evaluate(**model, PassagesOf(*windows, FirstScored(512)), Recipes(kTexts));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_LT(result->floor.scaled_query.kl_mean, 1e-6);
  EXPECT_LT(result->floor.f32_cache.kl_mean, 1e-5);
  EXPECT_LT(result->rows[0].summary.kl_mean, 0.002);
  EXPECT_LT(result->rows[1].summary.kl_mean, 0.05);
  EXPECT_GT(result->rows[1].summary.kl_mean, result->floor.f32_cache.kl_mean);
}

}  // namespace
}  // namespace shorthand
