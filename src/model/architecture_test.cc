// Every architecture with random weights against llama.cpp's own graph.
#include <gguf.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/test_logits.h"
#include "model/test_models.h"

namespace shorthand {
namespace {

using testing::TinyModel;

struct Case {
  std::string name;
  TinyModel model;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

TinyModel Scaled(const std::string& type, float factor) {
  return {.architecture = "llama", .edit = [type, factor](gguf_context* file) {
            gguf_set_val_str(file, "llama.rope.scaling.type", type.c_str());
            gguf_set_val_f32(file, "llama.rope.scaling.factor", factor);
            gguf_set_val_u32(file, "llama.rope.scaling.original_context_length", 32);
          }};
}

std::vector<Case> Cases() {
  return {
      {"llama", {.architecture = "llama"}},
      {"llama_factors", {.architecture = "llama", .rope_factors = true}},
      {"llama_linear", Scaled("linear", 4)},
      {"llama_yarn", Scaled("yarn", 4)},
      {"qwen2", {.architecture = "qwen2"}},
      {"qwen3", {.architecture = "qwen3", .head_dim = 32}},
      {"gemma3", {.architecture = "gemma3", .layers = 7, .head_dim = 32, .window = 20}},
      {"gemma3_softcap",
       {.architecture = "gemma3",
        .layers = 7,
        .window = 20,
        .edit =
            [](gguf_context* f) { gguf_set_val_f32(f, "gemma3.final_logit_softcapping", 5.0f); }}},
  };
}

class ArchitectureTest : public ::testing::TestWithParam<Case> {};

TEST_P(ArchitectureTest, LogitsAreLlamas) {
  if (testing::StoriesPath().empty()) GTEST_SKIP() << "the data folder is absent";
  const std::string path = testing::WriteTinyModel(GetParam().name + ".gguf", GetParam().model);
  Result<std::unique_ptr<Model>> model = Model::Load(path, {.threads = 1});
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::vector<Token> tokens(150);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>((i * 37 + 11) % 512);
  const std::vector<float> theirs = testing::LlamaLogits(path, tokens);
  for (const size_t chunk : {150u, 64u}) {
    const testing::Agreement agreement =
        testing::Compare(testing::OurLogits(**model, tokens, chunk), theirs, 512);
    EXPECT_GE(agreement.same_top, 0.99);
    EXPECT_LT(agreement.largest_difference, 0.02f);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ArchitectureTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace shorthand
