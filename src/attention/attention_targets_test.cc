// Every target gives the same bits, whatever the recipe, the rows and the length.
#include <gtest/gtest.h>

#include "attention/plan_impl.h"
#include "cache/testing.h"
#include "kernels/dispatch.h"
#include "quant/every_side.h"
#include "quant/head_tables.h"

namespace shorthand {
namespace {

std::vector<float> Outputs(const TestModel& model, Batch& batch, const KernelTable& kernels,
                           const std::vector<float>& q) {
  AttentionPlanImpl plan(batch.impl(), &kernels);
  const LayerShape& l = model.shape().layers[0];
  std::vector<float> out(static_cast<size_t>(batch.rows()) * l.query_heads * l.v_dim);
  plan.Run({0, q.data(), out.data(), nullptr}, 0, 1);
  return out;
}

void ExpectSameBits(const TestModel& model, const std::string& recipe) {
  auto cache = OpenCache(model.shape(), recipe);
  ASSERT_NE(cache, nullptr);
  const SequenceId id = cache->Create();
  const std::vector<const KernelTable*> targets = RunnableTargets();
  for (int tokens : {200, 1, 60}) {
    const std::vector<TestModel::Item> items = {{id, Text(tokens, tokens)}};
    auto batch = model.BeginBatch(*cache, items);
    model.WriteLayer(*batch, items, 0, 1);
    const std::vector<float> q = model.Rows(TestModel::kQuery, *batch, items, 0);
    const KernelTable& scalar = *targets.back();
    ASSERT_STREQ(scalar.name, "scalar");
    const std::vector<float> expected = Outputs(model, *batch, scalar, q);
    for (const KernelTable* target : targets) {
      if (target == &scalar) continue;
      EXPECT_TRUE(Outputs(model, *batch, *target, q) == expected)
          << target->name << ", " << recipe << ", " << tokens << " tokens, d "
          << model.shape().layers[0].k_dim;
    }
    ASSERT_TRUE(batch->Commit().ok());
  }
}

TEST(AttentionTargets, EveryFormatGivesTheSameBits) {
  for (int dim : {8, 80}) {
    for (const Codec& codec : Registry()) {
      std::vector<std::string> recipes;
      for (const std::string& side : EverySide(codec)) {
        if (side.starts_with("had:")) continue;  // of every target in its own test
        recipes.push_back("kv=" + side + ",sink=3");
      }
      for (const std::string& side : KeySides(codec)) recipes.push_back("k=" + side + ",v=u8/tok");
      for (const std::string& recipe : recipes) {
        const TestModel model(TestShape(1, 1, 3, dim));
        const Calibration calibration = NeutralCalibration(model.shape());
        if (!Cache::Open(model.shape(), *Recipe::Parse(recipe), {.calibration = &calibration})
                 .ok()) {
          continue;
        }
        ExpectSameBits(model, recipe);
      }
    }
  }
}

TEST(AttentionTargets, EveryNumberOfRowsGivesTheSameBits) {
  for (int rows = 1; rows <= 8; ++rows) {
    const TestModel model(TestShape(1, 1, rows, 64));
    for (const char* recipe : {"f16", "k=u8/ch,v=had:i8/tok", "k=u4/ch,v=had:lm4/tok",
                               "k=u2/ch32,v=u2/tok32", "k=mu:had:i6/tok,v=rn3/ch"}) {
      ExpectSameBits(model, recipe);
    }
  }
}

// A loud channel needs a second limb for 6-bit keys; a query of zeros has none to round.
TEST(AttentionTargets, LoudAndSilentQueriesGiveTheSameBits) {
  const TestModel model(TestShape(1, 1, 4, 64));
  auto cache = OpenCache(model.shape(), "k=u6/ch,v=u4/tok");
  const SequenceId id = cache->Create();
  model.Feed(*cache, id, Text(400), 400);
  const std::vector<TestModel::Item> items = {{id, Text(1)}};
  auto batch = model.BeginBatch(*cache, items);
  model.WriteLayer(*batch, items, 0, 1);
  std::vector<float> q = model.Rows(TestModel::kQuery, *batch, items, 0);
  for (int c = 0; c < 64; ++c) q[c] = 0, q[64 + c] = c == 7 ? 1e4f : 1e-4f, q[128 + c] *= 1e-30f;
  const std::vector<const KernelTable*> targets = RunnableTargets();
  const KernelTable& scalar = *targets.back();
  const std::vector<float> expected = Outputs(model, *batch, scalar, q);
  for (float x : expected) ASSERT_TRUE(std::isfinite(x));
  for (const KernelTable* target : targets) {
    if (target == &scalar) continue;
    EXPECT_TRUE(Outputs(model, *batch, *target, q) == expected) << target->name;
  }
}

}  // namespace
}  // namespace shorthand
