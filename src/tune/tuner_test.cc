// The tuner on a small model, and its corrections by hand.
#include "tune/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "eval/windows.h"
#include "model/calibrate.h"
#include "model/test_models.h"
#include "tune/rungs.h"

namespace shorthand {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(CorrectedTest, ByTheRatioOfMeasuredToPredicted) {
  constexpr std::array<double, 5> kBits = {2, 3, 4, 5, 6};
  constexpr std::array<double, 5> kPredicted = {16, 8, 4, 2, 1};
  const auto corrected = [&](std::vector<Measured> measured) {
    return Corrected(kPredicted, kBits, measured);
  };
  const auto near = [](double x) { return DoubleNear(x, 1e-9); };
  EXPECT_THAT(corrected({{1, 24}}), ElementsAre(near(48), near(24), near(12), near(6), near(3)));
  // Three times as much at 3 bits, a third at 5: as predicted at 4.
  EXPECT_THAT(corrected({{1, 24}, {3, 2.0 / 3}}),
              ElementsAre(near(48), near(24), near(4), near(2.0 / 3), near(1.0 / 3)));
}

class TunerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::StoriesPath().empty()) GTEST_SKIP() << "the data folder is absent";
    const std::string path = testing::EditedStories("tuner_512.gguf", [](gguf_context* file) {
      gguf_set_val_u32(file, "llama.context_length", 512);
    });
    auto model = Model::Load(path, {.precision = Precision::kF32, .threads = 2});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
    const auto bytes = testing::ReadBytes(testing::DataPath("text/tinystories_sample_en.txt"));
    const auto windows =
        CutWindows(model_->vocab(), std::string(bytes.begin(), bytes.end()), 384, 2);
    ASSERT_TRUE(windows.ok()) << windows.status().message();
    passages_ = PassagesOf(*windows, FirstScored(384));
    auto calibration = Calibrate(*model_, passages_[1].tokens, {});
    ASSERT_TRUE(calibration.ok()) << calibration.status().message();
    calibration_ = *std::move(calibration);
    passages_.pop_back();
  }

  Result<TuneResult> Run(const TuneOptions& options) {
    return Tune(*model_, passages_, calibration_, book_, options);
  }

  std::unique_ptr<Model> model_;
  std::vector<Passage> passages_;
  Calibration calibration_;
  ScoreBook book_;
};

TEST_F(TunerTest, StepsStayWithinTheBudgetAndTheBestIsChosen) {
  std::vector<double> shares;
  const TuneOptions options = {.budget = BitBudget{3},
                               .rounds = 2,
                               .on_progress = [&](double share) { shares.push_back(share); }};
  const auto result = Run(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->steps.size(), 4u);
  for (const TuneStep& step : result->steps) {
    EXPECT_LE(step.bits, 3 + 1e-9) << step.name;
    EXPECT_GT(step.kl, 0);
    EXPECT_GE(step.kl, result->steps[result->best].kl);
    EXPECT_EQ(Recipe::Parse(step.recipe.ToString())->ToString(), step.recipe.ToString());
  }
  EXPECT_EQ(result->parts, 10u);  // 5 layers
  // Keys alone and values alone add up to about the whole.
  double sum = 0;
  for (size_t i = 0; i < result->parts; ++i) sum += result->costs[i].kl;
  EXPECT_NEAR(std::log2(sum / result->steps[0].kl), 0, 1);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_LE(shares.back(), 1 + 1e-9);

  // What the book holds is not measured again, and gives the same.
  const auto again = Run(options);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->steps.back().kl, result->steps.back().kl);
}

TEST_F(TunerTest, MemoryIsABudgetToo) {
  const auto bytes = AllocatedBytes(model_->shape(), *Recipe::Parse("3bit"), 4096);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto result = Run({.budget = MemoryBudget{*bytes, 4096}, .rounds = 1});
  ASSERT_TRUE(result.ok()) << result.status().message();
  for (const TuneStep& step : result->steps) {
    EXPECT_LE(step.allocated_bytes, *bytes) << step.name;
    EXPECT_EQ(step.allocated_bytes, *AllocatedBytes(model_->shape(), step.recipe, 4096));
    EXPECT_GT(step.bits, 2) << step.name;
  }
}

TEST_F(TunerTest, BudgetsOutsideTheRungsAreRefused) {
  EXPECT_EQ(Run({.budget = BitBudget{1.9}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Run({.budget = BitBudget{std::nan("")}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Run({.budget = MemoryBudget{1000, 4096}}).status().code(),
            StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace shorthand
