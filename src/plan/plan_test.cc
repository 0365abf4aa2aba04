#include "shorthand/plan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace shorthand {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

PlanRequest Request(int64_t context, int64_t users, uint64_t memory,
                    std::vector<std::string> recipes) {
  PlanRequest request;
  request.context_tokens = context;
  request.users = users;
  request.memory_bytes = memory;
  request.recipes = std::move(recipes);
  return request;
}

Plan PlanOf(const ModelShape& model, const PlanRequest& request) {
  auto plan = MakePlan(model, request);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *plan : Plan{};
}

std::filesystem::path Data() {
  const char* data = std::getenv("SHORTHAND_DATA");
  const char* source = std::getenv("SHORTHAND_SOURCE_DIR");
  return data != nullptr
             ? std::filesystem::path(data)
             : std::filesystem::path(source != nullptr ? source : ".") / "../shared/data";
}

Result<ModelShape> Published(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(Data() / "configs" / (name + ".json")).rdbuf();
  return ShapeFromConfig(text.str(), name);
}

// The first eleven fields of a line; the note behind them may hold commas.
std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields;
  std::stringstream in(line);
  for (std::string field; fields.size() < 11 && std::getline(in, field, ',');) {
    fields.push_back(field);
  }
  return fields;
}

TEST(Plan, EveryPublishedConfigToTheByte) {
  std::ifstream csv(Data() / "configs_expected_kv_f16.csv");
  if (!csv) GTEST_SKIP() << "the table of expected sizes is not here";
  std::string line;
  std::getline(csv, line);
  int rows = 0;
  while (std::getline(csv, line)) {
    const auto fields = Fields(line);
    ASSERT_EQ(fields.size(), 11u) << line;
    if (fields[1].empty()) continue;
    SCOPED_TRACE(fields[0]);
    const auto model = Published(fields[0]);
    ASSERT_TRUE(model.ok()) << model.status().message();
    std::map<std::string, int> counted;
    for (const LayerShape& layer : model->shape.layers) {
      if (layer.kv_heads == 0) continue;
      ++counted[layer.window > 0 ? "windowed" : "full"];
      if (layer.window > 0) {
        EXPECT_EQ(layer.window, std::stoi(fields[3]));
      }
      EXPECT_EQ(layer.kv_heads, std::stoi(fields[4]));
      EXPECT_EQ(layer.k_dim, std::stoi(fields[5]));
      EXPECT_EQ(layer.v_dim, std::stoi(fields[6]));
    }
    EXPECT_EQ(counted["full"], std::stoi(fields[1]));
    EXPECT_EQ(counted["windowed"], std::stoi(fields[2]));
    const Plan at_8k = PlanOf(*model, Request(8192, 1, 0, {"f16"}));
    const Plan at_32k = PlanOf(*model, Request(32768, 1, 0, {"f16"}));
    EXPECT_EQ(at_8k.kv_bytes_per_token_f16, std::stoull(fields[7]) + std::stoull(fields[8]));
    EXPECT_EQ(at_8k.rows[0].kv_bytes, std::stoull(fields[9]));
    EXPECT_EQ(at_32k.rows[0].kv_bytes, std::stoull(fields[10]));
    ++rows;
  }
  EXPECT_EQ(rows, 50);
}

// Rows that the table leaves blank, by the rules of docs/plan.md:
//   MiMo V2   9 layers x 4 heads x (192 + 128), 39 windowed x 8 x (192 + 128)
//   Gemma 4   5 layers x 2 heads x (512 + 512), 25 windowed x 8 x (256 + 256)
//   Llama 4   12 layers and 36 chunked, x 8 heads x (128 + 128)
TEST(Plan, UnusualAttention) {
  if (!std::filesystem::exists(Data() / "configs")) GTEST_SKIP() << "the configs are not here";
  struct Case {
    const char* name;
    uint64_t full, windowed, window;  // bytes per token of all such layers
  };
  constexpr Case kCases[] = {
      {"XiaomiMiMo--MiMo-V2-Flash", 23040, 199680, 128},
      {"google--gemma-4-26B-A4B", 20480, 204800, 1024},
      {"meta-llama--Llama-4-Scout-17B-16E-Instruct", 49152, 147456, 8192},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto model = Published(c.name);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const Plan plan = PlanOf(*model, Request(32768, 1, 0, {"f16"}));
    EXPECT_EQ(plan.kv_bytes_per_token_f16, c.full + c.windowed);
    EXPECT_EQ(plan.rows[0].kv_bytes, c.full * 32768 + c.windowed * c.window);
  }
  const auto compressed = Published("deepseek-ai--DeepSeek-V4-Flash");
  ASSERT_FALSE(compressed.ok());
  EXPECT_EQ(compressed.status().code(), StatusCode::kUnimplemented);
}

TEST(Plan, TheSeedsFigures) {
  const auto model = ShapeFromName("Llama-3-8B");
  ASSERT_TRUE(model.ok());
  const Plan one = PlanOf(*model, Request(32768, 1, 24'000'000'000, {"f16"}));
  EXPECT_EQ(one.kv_bytes_per_token_f16, 128u * 1024);
  EXPECT_NEAR(static_cast<double>(*one.weights_bytes) / kGiB, 4.2, 0.05);
  EXPECT_EQ(one.rows[0].kv_bytes, uint64_t{4} << 30);
  EXPECT_NEAR(static_cast<double>(*one.rows[0].total_bytes) / kGiB, 8.2, 0.05);
  ASSERT_TRUE(one.rows[0].fit.has_value());
  EXPECT_TRUE(one.rows[0].fit->fits);
  EXPECT_NEAR(static_cast<double>(one.rows[0].fit->spare_bytes) / kGiB, 14.1, 0.05);

  const Plan long_context = PlanOf(*model, Request(131072, 1, 0, {"f16"}));
  EXPECT_EQ(long_context.rows[0].kv_bytes, uint64_t{16} << 30);
  EXPECT_FALSE(long_context.rows[0].fit.has_value());

  const Plan eight =
      PlanOf(*model, Request(32768, 8, 24'000'000'000, {"f16", "fp8_e4m3", "kivi4"}));
  EXPECT_EQ(eight.rows[0].kv_bytes, uint64_t{32} << 30);
  EXPECT_FALSE(eight.rows[0].fit->fits);
  EXPECT_LT(eight.rows[0].fit->spare_bytes, 0);
  EXPECT_EQ(eight.rows[1].kv_bytes, uint64_t{16} << 30);
  EXPECT_TRUE(eight.rows[1].fit->fits);
  // 8 GiB of codes; a scale and an offset of 16 bits for 32 values is one bit more for each.
  EXPECT_EQ(eight.rows[2].kv_bytes, uint64_t{10} << 30);
  EXPECT_TRUE(eight.rows[2].fit->fits);
}

ModelShape OneHead() {
  ModelShape model;
  model.shape.name = "one head";
  model.shape.layers = {{.query_heads = 1, .kv_heads = 1, .k_dim = 64, .v_dim = 64}};
  model.shape.parameters = 1000;
  return model;
}

// One head of 64, 300 tokens. An f16 page is 128 x 128 x 2 = 32768 bytes, two to an extent of
// 65536 + 64. A q8_0 page is 2 sides x (2 groups x 128 f16 scales + 64 x 128 codes) = 17408 bytes,
// four to an extent of 4 x (17408 + 64) + 64 = 69952.
TEST(Plan, AllocatedBytesByHand) {
  const Plan plan = PlanOf(OneHead(), Request(300, 1, 0, {"f16", "q8_0"}));
  EXPECT_EQ(plan.rows[0].kv_bytes, 300u * 256);
  EXPECT_EQ(plan.rows[0].allocated_bytes, 2u * 65600);  // three pages
  EXPECT_EQ(plan.rows[1].kv_bytes, 300u * 17408 / 128);
  // Two sealed pages; two exact ones at most: the one being written and, for 32 tokens more, the
  // one before.
  EXPECT_EQ(plan.rows[1].allocated_bytes, 69952u + 65600u);
  EXPECT_EQ(*plan.rows[1].total_bytes, 563u + 69952u + 65600u);  // 1000 x 4.5 / 8, rounded
}

TEST(Plan, MaximaAreTheLastThatFit) {
  const ModelShape model = OneHead();
  for (const char* recipe : {"f16", "q8_0", "4bit"}) {
    SCOPED_TRACE(recipe);
    constexpr uint64_t kMemory = 3'000'000;
    const Plan plan = PlanOf(model, Request(700, 3, kMemory, {recipe}));
    const PlanFit& fit = *plan.rows[0].fit;
    auto fits = [&](int64_t context, int64_t users) {
      return PlanOf(model, Request(context, users, kMemory, {recipe})).rows[0].fit->fits;
    };
    ASSERT_GT(fit.max_context, 0);
    EXPECT_TRUE(fits(fit.max_context, 3));
    EXPECT_FALSE(fits(fit.max_context + 1, 3));
    ASSERT_GT(fit.max_users, 0);
    EXPECT_TRUE(fits(700, fit.max_users));
    EXPECT_FALSE(fits(700, fit.max_users + 1));
  }
}

TEST(Plan, NothingFitsBesideWeightsThatDoNot) {
  const Plan plan = PlanOf(OneHead(), Request(10, 1, 500, {"f16"}));
  EXPECT_FALSE(plan.rows[0].fit->fits);
  EXPECT_EQ(plan.rows[0].fit->max_context, 0);
  EXPECT_EQ(plan.rows[0].fit->max_users, 0);
}

TEST(Plan, WindowsAloneHaveNoLongestContext) {
  ModelShape model = OneHead();
  model.shape.layers[0].window = 256;
  const Plan plan = PlanOf(model, Request(4096, 1, 10'000'000, {"f16"}));
  EXPECT_EQ(plan.rows[0].kv_bytes, 256u * 256);
  EXPECT_EQ(plan.rows[0].fit->max_context, kMaxPlanTokens);
}

TEST(Plan, StoredWeightsWinOverCountedOnes) {
  ModelShape model = OneHead();
  model.tensor_bytes = 12345;
  EXPECT_EQ(PlanOf(model, Request(1, 1, 0, {"f16"})).weights_bytes, 12345u);
  model.tensor_bytes = 0;
  model.shape.parameters = 0;
  const Plan unknown = PlanOf(model, Request(1, 1, 1'000'000, {"f16"}));
  EXPECT_FALSE(unknown.weights_bytes.has_value());
  EXPECT_FALSE(unknown.rows[0].total_bytes.has_value());
  EXPECT_FALSE(unknown.rows[0].fit.has_value());
}

TEST(Plan, ARecipeThatDoesNotFitFailsAlone) {
  ModelShape model = OneHead();
  model.shape.layers[0].k_dim = 80;
  model.shape.layers[0].v_dim = 80;
  const Plan plan = PlanOf(model, Request(128, 1, 0, {"q4_0", "f16"}));
  EXPECT_FALSE(plan.rows[0].status.ok());
  EXPECT_TRUE(plan.rows[1].status.ok());
  EXPECT_EQ(plan.rows[1].kv_bytes, 128u * 320);
}

TEST(Plan, SharedKeysAndValuesAreCountedOnce) {
  ModelShape model = OneHead();
  model.shape.layers.push_back(model.shape.layers[0]);
  model.shape.layers[1].kv_owner = 0;
  const Plan plan = PlanOf(model, Request(128, 1, 0, {"f16"}));
  EXPECT_EQ(plan.kv_bytes_per_token_f16, 256u);
  EXPECT_EQ(plan.rows[0].kv_bytes, 128u * 256);
}

TEST(Plan, RefusesAbsurdRequests) {
  const ModelShape model = OneHead();
  EXPECT_FALSE(MakePlan(model, Request(0, 1, 0, {})).ok());
  EXPECT_FALSE(MakePlan(model, Request(kMaxPlanTokens + 1, 1, 0, {})).ok());
  EXPECT_FALSE(MakePlan(model, Request(1, 0, 0, {})).ok());
  EXPECT_FALSE(MakePlan(model, Request(1, kMaxPlanUsers + 1, 0, {})).ok());
  EXPECT_FALSE(MakePlan(model, Request(1, 1, kMaxPlanMemoryBytes + 1, {})).ok());
  EXPECT_FALSE(MakePlan(model, Request(1, 1, 0, {"nonsense"})).ok());
  PlanRequest request = Request(1, 1, 0, {});
  request.weight_bits = 0;
  EXPECT_FALSE(MakePlan(model, request).ok());
  ModelShape huge = OneHead();
  huge.shape.layers.assign(1000,
                           {.query_heads = 1024, .kv_heads = 1024, .k_dim = 1024, .v_dim = 1024});
  EXPECT_FALSE(MakePlan(huge, Request(kMaxPlanTokens, kMaxPlanUsers, 0, {})).ok());
}

}  // namespace
}  // namespace shorthand
