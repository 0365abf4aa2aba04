// Needles and greedy agreement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "eval/evaluate.h"
#include "eval/greedy.h"
#include "eval/needle.h"
#include "eval/windows.h"
#include "model/test_models.h"

namespace shorthand {
namespace {

using ::testing::HasSubstr;

TEST(AgreementTest, EndsAtTheFirstOtherToken) {
  const PositionScore same = {.same_top = true}, other = {.same_top = false};
  EXPECT_EQ(AgreementLength(std::vector{same, same, other, same}), 2);
  EXPECT_EQ(AgreementLength(std::vector{other, same}), 0);
  EXPECT_EQ(AgreementLength(std::vector{same, same}), 2);
}

class TasksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::StoriesPath().empty()) {
      GTEST_SKIP() << "stories260Ktok512.gguf is not in the data folder";
    }
    const std::string path = testing::EditedStories("tasks_2048.gguf", [](gguf_context* file) {
      gguf_set_val_u32(file, "llama.context_length", 2048);
    });
    auto model = Model::Load(path, {.precision = Precision::kF32, .threads = 1});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(*model);
  }
  Window Cut(int64_t tokens) const {
    const auto bytes = testing::ReadBytes(testing::DataPath("text/tinystories_sample_en.txt"));
    const auto windows =
        CutWindows(model_->vocab(), std::string(bytes.begin(), bytes.end()), tokens, 1);
    EXPECT_TRUE(windows.ok()) << windows.status().message();
    return windows->front();
  }
  std::unique_ptr<Model> model_;
};

// The text that a cache writes by itself, token by token.
std::vector<Token> FreeText(Model& model, const Recipe& recipe, std::span<const Token> prompt,
                            int tokens) {
  const auto cache = Cache::Open(model.shape(), recipe);
  const SequenceId sequence = (*cache)->Create();
  std::vector<Token> text, next(prompt.begin(), prompt.end());
  for (int i = 0; i < tokens; ++i) {
    const BatchItem item = {sequence, static_cast<int>(next.size())};
    const auto batch = (*cache)->Begin({&item, 1});
    const int32_t last = item.tokens - 1;
    const auto logits = model.Forward(**batch, next, {&last, 1});
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    next = {static_cast<Token>(std::max_element(logits->begin(), logits->end()) - logits->begin())};
    text.push_back(next[0]);
    EXPECT_TRUE((*batch)->Commit().ok());
  }
  return text;
}

TEST_F(TasksTest, AgreementIsThatOfTextsWrittenFreely) {
  constexpr int kTokens = 150;
  const Window prompt = Cut(140);
  ScoreBook book;
  const auto passage = ContinueGreedily(*model_, prompt, kTokens, book);
  ASSERT_TRUE(passage.ok()) << passage.status().message();
  EXPECT_EQ(passage->scored_positions(), kTokens);
  const std::vector<Recipe> recipes = {*Recipe::Parse("f16"), *Recipe::Parse("k=u2/ch,v=i3/tok"),
                                       *Recipe::Parse("k=u4/ch,v=i4/tok")};
  ASSERT_TRUE(ScoreRecipes(*model_, {&*passage, 1}, recipes, book).ok());
  const auto exact = FreeText(*model_, recipes[0], prompt, kTokens);
  EXPECT_TRUE(std::equal(exact.begin(), exact.end(), passage->tokens.begin() + 140));
  for (const Recipe& recipe : recipes) {
    const auto text = FreeText(*model_, recipe, prompt, kTokens);
    const auto length = std::mismatch(text.begin(), text.end(), exact.begin()).first - text.begin();
    const auto found = AgreementLengths({&*passage, 1}, LaneOf(recipe), book);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0], length) << recipe.ToString();
  }
  EXPECT_EQ(AgreementLengths({&*passage, 1}, LaneOf(recipes[0]), book)[0], kTokens);
  const auto coarse = AgreementLengths({&*passage, 1}, LaneOf(recipes[1]), book)[0];
  EXPECT_GT(coarse, 0);
  EXPECT_LT(coarse, kTokens);
  EXPECT_TRUE(AgreementLengths({&*passage, 1}, "another lane", book).empty());
}

TEST_F(TasksTest, ATextIsWrittenOnce) {
  int written = 0;
  const auto count = [&written] { ++written; };
  ScoreBook book;
  const auto first = ContinueGreedily(*model_, Cut(40), 10, book, count);
  const auto again = ContinueGreedily(*model_, Cut(40), 10, book, count);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(written, 10);
  EXPECT_EQ(again->tokens, first->tokens);
  EXPECT_EQ(again->first_scored, first->first_scored);
  EXPECT_TRUE(ContinueGreedily(*model_, Cut(41), 10, book, count).ok());
  EXPECT_TRUE(ContinueGreedily(*model_, Cut(40), 11, book, count).ok());
  EXPECT_EQ(written, 31);
}

TEST_F(TasksTest, WritingBeyondTheContextIsRefused) {
  ScoreBook book;
  const auto passage = ContinueGreedily(*model_, Cut(16), 2033, book);
  ASSERT_FALSE(passage.ok());
  EXPECT_EQ(passage.status().code(), StatusCode::kOutOfRange);
}

TEST_F(TasksTest, NeedlesStandWhereTheyAreSaidToAndAreAskedForAtTheEnd) {
  const Window haystack = Cut(1800);
  for (const int needles : {1, 3, 5}) {
    const auto hidden = HideNeedles(model_->vocab(), haystack, needles);
    ASSERT_TRUE(hidden.ok()) << hidden.status().message();
    const Passage& passage = hidden->passage;
    ASSERT_EQ(passage.tokens.size(), haystack.size());
    EXPECT_EQ(passage.tokens[0], haystack[0]);
    ASSERT_EQ(hidden->needles.size(), static_cast<size_t>(needles));
    std::vector<std::string> numbers;
    for (const Needle& needle : hidden->needles) {
      // What is scored is the number, and the same number stands at the needle's depth.
      const auto first = passage.tokens.begin() + passage.first_scored + needle.first_score + 1;
      const std::string number = model_->vocab().Text(std::vector(first, first + needle.scores));
      EXPECT_EQ(std::count_if(number.begin(), number.end(), isdigit), 5) << number;
      const auto at = static_cast<int64_t>(std::llround(needle.depth * 1800));
      EXPECT_GE(at, 128);
      EXPECT_LT(at, passage.first_scored - 384);
      const auto from = passage.tokens.begin() + at;
      const std::string text = model_->vocab().Text(std::vector(from, from + 60));
      EXPECT_THAT(text.substr(0, 20), HasSubstr("The number of"));
      EXPECT_THAT(text, HasSubstr(number));
      numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    EXPECT_EQ(std::unique(numbers.begin(), numbers.end()), numbers.end());
  }
}

TEST_F(TasksTest, NeedlesThatDoNotFitAreRefused) {
  const auto refusal = [&](int64_t tokens, int needles) {
    const auto hidden = HideNeedles(model_->vocab(), Cut(tokens), needles);
    return hidden.ok() ? "" : hidden.status().message();
  };
  EXPECT_THAT(refusal(512, 4), HasSubstr("do not fit into 512 tokens"));
  EXPECT_THAT(refusal(512, 0), HasSubstr("1 to 16"));
  EXPECT_THAT(refusal(512, 17), HasSubstr("1 to 16"));
}

TEST_F(TasksTest, LogProbabilitiesAreSumsOverTheDigits) {
  NeedlePassage hidden = *HideNeedles(model_->vocab(), Cut(1800), 2);
  std::vector<PositionScore> scores(hidden.passage.scored_positions());
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i].nll = static_cast<double>(i);
    scores[i].nll_exact = 0.5;
  }
  ScoreBook book;
  book.Put(PassageId(hidden.passage), "lane", scores);
  const NeedleResult result = FoundNeedles({&hidden, 1}, "lane", book);
  ASSERT_EQ(result.depths.size(), 2u);
  double mean = 0;
  for (size_t i = 0; i < 2; ++i) {
    const Needle& needle = hidden.needles[i];
    // The sum of n consecutive whole numbers.
    const double sum = needle.scores * (needle.first_score + (needle.scores - 1) / 2.0);
    EXPECT_NEAR(result.depths[i].log_p, -sum, 1e-9);
    EXPECT_NEAR(result.depths[i].log_p_exact, -0.5 * needle.scores, 1e-12);
    mean -= sum / 2;
  }
  EXPECT_NEAR(result.log_p, mean, 1e-9);
  EXPECT_TRUE(FoundNeedles({&hidden, 1}, "another lane", book).depths.empty());
}

}  // namespace
}  // namespace shorthand
