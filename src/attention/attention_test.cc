#include "shorthand/attention.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attention/error_bound.h"
#include "attention/integer_path.h"
#include "attention/reference.h"
#include "cache/testing.h"
#include "quant/every_side.h"
#include "quant/head_tables.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

using ::testing::HasSubstr;

class Attention : public ::testing::Test {
 protected:
  void SetUp() override {
    auto target = ActiveTarget();
    if (!target.ok()) GTEST_SKIP() << target.status().message();
  }
};

// A cache under test beside an exact one that is fed the same.
class Pair {
 public:
  Pair(const TestModel& model, const std::string& recipe, const Calibration* calibration = nullptr)
      : model_(model),
        cache_(OpenCache(model.shape(), recipe, 0, calibration)),
        exact_(OpenCache(model.shape(), "f16")) {}

  SequenceId Create() { return exact_->Create(), cache_->Create(); }
  Status Crop(SequenceId id, int64_t tokens) {
    EXPECT_TRUE(exact_->Crop(id, tokens).ok());
    return cache_->Crop(id, tokens);
  }

  // Appends to both and compares: the kernels' error against double precision on the same pages
  // must keep to ErrorBound.
  void Append(const std::vector<TestModel::Item>& items, const std::string& what,
              const std::vector<float>* sink_logits = nullptr) {
    std::vector<float> out;
    std::vector<double> expected, exact;
    Run(*cache_, items, sink_logits, &out, &expected);
    Run(*exact_, items, sink_logits, nullptr, &exact);
    ASSERT_EQ(out.size(), exact.size());
    double arithmetic = 0, quantization = 0, norm = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      arithmetic += (out[i] - expected[i]) * (out[i] - expected[i]);
      quantization += (expected[i] - exact[i]) * (expected[i] - exact[i]);
      norm += exact[i] * exact[i];
    }
    EXPECT_LT(std::sqrt(arithmetic / norm),
              ErrorBound(cache_->recipe(), std::sqrt(quantization / norm)))
        << what;
  }

  void Feed(SequenceId id, int tokens, int chunk, const std::string& what) {
    const std::vector<int> text = Text(tokens);
    for (int at = 0; at < tokens; at += chunk) {
      const int end = std::min(tokens, at + chunk);
      Append({{id, std::vector<int>(text.begin() + at, text.begin() + end)}}, what);
    }
  }

  // As Feed, without looking.
  void FeedUnchecked(SequenceId id, const std::vector<int>& text, int chunk) {
    model_.Feed(*cache_, id, text, chunk);
    model_.Feed(*exact_, id, text, chunk);
  }

 private:
  void Run(Cache& cache, const std::vector<TestModel::Item>& items,
           const std::vector<float>* sink_logits, std::vector<float>* out,
           std::vector<double>* expected) {
    auto batch = model_.BeginBatch(cache, items);
    ASSERT_NE(batch, nullptr);
    auto plan = AttentionPlan::Create(*batch);
    ASSERT_TRUE(plan.ok());
    for (size_t layer = 0; layer < model_.shape().layers.size(); ++layer) {
      const LayerShape& l = model_.shape().layers[layer];
      model_.WriteLayer(*batch, items, layer, 1);
      const std::vector<float> q = model_.Rows(TestModel::kQuery, *batch, items, layer);
      const size_t at = expected->size();
      expected->resize(at + static_cast<size_t>(batch->rows()) * l.query_heads * l.v_dim);
      AttentionArgs args{static_cast<int>(layer), q.data(), nullptr,
                         sink_logits != nullptr ? sink_logits->data() : nullptr};
      ReferenceAttention(*batch, args, expected->data() + at);
      if (out == nullptr) continue;
      out->resize(expected->size());
      args.out = out->data() + at;
      (*plan)->Run(args, 0, 1);
    }
    EXPECT_TRUE(batch->Commit().ok());
  }

  const TestModel& model_;
  std::unique_ptr<Cache> cache_, exact_;
};

TEST_F(Attention, EveryLengthUpTo300) {
  for (const char* recipe : {"f16", "k=u4/ch,v=had:lm4/tok,sink=4"}) {
    const TestModel model(TestShape(1, 1, 2, 64));
    Pair pair(model, recipe);
    pair.Feed(pair.Create(), 300, 1, recipe);
  }
}

TEST_F(Attention, HeadDimsAndRows) {
  for (int dim : {8, 64, 80, 96, 128, 256}) {
    for (int rows = 1; rows <= 8; ++rows) {
      const TestModel model(TestShape(1, 1, rows, dim));
      for (const char* recipe :
           {"f16", "f32", "bf16", "k=u4/ch,v=i8/tok", "k=had:i4/tok,v=u3/ch"}) {
        Pair pair(model, recipe);
        pair.Feed(pair.Create(), 160, 80, fmt::format("{} d {} rows {}", recipe, dim, rows));
      }
    }
  }
}

TEST_F(Attention, EveryFormat) {
  for (int dim : {64, 128}) {
    const TestModel model(TestShape(1, 1, 2, dim));
    for (const Codec& codec : Registry()) {
      std::vector<std::string> recipes;
      for (const std::string& side : EverySide(codec)) recipes.push_back("kv=" + side + ",sink=3");
      for (const std::string& side : KeySides(codec)) recipes.push_back("k=" + side + ",v=u8/tok");
      const Calibration calibration = NeutralCalibration(model.shape());
      for (const std::string& recipe : recipes) {
        if (!Cache::Open(model.shape(), *Recipe::Parse(recipe), {.calibration = &calibration})
                 .ok()) {
          continue;
        }
        Pair pair(model, recipe);
        pair.Feed(pair.Create(), 200, 140, fmt::format("{} d {}", recipe, dim));
      }
    }
  }
}

// Means, factors, channels and levels that are nothing like the neutral ones.
TEST_F(Attention, TablesOfACalibration) {
  const TestModel model(TestShape(1, 1, 2, 64));
  Calibration calibration = NeutralCalibration(model.shape());
  LayerStatistics& layer = calibration.layers[0];
  HeadStatistics& head = layer.heads[0];
  for (int c = 0; c < 64; ++c) {
    const bool loud = c == 1 || c == 32;
    head.k_spread[c] = static_cast<float>(loud ? 3 : 1 + c % 3);
    head.q_rms[c] = static_cast<float>(1 + c % 7);
    KeyRange& keys = head.keys;
    keys.mean[c] = static_cast<float>(loud ? 6 : c % 4 - 1);
    keys.low[c] = keys.min[c] = loud ? 0 : -2.5f;
    keys.high[c] = keys.max[c] = loud ? 12 : 2.5f + static_cast<float>(c % 2);
  }
  head.v_max = 3;
  layer.k_levels[2] = {-.9f, -.8f, -.7f, -.6f, -.4f, -.3f, -.2f, -.1f,
                       0,    .1f,  .2f,  .3f,  .4f,  .5f,  .7f,  .9f};
  layer.v_levels[0] = {-1, -.3f, .4f, .9f};
  for (const char* recipe :
       {"k=mu:u8/tok:cal,v=u8/tok", "k=mu:smooth:had:lm4/tok:cal,v=nuq2/tok:cal",
        "k=smooth:u4/ch:cal,v=nuq2/tok32:cal", "k=u2/ch:cal:hi25,v=e4m3/page:cal",
        "k=bal:had:u3/ch:cal:hi25,v=nuq2/ch:cal:out1", "k=nuq4/ch:cal,v=nuq2/grid:cal",
        "k=bal:nuq4/ch32:cal:out1,v=u8/tok", "k=mu:had:e5m2/page:cal,v=had:e4m3/page:cal"}) {
    Pair pair(model, recipe, &calibration);
    pair.Feed(pair.Create(), 300, 140, recipe);
  }
}

// What the integer kernels read, and what is unsealed.
TEST(AttentionPaths, OfSidesWithACalibration) {
  const auto usable = [](const char* text, SideKind kind) {
    const SideFormat format = ResolveText(text, kind, 128);
    return IntegerPath(format, NeutralTables(format)).usable();
  };
  for (const char* text : {"u2/ch:cal:hi12.5", "u4/ch:mse:cal:hi40", "mu:u4/tok:cal",
                           "smooth:u4/tok:cal", "mu:smooth:had:lm4/tok:cal", "nuq4/ch:cal"}) {
    EXPECT_TRUE(usable(text, SideKind::kKey)) << text;
  }
  EXPECT_TRUE(usable("nuq3/tok:cal", SideKind::kValue));
  for (const char* text : {"u2/ch:hi12.5", "u2/ch32:cal:hi12.5", "smooth:u4/tok", "pre:nuq4/ch:cal",
                           "nuq4/ch:cal:out1", "e4m3/page:cal"}) {
    EXPECT_FALSE(usable(text, SideKind::kKey)) << text;
  }
}

TEST_F(Attention, LongSequences) {
  for (const char* recipe : {"f16", "k=u2/ch32,v=u2/tok32,recent=128", "k=mu:had:i8/tok,v=i8/tok",
                             "k=f16,v=had:lm2/tok,sink=100", "kv=e4m3/page,sink=128"}) {
    const TestModel model(TestShape(1, 2, 3, 64));
    Pair pair(model, recipe);
    const SequenceId id = pair.Create();
    pair.FeedUnchecked(id, Text(4096), 512);
    pair.Append({{id, Text(1, 7)}}, recipe);
    pair.Append({{id, Text(40, 8)}}, recipe);
  }
}

TEST_F(Attention, WindowsSoftCapsScalesAndSinkLogits) {
  for (int window : {1, 100, 128, 200, 300}) {
    Shape shape = TestShape(1, 2, 2, 64, window);
    shape.layers[0].softcap = 20;
    shape.layers[0].scale = 0.2f;
    shape.layers.push_back(TestShape(1, 2, 2, 64).layers[0]);
    const TestModel model(shape);
    for (const char* recipe : {"f16", "k=u4/ch,v=had:lm4/tok,sink=4,recent=128"}) {
      Pair pair(model, recipe);
      const SequenceId id = pair.Create();
      const std::vector<float> sinks = {-1.5f, 0, 2, 30};
      for (int chunk : {300, 1, 130, 7, 200, 1}) {
        pair.Append({{id, Text(chunk, chunk)}},
                    fmt::format("{} window {} chunk {}", recipe, window, chunk), &sinks);
      }
    }
  }
}

// Different widths of K and V, a layer that reads another's cache, several sequences in a batch.
TEST_F(Attention, SharedLayersAndMixedWidths) {
  Shape shape = TestShape(3, 2, 2, 64);
  shape.layers[1].v_dim = 96;
  shape.layers[2].kv_owner = 0;
  shape.layers[2].query_heads = 6;
  const TestModel model(shape);
  auto cache = OpenCache(shape, "k=had:u8/tok,v=u8/tok32");
  const SequenceId a = cache->Create(), b = cache->Create();
  const std::vector<TestModel::Item> items = {{a, Text(150)}, {b, Text(5)}};
  for (int round = 0; round < 3; ++round) {
    auto batch = model.BeginBatch(*cache, items);
    auto plan = AttentionPlan::Create(*batch);
    for (int layer = 0; layer < 3; ++layer) {
      if (layer < 2) model.WriteLayer(*batch, items, layer, 1);
      const LayerShape& l = shape.layers[layer];
      const std::vector<float> q = model.Rows(TestModel::kQuery, *batch, items, layer);
      std::vector<float> out(static_cast<size_t>(batch->rows()) * l.query_heads * l.v_dim);
      std::vector<double> expected(out.size());
      (*plan)->Run({layer, q.data(), out.data(), nullptr}, 0, 1);
      ReferenceAttention(*batch, {layer, q.data(), nullptr, nullptr}, expected.data());
      for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 0.02) << layer;
    }
    ASSERT_TRUE(batch->Commit().ok());
  }
}

// By hand: one head, d 16, keys zero, so that every weight is equal and the output is the mean of
// the values; the values are the token's position.
TEST_F(Attention, MeanOfValuesByHand) {
  Shape shape = TestShape(1, 1, 1, 16);
  auto cache = OpenCache(shape, "f16");
  const SequenceId id = cache->Create();
  const BatchItem items[] = {{id, 200}};
  auto batch = *cache->Begin(items);
  std::vector<float> k(200 * 16, 0.0f), v(200 * 16), q(200 * 16, 1.0f), out(200 * 16);
  for (int t = 0; t < 200; ++t) std::fill_n(v.begin() + t * 16, 16, static_cast<float>(t));
  batch->Write(0, k.data(), v.data(), 0, 1);
  batch->Seal(0, 0, 1);
  auto plan = *AttentionPlan::Create(*batch);
  plan->Run({0, q.data(), out.data(), nullptr}, 0, 1);
  for (int t = 0; t < 200; ++t) EXPECT_NEAR(out[t * 16 + 3], t / 2.0, 1e-4);
}

const char* const kRecipes[] = {
    "f16",
    "k=u4/ch,v=had:lm4/tok,sink=4,recent=128",
    "k=mu:u4/tok,v=u4/tok",
    "kv=had:i8/tok,sink=128",
    "k=pre:u2/ch:hi12.5,v=nuq4/tok:out1,sink=1",
};

TEST_F(Attention, ChunksAndWorkersDoNotChangeABit) {
  for (int window : {0, 250}) {
    const TestModel model(TestShape(2, 1, 3, 64, window));
    const std::vector<int> text = Text(1300);
    for (const char* recipe : kRecipes) {
      std::vector<std::vector<float>> first;
      const std::pair<int, int> cases[] = {{512, 1}, {128, 3}, {7, 2}, {1, 8}, {1300, 1}};
      for (const auto& [chunk, workers] : cases) {
        auto cache = OpenCache(model.shape(), recipe);
        const auto outputs = model.Feed(*cache, cache->Create(), text, chunk, workers);
        if (first.empty()) first = outputs;
        EXPECT_TRUE(outputs == first) << recipe << ", chunks of " << chunk << ", window " << window;
      }
    }
  }
}

TEST_F(Attention, RejectedDraftsDoNotChangeABit) {
  const TestModel model(TestShape(1, 1, 2, 64));
  const std::vector<int> text = Text(420);
  for (const char* recipe : kRecipes) {
    auto plain = OpenCache(model.shape(), recipe);
    const auto expected = model.Feed(*plain, plain->Create(), text, 1);
    for (int at = 244; at < 268; ++at) {
      auto cache = OpenCache(model.shape(), recipe);
      const SequenceId id = cache->Create();
      const std::vector<int> start(text.begin(), text.begin() + at);
      const std::vector<int> rest(text.begin() + at, text.end());
      model.Feed(*cache, id, start, at);
      model.Forward(*cache, {{id, Text(8, 5)}});
      ASSERT_TRUE(cache->Crop(id, at).ok());
      const auto outputs = model.Feed(*cache, id, rest, 1);
      for (size_t t = 0; t < rest.size(); ++t) {
        ASSERT_TRUE(outputs[t] == expected[at + t]) << recipe << " drafted at " << at;
      }
    }
  }
}

TEST_F(Attention, ForksDoNotChangeABit) {
  const TestModel model(TestShape(1, 2, 2, 64));
  for (const char* recipe : kRecipes) {
    for (int at : {50, 128, 200}) {
      auto cache = OpenCache(model.shape(), recipe);
      const SequenceId a = cache->Create();
      const std::vector<int> start = Text(at), one = Text(150, 1), two = Text(150, 2);
      model.Feed(*cache, a, start, 64);
      const SequenceId b = *cache->Fork(a);
      const auto forked_a = model.Feed(*cache, a, one, 4);
      const auto forked_b = model.Feed(*cache, b, two, 9);
      for (const auto& [rest, forked] : {std::pair{&one, &forked_a}, std::pair{&two, &forked_b}}) {
        auto fresh = OpenCache(model.shape(), recipe);
        const SequenceId id = fresh->Create();
        model.Feed(*fresh, id, start, at);
        EXPECT_TRUE(model.Feed(*fresh, id, *rest, 150) == *forked) << recipe << " at " << at;
      }
    }
  }
}

// A crop behind the slack leaves a short entry; the reference sees the same pages.
TEST_F(Attention, CutEntries) {
  const TestModel model(TestShape(1, 1, 2, 64));
  for (const char* recipe : kRecipes) {
    Pair pair(model, recipe);
    const SequenceId id = pair.Create();
    pair.FeedUnchecked(id, Text(600), 100);
    for (int crop : {333, 150, 3, 2}) {
      ASSERT_TRUE(pair.Crop(id, crop).ok());
      pair.Append({{id, Text(300, crop)}}, recipe);
      pair.Append({{id, Text(1, 1)}}, recipe);
    }
  }
}

TEST_F(Attention, ScoresBeyondF32FailTheBatch) {
  const TestModel model(TestShape(1, 1, 1, 64));
  auto cache = OpenCache(model.shape(), "f16");
  const std::vector<TestModel::Item> items = {{cache->Create(), Text(3)}};
  auto batch = model.BeginBatch(*cache, items);
  auto plan = *AttentionPlan::Create(*batch);
  std::vector<float> k(3 * 64, 6e4f), v(3 * 64, 1.0f), q(3 * 64, 1e38f), out(3 * 64);
  batch->Write(0, k.data(), v.data(), 0, 1);
  batch->Seal(0, 0, 1);
  plan->Run({0, q.data(), out.data(), nullptr}, 0, 1);
  const Status status = batch->Commit();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("score of layer 0"));
}

// Multiplied with the scales of a sealed page, too; three channels overflow, so that what they are
// rounded to does not sum to zero.
TEST_F(Attention, FoldedQueriesBeyondF32FailTheBatch) {
  for (const char* recipe : {"kv=i8/ch", "kv=i8/tok", "kv=u2/ch32"}) {
    const TestModel model(TestShape(1, 1, 1, 64));
    auto cache = OpenCache(model.shape(), recipe);
    const SequenceId id = cache->Create();
    const BatchItem items[] = {{id, 129}};
    auto batch = *cache->Begin(items);
    auto plan = *AttentionPlan::Create(*batch);
    std::vector<float> k(129 * 64), v(129 * 64, 1.0f), q(129 * 64), out(129 * 64);
    for (size_t i = 0; i < k.size(); ++i) k[i] = i / 64 % 2 == 0 ? -6e4f : 6e4f;
    for (size_t row = 0; row < 129; ++row) q[row * 64] = q[row * 64 + 1] = q[row * 64 + 8] = 1e38f;
    batch->Write(0, k.data(), v.data(), 0, 1);
    batch->Seal(0, 0, 1);
    plan->Run({0, q.data(), out.data(), nullptr}, 0, 1);
    EXPECT_THAT(batch->Commit().message(), HasSubstr("score of layer 0")) << recipe;
    EXPECT_EQ(*cache->Tokens(id), 0);
  }
}

TEST_F(Attention, ANonFiniteQueryFailsTheBatch) {
  const TestModel model(TestShape(1, 1, 1, 64));
  auto cache = OpenCache(model.shape(), "f16");
  const std::vector<TestModel::Item> items = {{cache->Create(), Text(3)}};
  auto batch = model.BeginBatch(*cache, items);
  auto plan = *AttentionPlan::Create(*batch);
  model.WriteLayer(*batch, items, 0, 1);
  std::vector<float> q = model.Rows(TestModel::kQuery, *batch, items, 0), out(3 * 64);
  q[70] = std::numeric_limits<float>::quiet_NaN();
  plan->Run({0, q.data(), out.data(), nullptr}, 0, 1);
  const Status status = batch->Commit();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("query of layer 0"));
  EXPECT_EQ(*cache->Tokens(items[0].sequence), 0);
}

}  // namespace
}  // namespace shorthand
