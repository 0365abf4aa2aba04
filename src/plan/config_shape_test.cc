#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "shorthand/plan.h"

namespace shorthand {
namespace {

std::string Llama(const std::string& more) {
  return R"({"model_type":"llama","num_hidden_layers":2,"num_attention_heads":4,"hidden_size":64)" +
         more + "}";
}

std::string MessageOf(const std::string& json) {
  const auto model = ShapeFromConfig(json, "c.json");
  return model.ok() ? "" : model.status().message();
}

TEST(ShapeFromConfig, FollowsFromAFewKeys) {
  const auto model = ShapeFromConfig(Llama(R"(,"num_key_value_heads":2)"), "tiny");
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_EQ(model->shape.layers.size(), 2u);
  const LayerShape expected = {.query_heads = 4, .kv_heads = 2, .k_dim = 16, .v_dim = 16};
  EXPECT_EQ(model->shape.layers[0], expected);
  EXPECT_EQ(model->shape.max_context_tokens, 0);
  EXPECT_EQ(model->shape.parameters, 0);
  EXPECT_NE(model->parameters_note.find("vocab_size"), std::string::npos);
}

TEST(ShapeFromConfig, SharedLayersNameTheirOwner) {
  const auto model = ShapeFromConfig(
      R"({"model_type":"gemma4_text","num_hidden_layers":6,"num_attention_heads":4,
          "num_key_value_heads":2,"head_dim":32,"global_head_dim":64,"hidden_size":128,
          "sliding_window":512,"num_kv_shared_layers":2,
          "layer_types":["sliding_attention","full_attention","sliding_attention",
                         "full_attention","sliding_attention","full_attention"]})",
      "shared");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->shape.layers[3].kv_owner, -1);
  EXPECT_EQ(model->shape.layers[4].kv_owner, 2);
  EXPECT_EQ(model->shape.layers[5].kv_owner, 3);
  EXPECT_EQ(model->shape.layers[4].k_dim, 32);
  EXPECT_EQ(model->shape.layers[5].k_dim, 64);
}

TEST(ShapeFromConfig, OptInWindowsStartAtMaxWindowLayers) {
  const std::string qwen =
      R"({"model_type":"qwen2","num_hidden_layers":4,"num_attention_heads":4,"hidden_size":64,
          "max_position_embeddings":32768,"sliding_window":4096,"max_window_layers":3)";
  const auto off = ShapeFromConfig(qwen + "}", "q");
  const auto on = ShapeFromConfig(qwen + R"(,"use_sliding_window":true})", "q");
  ASSERT_TRUE(off.ok() && on.ok());
  EXPECT_EQ(off->shape.layers[3].window, 0);
  EXPECT_EQ(on->shape.layers[2].window, 0);
  EXPECT_EQ(on->shape.layers[3].window, 4096);
}

TEST(ShapeFromConfig, AWindowAsLongAsTheContextIsNone) {
  const std::string mistral =
      R"({"model_type":"mistral","num_hidden_layers":1,"num_attention_heads":4,"hidden_size":64,
          "max_position_embeddings":4096,"sliding_window":)";
  EXPECT_EQ(ShapeFromConfig(mistral + "4096}", "m")->shape.layers[0].window, 0);
  EXPECT_EQ(ShapeFromConfig(mistral + "4095}", "m")->shape.layers[0].window, 4095);
}

TEST(ShapeFromConfig, RefusesInOneSentence) {
  struct Case {
    std::string json;
    std::string part;
  };
  const Case cases[] = {
      {"", "no valid JSON"},
      {"[]", "array instead of an object"},
      {"{}", "model_type is missing"},
      {R"({"model_type":7})", "model_type is 7"},
      {R"({"model_type":"retnet"})", "\"retnet\" is not known"},
      {R"({"model_type":"deepseek_v4"})", "deepseek_v4 is not supported"},
      {R"({"model_type":"llama"})", "num_hidden_layers is missing"},
      {Llama(R"(,"head_dim":-1)"), "head_dim is -1; a whole number from 1 to 1024"},
      {Llama(R"(,"head_dim":1025)"), "head_dim is 1025"},
      {Llama(R"(,"head_dim":1.5)"), "head_dim is 1.5"},
      {Llama(R"(,"head_dim":"128")"), "head_dim is \"128\""},
      {Llama(R"(,"head_dim":[128])"), "head_dim is a list"},
      {Llama(R"(,"head_dim":99999999999999999999)"), "head_dim is 1e+20"},
      {Llama(R"(,"head_dim":18446744073709551615)"), "head_dim is 18446744073709551615"},
      {Llama(R"(,"num_key_value_heads":3)"), "4 query heads cannot share 3 KV heads"},
      {Llama(R"(,"num_key_value_heads":8)"), "4 query heads cannot share 8 KV heads"},
      {Llama(R"(,"layer_types":["full_attention"])"), "a list of 1"},
      {Llama(R"(,"layer_types":["full_attention",3])"), "layer_types holds 3"},
      {Llama(R"(,"layer_types":["full_attention","warped"])"), "\"warped\""},
      {Llama(R"(,"layer_types":["full_attention","sliding_attention"])"),
       "sliding_window is missing"},
      {R"({"model_type":"llama","num_hidden_layers":1001,"num_attention_heads":1,"hidden_size":8})",
       "num_hidden_layers is 1001"},
      {R"({"model_type":"llama","num_hidden_layers":1,"num_attention_heads":3,"hidden_size":8})",
       "does not divide into 3 heads"},
      {R"({"model_type":"deepseek_v3","num_hidden_layers":1,"num_attention_heads":3,
           "kv_lora_rank":1000,"qk_rope_head_dim":64})",
       "is 1064; at most 1024"},
      {R"({"model_type":"nemotron_h","num_hidden_layers":2,"num_attention_heads":1,"hidden_size":8,
           "hybrid_override_pattern":"M"})",
       "1 letters for 2 layers"},
  };
  for (const Case& c : cases) {
    const std::string message = MessageOf(c.json);
    EXPECT_TRUE(message.starts_with("c.json: ")) << message;
    EXPECT_NE(message.find(c.part), std::string::npos) << c.json << "\n" << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(ShapeFromConfig, AnOverrideOfHeadDimNeedsNoHiddenSize) {
  EXPECT_EQ(MessageOf(R"({"model_type":"llama","num_hidden_layers":1,"num_attention_heads":3,
                          "head_dim":8})"),
            "");
}

TEST(ShapeFromConfig, DeepNestingIsNoDanger) {
  constexpr int kDepth = 200'000;
  const std::string nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  EXPECT_NE(MessageOf(Llama(R"(,"head_dim":)" + nested)).find("head_dim is a list"),
            std::string::npos);
  EXPECT_NE(MessageOf(std::string(kDepth, '[')).find("no valid JSON"), std::string::npos);
}

std::string Slurp(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::filesystem::path Configs() {
  const char* data = std::getenv("SHORTHAND_DATA");
  const char* source = std::getenv("SHORTHAND_SOURCE_DIR");
  const std::filesystem::path root =
      data != nullptr ? std::filesystem::path(data)
                      : std::filesystem::path(source != nullptr ? source : ".") / "../shared/data";
  return root / "configs";
}

constexpr const char* kDamaged[] = {"meta-llama--Meta-Llama-3-8B.json", "google--gemma-3-270m.json",
                                    "deepseek-ai--DeepSeek-V3.json",
                                    "nvidia--Nemotron-H-56B-Base-8K.json",
                                    "Qwen--Qwen3.5-27B.json"};

TEST(ShapeFromConfig, EveryTruncationIsRefused) {
  if (!std::filesystem::exists(Configs())) GTEST_SKIP() << "the published configs are not here";
  for (const char* file : kDamaged) {
    const std::string text = Slurp(Configs() / file);
    ASSERT_TRUE(ShapeFromConfig(text, file).ok()) << file;
    const size_t end = text.rfind('}');
    for (size_t length = 0; length <= end; ++length) {
      ASSERT_FALSE(ShapeFromConfig(std::string_view(text).substr(0, length), file).ok())
          << file << " cut to " << length;
    }
  }
}

TEST(ShapeFromConfig, FlippedBytesGiveAShapeWithinBoundsOrAReason) {
  if (!std::filesystem::exists(Configs())) GTEST_SKIP() << "the published configs are not here";
  std::mt19937 random(20240229);
  for (const char* file : kDamaged) {
    const std::string text = Slurp(Configs() / file);
    for (int round = 0; round < 4000; ++round) {
      std::string damaged = text;
      for (uint32_t flips = 1 + random() % 4; flips > 0; --flips) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      const auto model = ShapeFromConfig(damaged, file);
      if (!model.ok()) {
        ASSERT_FALSE(model.status().message().empty());
        continue;
      }
      ASSERT_LE(model->shape.layers.size(), 1000u);
      ASSERT_GE(model->shape.parameters, 0);
      for (const LayerShape& layer : model->shape.layers) {
        ASSERT_LE(layer.kv_heads, layer.query_heads);
        ASSERT_LE(layer.k_dim, 1024);
        ASSERT_LE(layer.v_dim, 1024);
        ASSERT_GE(layer.window, 0);
      }
    }
  }
}

TEST(ShapeFromName, EveryKnownNameResolves) {
  for (std::string_view name : KnownShapes()) {
    const auto model = ShapeFromName(name);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->shape.name, name);
    EXPECT_GT(model->shape.parameters, 0) << model->parameters_note;
  }
}

TEST(ShapeFromName, SpellingDoesNotMatter) {
  for (const char* name : {"llama-3-8b", "LLAMA-3-8B", "meta-llama/Meta-Llama-3-8B",
                           "Meta-Llama-3-8B-Instruct", "llama3_8b"}) {
    const auto model = ShapeFromName(name);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->shape.name, "Llama-3-8B");
  }
  EXPECT_EQ(ShapeFromName("smollm2")->shape.name, "SmolLM2-135M");
  EXPECT_EQ(ShapeFromName("google/gemma-2-9b-it")->shape.name, "Gemma-2-9B");
}

TEST(ShapeFromName, AMissNamesTheNearest) {
  const auto miss = ShapeFromName("Lama-3-8B");
  ASSERT_FALSE(miss.ok());
  EXPECT_EQ(miss.status().code(), StatusCode::kNotFound);
  EXPECT_NE(miss.status().message().find("did you mean Llama-3-8B"), std::string::npos);
  EXPECT_FALSE(ShapeFromName("").ok());
  EXPECT_FALSE(ShapeFromName(std::string(100'000, 'x')).ok());
}

// The totals that the makers' model cards and weight files give.
TEST(ShapeFromName, ParametersAreThePublishedOnes) {
  struct Known {
    const char* name;
    int64_t parameters;
  };
  constexpr Known kKnown[] = {
      {"Llama-3-8B", 8'030'261'248},
      {"Llama-3.1-70B", 70'553'706'496},
      {"Llama-3.1-405B", 405'853'388'800},
      {"Llama-3.2-1B", 1'235'814'400},
      {"Llama-2-7B", 6'738'415'616},
      {"Mistral-7B-v0.1", 7'241'732'096},
      {"Mixtral-8x7B", 46'702'792'704},
      {"Qwen2.5-0.5B", 494'032'768},
      {"Qwen2.5-7B", 7'615'616'512},
      {"Qwen3-8B", 8'190'735'360},
      {"Qwen3-30B-A3B", 30'532'122'624},
      {"Gemma-2-9B", 9'241'705'984},
      {"Gemma-3-1B", 999'885'952},
      {"Gemma-3-27B", 27'009'346'304},
      {"Phi-4", 14'659'507'200},
      {"Phi-3.5-mini", 3'821'079'552},
      {"SmolLM2-135M", 134'515'008},
      {"TinyLlama-1.1B", 1'100'048'384},
      {"DeepSeek-V2-Lite", 15'706'484'224},
      {"gpt-oss-20b", 20'914'757'184},
      {"GPT-2", 124'439'808},
      {"Pythia-160M", 162'322'944},
  };
  for (const Known& known : kKnown) {
    EXPECT_EQ(ShapeFromName(known.name)->shape.parameters, known.parameters) << known.name;
  }
}

}  // namespace
}  // namespace shorthand
