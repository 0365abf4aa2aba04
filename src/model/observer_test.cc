// What an observer sees is what llama.cpp computes, and what the cache holds.
#include "model/observer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "attention/reference.h"
#include "model/model.h"
#include "model/test_logits.h"
#include "model/test_models.h"

namespace shorthand {
namespace {

using testing::TinyModel;

constexpr std::array<AttentionInput, 3> kInputs = {AttentionInput::kKeys, AttentionInput::kValues,
                                                   AttentionInput::kQueries};

// Everything that was shown, by layer and input, rows of later steps behind those of earlier ones.
struct Capture {
  std::map<std::pair<int, AttentionInput>, std::vector<float>> rows;
  std::vector<std::pair<int, AttentionInput>> order;

  StepObserver Observer() {
    return [this](const ObservedRows& seen) {
      std::vector<float>& all = rows[{seen.layer, seen.input}];
      all.insert(all.end(), seen.rows.begin(), seen.rows.end());
      order.emplace_back(seen.layer, seen.input);
    };
  }
};

struct Feeding {
  std::unique_ptr<Cache> cache;
  SequenceId sequence = 0;
};

Feeding OpenCache(const Shape& shape) {
  Result<std::unique_ptr<Cache>> cache = Cache::Open(shape, *Recipe::Parse("f32"));
  EXPECT_TRUE(cache.ok()) << cache.status().message();
  Feeding feeding{*std::move(cache)};
  feeding.sequence = feeding.cache->Create();
  return feeding;
}

std::unique_ptr<Batch> Begin(const Feeding& feeding, size_t tokens) {
  const BatchItem item = {.sequence = feeding.sequence, .tokens = static_cast<int>(tokens)};
  Result<std::unique_ptr<Batch>> batch = feeding.cache->Begin({&item, 1});
  EXPECT_TRUE(batch.ok()) << batch.status().message();
  return *std::move(batch);
}

std::unique_ptr<Model> Load(const std::string& path, int threads) {
  Result<std::unique_ptr<Model>> model = Model::Load(path, {.threads = threads});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

std::vector<Token> Tokens(int count) {
  std::vector<Token> tokens(count);
  for (int i = 0; i < count; ++i) tokens[i] = (i * 37 + 11) % 512;
  return tokens;
}

// llama.cpp's own, by its names of them: "Qcur-3" is any of the steps from projection to the
// rotated query, so the rotation is asked for.
struct LlamaInputs {
  std::map<std::string, std::vector<float>> rows;

  testing::TensorVisitor Visitor() {
    return [this](const ggml_tensor& tensor) {
      const std::string name = tensor.name;
      const bool rotated = tensor.op == GGML_OP_ROPE;
      if (!(rotated && (name.starts_with("Qcur-") || name.starts_with("Kcur-"))) &&
          !name.starts_with("Vcur-")) {
        return;
      }
      ASSERT_TRUE(ggml_is_contiguous(&tensor)) << name;
      const auto* data = static_cast<const float*>(tensor.data);
      rows[name].assign(data, data + ggml_nelements(&tensor));
    };
  }
};

double RelativeError(const std::vector<float>& a, const std::vector<float>& expected) {
  if (a.size() != expected.size()) return INFINITY;
  double error = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += std::pow(double{a[i]} - expected[i], 2);
    norm += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(error / norm);
}

struct Case {
  std::string name;
  TinyModel model;  // without layers: stories260K
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

class ObserverTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (testing::StoriesPath().empty()) GTEST_SKIP() << "the data folder is absent";
    const Case& c = GetParam();
    path_ = c.model.layers > 0 ? testing::WriteTinyModel("observed_" + c.name + ".gguf", c.model)
                               : testing::StoriesPath();
  }
  std::string path_;
};

TEST_P(ObserverTest, SeesWhatLlamaComputes) {
  const std::vector<Token> tokens = Tokens(40);
  LlamaInputs theirs;
  testing::LlamaLogits(path_, tokens, theirs.Visitor());

  const auto model = Load(path_, 2);
  Capture ours;
  model->Observe(ours.Observer());
  const Feeding feeding = OpenCache(model->shape());
  const auto batch = Begin(feeding, tokens.size());
  ASSERT_TRUE(model->Forward(*batch, tokens, std::array{0}).ok());

  const int layers = static_cast<int>(model->shape().layers.size());
  ASSERT_EQ(ours.rows.size(), 3u * layers);
  for (int layer = 0; layer < layers; ++layer) {
    const std::map<AttentionInput, char> letters = {{AttentionInput::kKeys, 'K'},
                                                    {AttentionInput::kValues, 'V'},
                                                    {AttentionInput::kQueries, 'Q'}};
    for (const auto& [input, letter] : letters) {
      const std::string name = fmt::format("{}cur-{}", letter, layer);
      EXPECT_LT(RelativeError(ours.rows[{layer, input}], theirs.rows[name]), 1e-4) << name;
    }
  }
}

// The keys and values seen, written to a second cache, make the same cache: attention of the
// queries seen is equal over both.
TEST_P(ObserverTest, SeesWhatTheCacheHolds) {
  const auto model = Load(path_, 1);
  const Shape& shape = model->shape();
  const Feeding feeding = OpenCache(shape), replay = OpenCache(shape);
  for (const int count : {100, 1, 27}) {
    Capture seen;
    model->Observe(seen.Observer());
    const auto batch = Begin(feeding, count), again = Begin(replay, count);
    ASSERT_TRUE(model->Forward(*batch, Tokens(count), std::array{0}).ok());
    for (int layer = 0; layer < static_cast<int>(shape.layers.size()); ++layer) {
      again->Write(layer, seen.rows[{layer, AttentionInput::kKeys}].data(),
                   seen.rows[{layer, AttentionInput::kValues}].data(), 0, 1);
      again->Seal(layer, 0, 1);
      const LayerShape& l = shape.layers[layer];
      const std::vector<float>& q = seen.rows[{layer, AttentionInput::kQueries}];
      ASSERT_EQ(q.size(), static_cast<size_t>(count) * l.query_heads * l.k_dim);
      std::vector<double> expected(static_cast<size_t>(count) * l.query_heads * l.v_dim);
      std::vector<double> replayed(expected.size());
      const AttentionArgs args = {.layer = layer, .q = q.data()};
      ReferenceAttention(*batch, args, expected.data());
      ReferenceAttention(*again, args, replayed.data());
      EXPECT_EQ(replayed, expected) << "layer " << layer << ", " << count << " tokens";
    }
    ASSERT_TRUE(batch->Commit().ok() && again->Commit().ok());
  }
}

TEST_P(ObserverTest, SeesLayersInOrderUntilItIsTakenAway) {
  const auto model = Load(path_, 2);
  const int layers = static_cast<int>(model->shape().layers.size());
  std::vector<std::pair<int, AttentionInput>> expected;
  for (int layer = 0; layer < layers; ++layer) {
    for (const AttentionInput input : kInputs) expected.emplace_back(layer, input);
  }
  Capture seen;
  model->Observe(seen.Observer());
  const Feeding feeding = OpenCache(model->shape());
  const auto step = [&](std::vector<int32_t> output_rows) {
    seen.order.clear();
    const auto batch = Begin(feeding, 2);
    ASSERT_TRUE(model->Forward(*batch, Tokens(2), output_rows).ok());
  };
  step({1});
  EXPECT_EQ(seen.order, expected);
  expected.pop_back();  // nobody asks the last layer without an output row
  step({});
  EXPECT_EQ(seen.order, expected);
  model->Observe({});
  step({1});
  EXPECT_TRUE(seen.order.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, ObserverTest,
    ::testing::Values(Case{"stories", {.architecture = "llama", .layers = 0}},
                      Case{"qwen2", {.architecture = "qwen2"}},
                      Case{"qwen3", {.architecture = "qwen3", .head_dim = 32}},
                      Case{"gemma3",
                           {.architecture = "gemma3", .layers = 7, .head_dim = 32, .window = 20}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace shorthand
