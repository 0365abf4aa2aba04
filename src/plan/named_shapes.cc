// Well-known models by name. A row holds what their config.json says (published by their makers);
// the shape follows by the same rules as for a file.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "shorthand/plan.h"

namespace shorthand {
namespace {

struct NamedModel {
  std::string_view name;
  std::string_view type;
  int context;
  int vocabulary;
  int hidden;
  int intermediate;
  int layers;
  int heads;
  int kv_heads;
  int head_dim;
  std::string_view more;  // further members of the object
};

constexpr std::string_view kTied = R"(,"tie_word_embeddings":true)";
constexpr std::string_view kWindow512 = R"(,"sliding_window":512)";
constexpr std::string_view kWindow1024 = R"(,"sliding_window":1024)";
constexpr std::string_view kWindow4096 = R"(,"sliding_window":4096)";
constexpr std::string_view kDeepSeekV3 =
    R"(,"kv_lora_rank":512,"q_lora_rank":1536,"qk_nope_head_dim":128,"qk_rope_head_dim":64,)"
    R"("v_head_dim":128,"first_k_dense_replace":3,"n_routed_experts":256,"n_shared_experts":1,)"
    R"("moe_intermediate_size":2048,"topk_method":"noaux_tc")";
constexpr std::string_view kKimiK2 =
    R"(,"kv_lora_rank":512,"q_lora_rank":1536,"qk_nope_head_dim":128,"qk_rope_head_dim":64,)"
    R"("v_head_dim":128,"first_k_dense_replace":1,"n_routed_experts":384,"n_shared_experts":1,)"
    R"("moe_intermediate_size":2048,"topk_method":"noaux_tc")";
constexpr std::string_view kDeepSeekV2Lite =
    R"(,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,)"
    R"("first_k_dense_replace":1,"n_routed_experts":64,"n_shared_experts":2,)"
    R"("moe_intermediate_size":1408,"topk_method":"greedy")";

// clang-format off
constexpr NamedModel kModels[] = {
    // name               type        context  vocab   hidden  ffn   layers heads kv  dim
    {"Llama-3-8B",        "llama",       8192, 128256,  4096, 14336,  32,  32,   8, 128, ""},
    {"Llama-3-70B",       "llama",       8192, 128256,  8192, 28672,  80,  64,   8, 128, ""},
    {"Llama-3.1-8B",      "llama",     131072, 128256,  4096, 14336,  32,  32,   8, 128, ""},
    {"Llama-3.1-70B",     "llama",     131072, 128256,  8192, 28672,  80,  64,   8, 128, ""},
    {"Llama-3.1-405B",    "llama",     131072, 128256, 16384, 53248, 126, 128,   8, 128, ""},
    {"Llama-3.2-1B",      "llama",     131072, 128256,  2048,  8192,  16,  32,   8,  64, kTied},
    {"Llama-3.2-3B",      "llama",     131072, 128256,  3072,  8192,  28,  24,   8, 128, kTied},
    {"Llama-3.3-70B",     "llama",     131072, 128256,  8192, 28672,  80,  64,   8, 128, ""},
    {"Llama-2-7B",        "llama",       4096,  32000,  4096, 11008,  32,  32,  32, 128, ""},
    {"Llama-2-13B",       "llama",       4096,  32000,  5120, 13824,  40,  40,  40, 128, ""},
    {"Llama-2-70B",       "llama",       4096,  32000,  8192, 28672,  80,  64,   8, 128, ""},
    {"TinyLlama-1.1B",    "llama",       2048,  32000,  2048,  5632,  22,  32,   4,  64, ""},
    {"SmolLM2-135M",      "llama",       8192,  49152,   576,  1536,  30,   9,   3,  64, kTied},
    {"SmolLM2-360M",      "llama",       8192,  49152,   960,  2560,  32,  15,   5,  64, kTied},
    {"SmolLM2-1.7B",      "llama",       8192,  49152,  2048,  8192,  24,  32,  32,  64, kTied},
    {"Mistral-7B-v0.1",   "mistral",    32768,  32000,  4096, 14336,  32,  32,   8, 128, kWindow4096},
    {"Mistral-7B-v0.3",   "mistral",    32768,  32768,  4096, 14336,  32,  32,   8, 128, ""},
    {"Mixtral-8x7B",      "mixtral",    32768,  32000,  4096, 14336,  32,  32,   8, 128, R"(,"num_local_experts":8)"},
    {"Mixtral-8x22B",     "mixtral",    65536,  32000,  6144, 16384,  56,  48,   8, 128, R"(,"num_local_experts":8)"},
    {"Qwen2.5-0.5B",      "qwen2",      32768, 151936,   896,  4864,  24,  14,   2,  64, kTied},
    {"Qwen2.5-1.5B",      "qwen2",      32768, 151936,  1536,  8960,  28,  12,   2, 128, kTied},
    {"Qwen2.5-3B",        "qwen2",      32768, 151936,  2048, 11008,  36,  16,   2, 128, kTied},
    {"Qwen2.5-7B",        "qwen2",     131072, 152064,  3584, 18944,  28,  28,   4, 128, ""},
    {"Qwen2.5-14B",       "qwen2",     131072, 152064,  5120, 13824,  48,  40,   8, 128, ""},
    {"Qwen2.5-32B",       "qwen2",     131072, 152064,  5120, 27648,  64,  40,   8, 128, ""},
    {"Qwen2.5-72B",       "qwen2",     131072, 152064,  8192, 29568,  80,  64,   8, 128, ""},
    {"Qwen3-0.6B",        "qwen3",      40960, 151936,  1024,  3072,  28,  16,   8, 128, kTied},
    {"Qwen3-1.7B",        "qwen3",      40960, 151936,  2048,  6144,  28,  16,   8, 128, kTied},
    {"Qwen3-4B",          "qwen3",      40960, 151936,  2560,  9728,  36,  32,   8, 128, kTied},
    {"Qwen3-8B",          "qwen3",      40960, 151936,  4096, 12288,  36,  32,   8, 128, ""},
    {"Qwen3-14B",         "qwen3",      40960, 151936,  5120, 17408,  40,  40,   8, 128, ""},
    {"Qwen3-32B",         "qwen3",      40960, 151936,  5120, 25600,  64,  64,   8, 128, ""},
    {"Qwen3-30B-A3B",     "qwen3_moe",  40960, 151936,  2048,  6144,  48,  32,   4, 128, R"(,"num_experts":128,"moe_intermediate_size":768)"},
    {"Qwen3-235B-A22B",   "qwen3_moe",  40960, 151936,  4096, 12288,  94,  64,   4, 128, R"(,"num_experts":128,"moe_intermediate_size":1536)"},
    {"Gemma-2-2B",        "gemma2",      8192, 256000,  2304,  9216,  26,   8,   4, 256, kWindow4096},
    {"Gemma-2-9B",        "gemma2",      8192, 256000,  3584, 14336,  42,  16,   8, 256, kWindow4096},
    {"Gemma-2-27B",       "gemma2",      8192, 256000,  4608, 36864,  46,  32,  16, 128, kWindow4096},
    {"Gemma-3-270M",      "gemma3_text", 32768, 262144,  640,  2048,  18,   4,   1, 256, kWindow512},
    {"Gemma-3-1B",        "gemma3_text", 32768, 262144, 1152,  6912,  26,   4,   1, 256, kWindow512},
    {"Gemma-3-4B",        "gemma3_text", 131072, 262208, 2560, 10240, 34,   8,   4, 256, kWindow1024},
    {"Gemma-3-12B",       "gemma3_text", 131072, 262208, 3840, 15360, 48,  16,   8, 256, kWindow1024},
    {"Gemma-3-27B",       "gemma3_text", 131072, 262208, 5376, 21504, 62,  32,  16, 128, kWindow1024},
    {"Phi-3.5-mini",      "phi3",      131072,  32064,  3072,  8192,  32,  32,  32,  96, ""},
    {"Phi-4",             "phi3",       16384, 100352,  5120, 17920,  40,  40,  10, 128, ""},
    {"Phi-4-mini",        "phi3",      131072, 200064,  3072,  8192,  32,  24,   8, 128, kTied},
    {"DeepSeek-V2-Lite",  "deepseek_v2", 163840, 102400, 2048, 10944, 27,  16,  16, 128, kDeepSeekV2Lite},
    {"DeepSeek-V3",       "deepseek_v3", 163840, 129280, 7168, 18432, 61, 128, 128, 128, kDeepSeekV3},
    {"DeepSeek-R1",       "deepseek_v3", 163840, 129280, 7168, 18432, 61, 128, 128, 128, kDeepSeekV3},
    {"Kimi-K2",           "kimi_k2",   131072, 163840,  7168, 18432,  61,  64,  64, 128, kKimiK2},
    {"gpt-oss-20b",       "gpt_oss",   131072, 201088,  2880,  2880,  24,  64,   8,  64, R"(,"sliding_window":128,"num_local_experts":32)"},
    {"gpt-oss-120b",      "gpt_oss",   131072, 201088,  2880,  2880,  36,  64,   8,  64, R"(,"sliding_window":128,"num_local_experts":128)"},
    {"GPT-2",             "gpt2",        1024,  50257,   768,  3072,  12,  12,  12,  64, ""},
    {"Pythia-160M",       "gpt_neox",    2048,  50304,   768,  3072,  12,  12,  12,  64, ""},
};
// clang-format on

struct Alias {
  std::string_view alias;  // as Plain() leaves it
  std::string_view name;
};
constexpr Alias kAliases[] = {
    {"smollm2", "SmolLM2-135M"}, {"qwen", "Qwen2.5-0.5B"},         {"qwen15", "Qwen2.5-1.5B"},
    {"gemma", "Gemma-3-270M"},   {"mistral7b", "Mistral-7B-v0.3"}, {"tinyllama", "TinyLlama-1.1B"},
};

// Lower case, without an organisation, separators and the suffixes of fine-tunes.
std::string Plain(std::string_view name) {
  name = name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  std::string plain;
  for (char c : name) {
    if (c == '-' || c == '_' || c == ' ') continue;
    plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  if (plain.starts_with("metallama")) plain.erase(0, 4);
  for (std::string_view suffix : {"v1.0", "chat", "instruct", "base", "it", "hf"}) {
    if (plain.size() > suffix.size() && plain.ends_with(suffix)) {
      plain.erase(plain.size() - suffix.size());
    }
  }
  return plain;
}

// Levenshtein's distance.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string NearestNames(std::string_view plain) {
  std::vector<std::pair<size_t, std::string_view>> ranked;
  for (const NamedModel& model : kModels) {
    ranked.emplace_back(Distance(plain, Plain(model.name)), model.name);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return fmt::format("{}, {} or {}", ranked[0].second, ranked[1].second, ranked[2].second);
}

std::string ConfigText(const NamedModel& m) {
  return fmt::format(
      R"({{"model_type":"{}","max_position_embeddings":{},"vocab_size":{},"hidden_size":{},)"
      R"("intermediate_size":{},"num_hidden_layers":{},"num_attention_heads":{},)"
      R"("num_key_value_heads":{},"head_dim":{}{}}})",
      m.type, m.context, m.vocabulary, m.hidden, m.intermediate, m.layers, m.heads, m.kv_heads,
      m.head_dim, m.more);
}

}  // namespace

Result<ModelShape> ShapeFromName(std::string_view name) {
  constexpr size_t kLongestName = 100;
  std::string plain = Plain(name.substr(0, kLongestName));
  for (const Alias& alias : kAliases) {
    if (plain == alias.alias) plain = Plain(alias.name);
  }
  for (const NamedModel& model : kModels) {
    if (plain == Plain(model.name)) return ShapeFromConfig(ConfigText(model), model.name);
  }
  return NotFound(
      fmt::format("no model is known as \"{:.60}\"; did you mean {}?", name, NearestNames(plain)));
}

std::vector<std::string_view> KnownShapes() {
  std::vector<std::string_view> names;
  for (const NamedModel& model : kModels) names.push_back(model.name);
  return names;
}

}  // namespace shorthand
