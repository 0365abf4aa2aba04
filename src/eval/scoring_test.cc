// Scoring in pieces: turns, stops and additions change no bit of the result.
#include "eval/scoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <numeric>
#include <stop_token>
#include <string>
#include <utility>

#include "eval/evaluate.h"
#include "eval/windows.h"
#include "model/test_models.h"

namespace shorthand {
namespace {

class ScoringTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::StoriesPath().empty()) {
      GTEST_SKIP() << "stories260Ktok512.gguf is not in the data folder";
    }
    const std::string path = testing::EditedStories("scoring_512.gguf", [](gguf_context* file) {
      gguf_set_val_u32(file, "llama.context_length", 512);
    });
    auto model = Model::Load(path, {.precision = Precision::kF32, .threads = 1});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(*model);
    book_path_ = ::testing::TempDir() + "scoring_test.results";
    std::filesystem::remove(book_path_);
  }
  std::vector<Passage> Windows(int64_t tokens, int64_t count) const {
    const auto bytes = testing::ReadBytes(testing::DataPath("text/tinystories_sample_en.txt"));
    const auto windows =
        CutWindows(model_->vocab(), std::string(bytes.begin(), bytes.end()), tokens, count);
    EXPECT_TRUE(windows.ok()) << windows.status().message();
    return PassagesOf(*windows, FirstScored(tokens));
  }
  ScoreBook Open() const { return *ScoreBook::Open(book_path_, {{"weights", "f32"}}); }

  std::unique_ptr<Model> model_;
  std::string book_path_;
};

std::vector<Recipe> Recipes(std::initializer_list<const char*> texts) {
  std::vector<Recipe> recipes;
  for (const char* text : texts) recipes.push_back(*Recipe::Parse(text));
  return recipes;
}

void ExpectEqual(const ScoreBook& a, const ScoreBook& b, std::span<const Passage> passages,
                 std::span<const Recipe> recipes) {
  std::vector<std::string> lanes = {kScaledQueryLane, kF32CacheLane};
  for (const Recipe& recipe : recipes) lanes.push_back(LaneOf(recipe));
  for (const Passage& passage : passages) {
    for (const std::string& lane : lanes) {
      const auto* one = a.Find(PassageId(passage), lane);
      const auto* other = b.Find(PassageId(passage), lane);
      ASSERT_TRUE(one != nullptr && other != nullptr) << lane;
      ASSERT_EQ(one->size(), static_cast<size_t>(passage.scored_positions()));
      ASSERT_EQ(one->size(), other->size());
      for (size_t i = 0; i < one->size(); ++i) {
        ASSERT_EQ((*one)[i].kl, (*other)[i].kl) << lane << ", position " << i;
        ASSERT_EQ((*one)[i].nll, (*other)[i].nll);
        ASSERT_EQ((*one)[i].nll_exact, (*other)[i].nll_exact);
        ASSERT_EQ((*one)[i].same_top, (*other)[i].same_top);
      }
    }
  }
}

TEST_F(ScoringTest, ResumedWithMoreRecipesAndWindowsIsTheSameAsAtOnce) {
  const auto few = Recipes({"k=u8/ch,v=had:i8/tok"});
  const auto all =
      Recipes({"k=u8/ch,v=i8/tok", "k=u4/ch,v=had:lm4/tok,recent=128", "k=rn2/ch,v=i4/tok"});
  const auto windows = Windows(300, 3);
  ScoreBook at_once;
  ASSERT_TRUE(ScoreRecipes(*model_, windows, all, at_once).ok());
  {
    ScoreBook book = Open();
    ASSERT_TRUE(ScoreRecipes(*model_, std::span(windows).first(2), few, book).ok());
  }
  {
    ScoreBook book = Open();
    EXPECT_EQ(book.Find(PassageId(windows[0]), LaneOf(all[1])), nullptr);
    ASSERT_TRUE(ScoreRecipes(*model_, windows, all, book).ok());
  }
  ExpectEqual(at_once, Open(), windows, all);
}

TEST_F(ScoringTest, WhatTheBookHoldsIsNotComputedAgain) {
  const auto recipes = Recipes({"k=u8/ch,v=had:i8/tok", "k=u4/ch,v=had:lm4/tok,recent=128"});
  const auto windows = Windows(64, 2);
  ScoreBook book;
  ASSERT_TRUE(ScoreRecipes(*model_, windows, recipes, book).ok());
  int calls = 0;
  const ScoreOptions count = {.on_progress = [&calls](double) { ++calls; }};
  ASSERT_TRUE(ScoreRecipes(*model_, windows, recipes, book, count).ok());
  EXPECT_EQ(calls, 0);
  // One lane and the exact one over two chunks of the one window that is new.
  ASSERT_TRUE(ScoreRecipes(*model_, windows, Recipes({"k=rn2/ch,v=had:lm2/tok"}), book).ok());
  ASSERT_TRUE(ScoreRecipes(*model_, Windows(64, 1),
                           Recipes({"k=u4/ch,v=had:lm4/tok,recent=128", "k=u5/ch,v=i5/tok"}), book,
                           count)
                  .ok());
  EXPECT_EQ(calls, 4);
}

TEST_F(ScoringTest, AStopEndsItBehindAChunkAndALaterRunGoesOn) {
  const auto recipes = Recipes({"k=u4/ch,v=had:lm4/tok"});
  const auto windows = Windows(64, 2);
  std::stop_source stop;
  int calls = 0;
  const ScoreOptions options = {.on_progress =
                                    [&](double) {
                                      if (++calls == 9) stop.request_stop();
                                    },
                                .stop = stop.get_token()};
  ScoreBook book, at_once;
  const auto stopped = ScoreRecipes(*model_, windows, recipes, book, options);
  EXPECT_EQ(stopped.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(calls, 9);  // exact, the floor's two, one recipe; two chunks; then the second window's
  EXPECT_NE(book.Find(PassageId(windows[0]), LaneOf(recipes[0])), nullptr);
  EXPECT_EQ(book.Find(PassageId(windows[1]), LaneOf(recipes[0])), nullptr);
  ASSERT_TRUE(ScoreRecipes(*model_, windows, recipes, book).ok());
  ASSERT_TRUE(ScoreRecipes(*model_, windows, recipes, at_once).ok());
  ExpectEqual(at_once, book, windows, recipes);
}

TEST_F(ScoringTest, TurnsForWantOfMemoryChangeNothing) {
  const auto recipes =
      Recipes({"k=u8/ch,v=i8/tok", "k=u4/ch,v=had:lm4/tok,recent=128", "k=rn2/ch,v=i4/tok"});
  const auto windows = Windows(512, 1);
  ScoreBook at_once, in_turns;
  ASSERT_TRUE(ScoreRecipes(*model_, windows, recipes, at_once).ok());
  ASSERT_TRUE(ScoreRecipes(*model_, windows, recipes, in_turns, {.memory_bytes = 1}).ok());
  ExpectEqual(at_once, in_turns, windows, recipes);
}

TEST_F(ScoringTest, EqualRecipesShareALane) {
  const auto recipes = Recipes({"int4,recent=128", "recent=128,k=u4/tok,v=u4/tok"});
  ASSERT_EQ(LaneOf(recipes[0]), LaneOf(recipes[1]));
  int calls = 0;
  ScoreBook book;
  ASSERT_TRUE(
      ScoreRecipes(*model_, Windows(64, 1), recipes, book, {.on_progress = [&calls](double) {
        ++calls;
      }}).ok());
  EXPECT_EQ(calls, 2 * 4);  // exact, the floor's two, one recipe; two chunks
}

// Keys and values of every layer, as a step over the f16 cache computes them.
struct SeenRows {
  std::map<std::pair<int, AttentionInput>, std::vector<float>> rows;
};

// The logits of `tokens` behind a prompt whose keys and values are given, all in one step.
std::vector<float> LogitsBehind(Model& model, const Recipe& recipe, const SeenRows& prompt,
                                int prompt_tokens, std::span<const Token> tokens) {
  const auto cache = Cache::Open(model.shape(), recipe);
  const SequenceId sequence = (*cache)->Create();
  const BatchItem before = {sequence, prompt_tokens};
  const auto written = (*cache)->Begin({&before, 1});
  for (int layer = 0; layer < static_cast<int>(model.shape().layers.size()); ++layer) {
    for (int worker = 0; worker < 3; ++worker) {
      (*written)->Write(layer, prompt.rows.at({layer, AttentionInput::kKeys}).data(),
                        prompt.rows.at({layer, AttentionInput::kValues}).data(), worker, 3);
    }
    for (int worker = 0; worker < 3; ++worker) (*written)->Seal(layer, worker, 3);
  }
  EXPECT_TRUE((*written)->Commit().ok());
  const BatchItem behind = {sequence, static_cast<int>(tokens.size())};
  const auto batch = (*cache)->Begin({&behind, 1});
  std::vector<int32_t> outputs(tokens.size());
  std::iota(outputs.begin(), outputs.end(), 0);
  const auto logits = model.Forward(**batch, tokens, outputs);
  EXPECT_TRUE(logits.ok()) << logits.status().message();
  return {logits->begin(), logits->end()};
}

TEST_F(ScoringTest, InThePaperProtocolThePromptIsExact) {
  constexpr int kPrompt = 300, kTokens = 420;
  Passage passage = Windows(kTokens, 1)[0];
  passage.first_scored = kPrompt;
  const auto recipes =
      Recipes({"f16", "k=rn2/ch,v=had:lm2/tok,sink=4,recent=128", "k=u3/ch,v=i4/tok"});
  ScoreBook paper, streaming;
  ASSERT_TRUE(
      ScoreRecipes(*model_, {&passage, 1}, recipes, paper, {.protocol = Protocol::kPaper}).ok());
  ASSERT_TRUE(ScoreRecipes(*model_, {&passage, 1}, recipes, streaming).ok());

  SeenRows seen;
  model_->Observe([&seen](const ObservedRows& rows) {
    seen.rows[{rows.layer, rows.input}] = {rows.rows.begin(), rows.rows.end()};
  });
  const auto cache = Cache::Open(model_->shape(), recipes[0]);
  const BatchItem item = {(*cache)->Create(), kPrompt};
  const auto batch = (*cache)->Begin({&item, 1});
  const std::span<const Token> tokens = passage.tokens;
  ASSERT_TRUE(model_->Forward(**batch, tokens.first(kPrompt), {}).ok());
  model_->Observe({});

  const auto scored = tokens.subspan(kPrompt, kTokens - 1 - kPrompt);
  ExactLogits exact(model_->vocab().size(), 1);
  exact.Set(LogitsBehind(*model_, recipes[0], seen, kPrompt, scored), tokens.subspan(kPrompt + 1));
  const std::string id = PassageId(passage);
  for (const Recipe& recipe : recipes) {
    std::vector<PositionScore> expected;
    exact.Compare(LogitsBehind(*model_, recipe, seen, kPrompt, scored), expected);
    const auto& found = *paper.Find(id, LaneOf(recipe));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i].kl, expected[i].kl) << i;
  }
  // The exact cache itself is the same in both protocols; coded caches lose less behind an exact
  // prompt.
  const auto mean = [&](const ScoreBook& book, size_t recipe) {
    return Summarize(*book.Find(id, LaneOf(recipes[recipe]))).kl_mean;
  };
  EXPECT_EQ(mean(paper, 0), 0);
  EXPECT_EQ(Summarize(*paper.Find(id, LaneOf(recipes[1]))).ppl_exact,
            Summarize(*streaming.Find(id, LaneOf(recipes[1]))).ppl_exact);
  EXPECT_GT(mean(paper, 1), 0);
  EXPECT_LT(mean(paper, 1), mean(streaming, 1));
  EXPECT_LT(mean(paper, 2), mean(streaming, 2));
}

TEST_F(ScoringTest, PassagesDifferByTokensAndByWhatIsScored) {
  Passage passage = Windows(64, 1)[0];
  const std::string id = PassageId(passage);
  passage.first_scored += 1;
  EXPECT_NE(PassageId(passage), id);
  passage.first_scored -= 1;
  passage.tokens.back() ^= 1;
  EXPECT_NE(PassageId(passage), id);
  passage.tokens.back() ^= 1;
  EXPECT_EQ(PassageId(passage), id);
}

}  // namespace
}  // namespace shorthand
