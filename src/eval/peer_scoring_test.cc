// llama.cpp's caches in the same book as ours.
#include "eval/peer_scoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "eval/windows.h"
#include "model/test_models.h"

namespace shorthand {
namespace {

using ::testing::HasSubstr;

TEST(LlamaCacheTypeTest, OneTypeOrTwo) {
  const auto one = ParseLlamaCacheType("q8_0");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->k, GGML_TYPE_Q8_0);
  EXPECT_EQ(one->v, GGML_TYPE_Q8_0);
  EXPECT_EQ(ToString(*one), "q8_0");
  const auto two = ParseLlamaCacheType("q8_0/iq4_nl");
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->v, GGML_TYPE_IQ4_NL);
  EXPECT_EQ(ToString(*two), "q8_0/iq4_nl");
  for (const char* text : {"", "q3_k", "q8_0/", "/q8_0", "q8_0/q4_0/q4_0", "4bit"}) {
    const auto none = ParseLlamaCacheType(text);
    ASSERT_FALSE(none.ok()) << text;
    EXPECT_THAT(none.status().message(), HasSubstr("iq4_nl"));
  }
}

TEST(PeerContenderTest, BitsAreThoseOfTheBlocks) {
  Shape shape;
  shape.layers = {{.query_heads = 4, .kv_heads = 2, .k_dim = 64, .v_dim = 64},
                  {.query_heads = 4, .kv_heads = 1, .k_dim = 128, .v_dim = 64}};
  EXPECT_EQ(ContenderOf(shape, {GGML_TYPE_Q8_0, GGML_TYPE_Q8_0}, {}).bits, 8.5);
  // 256 keys a token at 8.5 bits, 192 values at 4.5.
  const Contender both = ContenderOf(shape, {GGML_TYPE_Q8_0, GGML_TYPE_Q4_0}, {});
  EXPECT_NEAR(both.true_bits, (256 * 8.5 + 192 * 4.5) / 448, 1e-12);
  EXPECT_EQ(both.canonical, "q8_0/q4_0");
}

class PeerScoringTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::StoriesPath().empty()) {
      GTEST_SKIP() << "stories260Ktok512.gguf is not in the data folder";
    }
    path_ = testing::EditedStories("peer_512.gguf", [](gguf_context* file) {
      gguf_set_val_u32(file, "llama.context_length", 512);
    });
    auto model = Model::Load(path_, {.precision = Precision::kF32, .threads = 1});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(*model);
    const auto bytes = testing::ReadBytes(testing::DataPath("text/tinystories_sample_en.txt"));
    const auto windows =
        CutWindows(model_->vocab(), std::string(bytes.begin(), bytes.end()), 300, 2);
    ASSERT_TRUE(windows.ok());
    passages_ = PassagesOf(*windows, FirstScored(300));
  }
  std::string path_;
  std::unique_ptr<Model> model_;
  std::vector<Passage> passages_;
};

TEST_F(PeerScoringTest, ItsExactCachePredictsAsOursAndBf16Nearly) {
  const auto weights = LoadLlamaWeights(path_);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  const std::vector<LlamaCacheType> types = {{GGML_TYPE_F16, GGML_TYPE_F16},
                                             {GGML_TYPE_BF16, GGML_TYPE_BF16},
                                             {GGML_TYPE_Q4_0, GGML_TYPE_Q4_0}};
  ScoreBook book;
  ASSERT_TRUE(ScoreRecipes(*model_, passages_, {}, book).ok());
  const auto failures = ScorePeers(*weights, 1, model_->shape(), passages_, types, book);
  ASSERT_TRUE(failures.ok()) << failures.status().message();
  // Blocks of 32 in heads of 8.
  ASSERT_EQ(failures->size(), 1u);
  EXPECT_THAT(failures->begin()->second.message(), HasSubstr("q4_0"));

  std::vector<Contender> contenders;
  for (const auto& type : types)
    contenders.push_back(ContenderOf(model_->shape(), type, *failures));
  const TextPassages text = {.name = "", .passages = passages_};
  const Evaluation result = Tabulate({&text, 1}, contenders, book);
  EXPECT_EQ(result.positions, 2 * 149);
  EXPECT_EQ(result.rows[0].summary.kl_max, 0);
  EXPECT_NEAR(result.rows[0].summary.ppl / result.ppl_exact, 1, 1e-4);
  EXPECT_GT(result.rows[1].summary.kl_mean, 0);
  EXPECT_LT(result.rows[1].summary.kl_mean, 1e-3);
  EXPECT_FALSE(result.rows[2].contender.status.ok());
}

TEST_F(PeerScoringTest, WhatTheBookHoldsIsNotComputedAgain) {
  const auto weights = LoadLlamaWeights(path_);
  ASSERT_TRUE(weights.ok());
  const std::vector<LlamaCacheType> types = {{GGML_TYPE_F32, GGML_TYPE_F32}};
  ScoreBook book;
  int calls = 0;
  const ScoreOptions count = {.on_progress = [&calls](double) { ++calls; }};
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(ScorePeers(*weights, 1, model_->shape(), passages_, types, book, count).ok());
    EXPECT_EQ(calls, 2 * 2 * 3);  // windows, peers with the exact one, chunks
  }
}

TEST_F(PeerScoringTest, TheF32CopyIsWholeOrAbsent) {
  const std::string copy = ::testing::TempDir() + "peer_f32_copy.gguf";
  std::filesystem::remove(copy);
  ASSERT_TRUE(WriteF32Copy(path_, copy, 1).ok());
  EXPECT_TRUE(LoadLlamaWeights(copy).ok());
  std::filesystem::remove(copy);
  const Status status = WriteF32Copy(path_, "/no/such/folder/copy.gguf", 1);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(LoadLlamaWeights(copy).ok());
}

TEST(SmolLM2PeerTest, CostsAreThoseThatWereFoundByHand) {
  const std::string path = testing::FetchedModelPath("smollm2");
  if (path.empty()) {
    GTEST_SKIP() << "smollm2 is not here; scripts/fetch-models smollm2 brings it";
  }
  if (testing::DataPath("wiki.test.raw").empty()) {
    GTEST_SKIP() << "wiki.test.raw is not in the data folder";
  }
  const std::string copy = ::testing::TempDir() + "peer_smollm2_f32.gguf";
  ASSERT_TRUE(WriteF32Copy(path, copy, 2).ok());
  const auto weights = LoadLlamaWeights(copy);
  ASSERT_TRUE(weights.ok());
  std::filesystem::remove(copy);  // it stays mapped
  const auto model = Model::Load(path, {.precision = Precision::kNative, .threads = 2});
  ASSERT_TRUE(model.ok());
  const auto bytes = testing::ReadBytes(testing::DataPath("wiki.test.raw"));
  const auto windows =
      CutWindows((*model)->vocab(), std::string(bytes.begin(), bytes.end()), 512, 1);
  ASSERT_TRUE(windows.ok());
  const auto passages = PassagesOf(*windows, FirstScored(512));
  const std::vector<LlamaCacheType> types = {{GGML_TYPE_Q8_0, GGML_TYPE_Q8_0},
                                             {GGML_TYPE_Q4_0, GGML_TYPE_Q4_0}};
  ScoreBook book;
  ASSERT_TRUE(ScorePeers(*weights, 2, (*model)->shape(), passages, types, book).ok());
  // 0.00024 and 0.039 on two windows of 2048.
  const Summary q8_0 = Summarize(*book.Find(PassageId(passages[0]), LaneOf(types[0])));
  const Summary q4_0 = Summarize(*book.Find(PassageId(passages[0]), LaneOf(types[1])));
  EXPECT_GT(q8_0.kl_mean, 0.00008);
  EXPECT_LT(q8_0.kl_mean, 0.0008);
  EXPECT_GT(q4_0.kl_mean, 0.013);
  EXPECT_LT(q4_0.kl_mean, 0.12);
}

}  // namespace
}  // namespace shorthand
