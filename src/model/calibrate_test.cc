// Statistics against those of rows that were observed apart, in other chunks, computed in long
// double.
#include "model/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "model/probe.h"
#include "model/test_models.h"

namespace shorthand {
namespace {

class CalibrateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::StoriesPath();
    if (path_.empty()) GTEST_SKIP() << "the data folder is absent";
    auto model = Model::Load(path_, {.precision = Precision::kF32, .threads = 2});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
    for (int i = 0; i < 128; ++i) tokens_.push_back((i * 37 + 11) % 512);
  }

  // Rows of a layer, [tokens][heads][dim], fed 32 tokens at a time.
  std::map<std::pair<int, AttentionInput>, std::vector<float>> Observed() {
    std::map<std::pair<int, AttentionInput>, std::vector<float>> rows;
    const auto cache = Cache::Open(model_->shape(), *Recipe::Parse("f16"));
    const BatchItem item = {(*cache)->Create(), 32};
    model_->Observe([&](const ObservedRows& seen) {
      std::vector<float>& all = rows[{seen.layer, seen.input}];
      all.insert(all.end(), seen.rows.begin(), seen.rows.end());
    });
    for (int at = 0; at < 128; at += 32) {
      const auto batch = (*cache)->Begin({&item, 1});
      EXPECT_TRUE(
          model_->Forward(**batch, std::span(tokens_).subspan(at, 32), std::array{31}).ok());
      EXPECT_TRUE((*batch)->Commit().ok());
    }
    model_->Observe({});
    return rows;
  }

  std::string path_;
  std::unique_ptr<Model> model_;
  std::vector<Token> tokens_;
};

TEST_F(CalibrateTest, SpreadsAndMagnitudes) {
  const auto rows = Observed();
  const auto calibration = Calibrate(*model_, tokens_, {.model_name = "m", .source = "s"});
  ASSERT_TRUE(calibration.ok()) << calibration.status().message();
  EXPECT_EQ(calibration->tokens, 128);
  ASSERT_TRUE(calibration->CheckFits(model_->shape()).ok());
  constexpr int kFirst = 4;  // tokens that are left out
  for (size_t l = 0; l < calibration->layers.size(); ++l) {
    const LayerShape& shape = model_->shape().layers[l];
    const std::vector<float>& k = rows.at({static_cast<int>(l), AttentionInput::kKeys});
    const std::vector<float>& q = rows.at({static_cast<int>(l), AttentionInput::kQueries});
    const int group = shape.query_heads / shape.kv_heads;
    for (int h = 0; h < shape.kv_heads; ++h) {
      for (int c = 0; c < shape.k_dim; ++c) {
        long double mean = 0, variance = 0, squares = 0;
        const auto key = [&](int t) -> long double {
          return k[(t * shape.kv_heads + h) * shape.k_dim + c];
        };
        for (int t = kFirst; t < 128; ++t) mean += key(t) / (128 - kFirst);
        for (int t = kFirst; t < 128; ++t) {
          variance += (key(t) - mean) * (key(t) - mean) / (128 - kFirst);
          for (int g = 0; g < group; ++g) {
            const long double x = q[(t * shape.query_heads + h * group + g) * shape.k_dim + c];
            squares += x * x / ((128 - kFirst) * group);
          }
        }
        const HeadStatistics& head = calibration->layers[l].heads[h];
        // The f16 cache rounds a few keys otherwise where chunks are others; five digits are kept.
        EXPECT_NEAR(head.k_spread[c], std::sqrt(variance), 2e-4 * std::sqrt(variance));
        EXPECT_NEAR(head.q_rms[c], std::sqrt(squares), 2e-4 * std::sqrt(squares));
      }
    }
  }
}

TEST_F(CalibrateTest, RefusesTooFewAndTooMany) {
  const auto code = [&](size_t tokens) {
    const std::vector<Token> text(tokens, 7);
    return Calibrate(*model_, text, {}).status().code();
  };
  EXPECT_EQ(code(0), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(127), StatusCode::kInvalidArgument);  // the context of this model is 128
  EXPECT_EQ(code(128), StatusCode::kOk);
  EXPECT_EQ(code(129), StatusCode::kOutOfRange);
}

TEST_F(CalibrateTest, NoiseFallsWithEveryBit) {
  const std::string path = testing::WriteTinyModel("noise", {.architecture = "llama"});
  const auto model = Model::Load(path, {.precision = Precision::kF32, .threads = 2});
  ASSERT_TRUE(model.ok()) << model.status().message();
  for (int i = 0; i < 256; ++i) tokens_.push_back((i * 53 + 7) % 512);
  const auto calibration = Calibrate(**model, tokens_, {});
  ASSERT_TRUE(calibration.ok()) << calibration.status().message();
  for (const LayerStatistics& layer : calibration->layers) {
    ASSERT_EQ(layer.k_noise.size(), kKeyNoiseBits.size());
    ASSERT_EQ(layer.v_noise.size(), kValueNoiseBits.size());
    for (const std::vector<float>& noise : {layer.k_noise, layer.v_noise}) {
      EXPECT_LT(noise.front(), 1);
      EXPECT_GT(noise.back(), 0);
      EXPECT_LT(noise.back(), noise.front() / 4);
      EXPECT_TRUE(std::is_sorted(noise.rbegin(), noise.rend()));
    }
  }
}

TEST_F(CalibrateTest, AStopEndsItBehindAPage) {
  for (int i = 0; i < 256; ++i) tokens_.push_back((i * 53 + 7) % 512);
  const std::string path = testing::WriteTinyModel("stopped", {.architecture = "llama"});
  const auto model = Model::Load(path, {.precision = Precision::kF32, .threads = 2});
  ASSERT_TRUE(model.ok()) << model.status().message();
  for (const double last : {1.0 / 3, 1.0}) {
    std::stop_source stop;
    double share = 0;
    const auto stopped = Calibrate(**model, tokens_,
                                   {.model_name = "m",
                                    .source = "s",
                                    .on_progress =
                                        [&](double done) {
                                          share = done;
                                          if (done >= last) stop.request_stop();
                                        },
                                    .stop = stop.get_token()});
    EXPECT_EQ(stopped.status().code(), StatusCode::kCancelled);
    EXPECT_EQ(share, last);
  }
}

TEST_F(CalibrateTest, TheProbeIsTheSameFromTheFolder) {
  const std::string folder = ::testing::TempDir() + "/probe_test";
  const ProbeOptions options = {.model_path = path_, .folder = folder};
  const auto made = ProbeModel(*model_, options), kept = ProbeModel(*model_, options);
  ASSERT_TRUE(made.ok() && kept.ok());
  EXPECT_EQ(*made, *kept);
  EXPECT_EQ(made->source, "built-in probe");
}

}  // namespace
}  // namespace shorthand
