// What Model::Load and ShapeFromGguf say about files that are not as they should be.
#include <gguf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/test_models.h"

namespace shorthand {
namespace {

using testing::EditedStories;
using ::testing::HasSubstr;
using testing::StoriesPath;
using testing::WriteTemporary;

Status LoadStatus(const std::string& path) {
  Result<std::unique_ptr<Model>> model = Model::Load(path, {.threads = 1});
  return model.ok() ? OkStatus() : model.status();
}

class ModelLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    if (StoriesPath().empty()) GTEST_SKIP() << "stories260Ktok512.gguf is not in the data folder";
  }
  static Status Edited(const std::function<void(gguf_context*)>& edit) {
    return LoadStatus(EditedStories("edited.gguf", edit));
  }
  static Status WithInteger(const std::string& key, uint32_t value) {
    return Edited([&](gguf_context* file) { gguf_set_val_u32(file, key.c_str(), value); });
  }
};

TEST_F(ModelLoad, MissingFileAndFolder) {
  EXPECT_EQ(LoadStatus("/nowhere/model.gguf").code(), StatusCode::kNotFound);
  EXPECT_EQ(LoadStatus(::testing::TempDir()).code(), StatusCode::kNotFound);
  EXPECT_EQ(LoadStatus(WriteTemporary("empty.gguf", {})).code(), StatusCode::kDataLoss);
}

TEST_F(ModelLoad, UnknownArchitectureIsNamed) {
  const Status status =
      Edited([](gguf_context* file) { gguf_set_val_str(file, "general.architecture", "mamba"); });
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("'mamba'"));
  EXPECT_THAT(status.message(), HasSubstr("llama, qwen2, qwen3, gemma3"));
}

TEST_F(ModelLoad, MissingTensorIsNamed) {
  for (const char* name :
       {"token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight", "blk.1.attn_k.weight",
        "blk.2.attn_v.weight", "blk.3.attn_output.weight", "blk.4.attn_norm.weight",
        "blk.0.ffn_gate.weight", "blk.1.ffn_down.weight", "blk.2.ffn_up.weight",
        "blk.4.ffn_norm.weight"}) {
    const Status status = LoadStatus(EditedStories("missing.gguf", [](gguf_context*) {}, name));
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << name;
    EXPECT_THAT(status.message(), HasSubstr(std::string("'") + name + "'"));
  }
  // Without an output matrix the embedding serves.
  EXPECT_TRUE(LoadStatus(EditedStories("tied.gguf", [](gguf_context*) {}, "output.weight")).ok());
}

TEST_F(ModelLoad, AbsurdMetadata) {
  for (const char* key :
       {"llama.block_count", "llama.embedding_length", "llama.attention.head_count",
        "llama.attention.head_count_kv", "llama.context_length", "llama.rope.dimension_count"}) {
    for (const uint32_t value : {0u, 0x7fffffffu, 0xffffffffu}) {
      if (std::string(key) == "llama.context_length" && value == 0x7fffffffu) continue;
      const Status status = WithInteger(key, value);
      EXPECT_EQ(status.code(), StatusCode::kDataLoss) << key << " = " << value;
      EXPECT_THAT(status.message(), HasSubstr(key));
    }
  }
  EXPECT_THAT(WithInteger("llama.attention.head_count_kv", 3).message(),
              HasSubstr("8 query heads for 3 KV heads"));
  EXPECT_THAT(WithInteger("llama.embedding_length", 128).message(), HasSubstr("expected 128"));
  EXPECT_THAT(WithInteger("llama.expert_count", 8).message(), HasSubstr("experts"));
  EXPECT_THAT(Edited([](gguf_context* file) {
                gguf_set_val_str(file, "llama.block_count", "5");
              }).message(),
              HasSubstr("not an integer"));
  EXPECT_THAT(Edited([](gguf_context* file) {
                gguf_set_val_str(file, "llama.rope.scaling.type", "spiral");
              }).message(),
              HasSubstr("'spiral'"));
}

TEST_F(ModelLoad, DamagedVocabulary) {
  const auto removed = [](const char* key) {
    return Edited([&](gguf_context* file) { gguf_remove_key(file, key); });
  };
  EXPECT_THAT(removed("tokenizer.ggml.model").message(), HasSubstr("tokenizer.ggml.model"));
  EXPECT_THAT(removed("tokenizer.ggml.tokens").message(), HasSubstr("tokenizer.ggml.tokens"));
  EXPECT_THAT(Edited([](gguf_context* file) {
                gguf_set_val_str(file, "tokenizer.ggml.model", "rwkv");
              }).message(),
              HasSubstr("'rwkv'"));
  EXPECT_THAT(WithInteger("tokenizer.ggml.eos_token_id", 512).message(), HasSubstr("eos"));
  const auto with_tokens = [](std::vector<const char*> tokens) {
    return Edited([&](gguf_context* file) {
             gguf_set_arr_str(file, "tokenizer.ggml.tokens", tokens.data(), tokens.size());
           })
        .message();
  };
  EXPECT_THAT(with_tokens({"a", "b"}), HasSubstr("2 tokens for 512"));
  EXPECT_THAT(with_tokens(std::vector<const char*>(512, "same")), HasSubstr("text of another"));
}

TEST_F(ModelLoad, FlippedBitsLoadOrAreRefused) {
  const std::vector<uint8_t> bytes = testing::ReadBytes(StoriesPath());
  constexpr size_t kHeaderBytes = 14152;
  std::mt19937_64 random(3);
  for (int i = 0; i < 400; ++i) {
    std::vector<uint8_t> flipped = bytes;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      flipped[random() % kHeaderBytes] ^= static_cast<uint8_t>(1u << (random() % 8));
    }
    const Status status = LoadStatus(WriteTemporary("flipped.gguf", flipped));
    EXPECT_EQ(status.ok(), status.message().empty());
  }
}

TEST_F(ModelLoad, ShapeWithoutWeights) {
  const Result<GgufSummary> summary = ShapeFromGguf(StoriesPath());
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  // The data folder's README: 5 layers, width 64, 8 heads, 4 KV heads, head dim 8, context 128;
  // RoPE's base is 10000.
  ASSERT_EQ(summary->shape.layers.size(), 5u);
  for (const LayerShape& layer : summary->shape.layers) {
    const LayerShape expected = {.query_heads = 8,
                                 .kv_heads = 4,
                                 .k_dim = 8,
                                 .v_dim = 8,
                                 .rope = {RopePairs::kAdjacent, {1, .1f, .01f, .001f}}};
    EXPECT_EQ(layer, expected);
  }
  EXPECT_EQ(summary->shape.max_context_tokens, 128);
  // Embedding and output 512 x 64; per layer q, o 64 x 64, k, v 64 x 32, three 64 x 172, two norms;
  // the last norm.
  constexpr int64_t kLayer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 172 + 2 * 64;
  constexpr int64_t kParameters = 2 * 512 * 64 + 5 * kLayer + 64;
  EXPECT_EQ(summary->shape.parameters, kParameters);
  EXPECT_EQ(summary->tensor_bytes, 4u * kParameters);
}

}  // namespace
}  // namespace shorthand
