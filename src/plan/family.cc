#include "plan/family.h"

namespace shorthand {
namespace {

constexpr WeightRule kLlama = {.feed_forward = FeedForward::kGated};
constexpr WeightRule kMixtral = {.feed_forward = FeedForward::kExperts};
constexpr WeightRule kQwen2 = {.feed_forward = FeedForward::kGated, .qkv_bias = true};
constexpr WeightRule kQwen3 = {.feed_forward = FeedForward::kGated, .head_norms = true};
constexpr WeightRule kQwen3Moe = {.feed_forward = FeedForward::kExperts, .head_norms = true};
constexpr WeightRule kGemma = {.feed_forward = FeedForward::kGated, .tied = true};
constexpr WeightRule kGemma2 = {.feed_forward = FeedForward::kGated, .norms = 4, .tied = true};
constexpr WeightRule kGemma3 = {
    .feed_forward = FeedForward::kGated, .norms = 4, .head_norms = true, .tied = true};
constexpr WeightRule kGpt2 = {.feed_forward = FeedForward::kPlain,
                              .qkv_bias = true,
                              .output_bias = true,
                              .norm_bias = true,
                              .positions = true,
                              .tied = true};
constexpr WeightRule kNeoX = {
    .feed_forward = FeedForward::kPlain, .qkv_bias = true, .output_bias = true, .norm_bias = true};
constexpr WeightRule kDeepSeek = {.feed_forward = FeedForward::kDeepSeek};
constexpr WeightRule kGptOss = {
    .feed_forward = FeedForward::kGptOss, .qkv_bias = true, .output_bias = true, .sinks = true};

constexpr HeadRule kGrouped = HeadRule::kGrouped;

constexpr ModelFamily kFamilies[] = {
    {"deepseek_v2", HeadRule::kLatent, WindowRule::kNone, kDeepSeek, {}},
    {"deepseek_v3", HeadRule::kLatent, WindowRule::kNone, kDeepSeek, {}},
    {"deepseek_v32", HeadRule::kLatent, WindowRule::kNone, {}, {}},
    {"deepseek_v4",
     kGrouped,
     WindowRule::kNone,
     {},
     "its layers keep one compressed entry for each 4 or 128 tokens beside a window, for which "
     "there "
     "is no rule"},
    {"falcon", HeadRule::kMultiQuery, WindowRule::kNone, {}, {}},
    {"gemma", kGrouped, WindowRule::kNone, kGemma, {}},
    {"gemma2", kGrouped, WindowRule::kAlternating, kGemma2, {}},
    {"gemma3", kGrouped, WindowRule::kPattern, kGemma3, {}},
    {"gemma3_text", kGrouped, WindowRule::kPattern, kGemma3, {}},
    {"gemma4", HeadRule::kGlobalOwn, WindowRule::kListed, {}, {}},
    {"gemma4_text", HeadRule::kGlobalOwn, WindowRule::kListed, {}, {}},
    {"glm_moe_dsa", HeadRule::kLatent, WindowRule::kNone, {}, {}},
    {"gpt2", kGrouped, WindowRule::kNone, kGpt2, {}},
    {"gpt_bigcode", HeadRule::kMultiQuery, WindowRule::kNone, {}, {}},
    {"gpt_neox", kGrouped, WindowRule::kNone, kNeoX, {}},
    {"gpt_oss", kGrouped, WindowRule::kAlternating, kGptOss, {}},
    {"kimi_k2", HeadRule::kLatent, WindowRule::kNone, kDeepSeek, {}},
    {"llama", kGrouped, WindowRule::kNone, kLlama, {}},
    {"llama4", kGrouped, WindowRule::kChunked, {}, {}},
    {"llama4_text", kGrouped, WindowRule::kChunked, {}, {}},
    {"mimo", kGrouped, WindowRule::kOptIn, {}, {}},
    {"mimo_v2_flash", HeadRule::kWindowOwn, WindowRule::kHybridList, {}, {}},
    {"minimax_m2", kGrouped, WindowRule::kNone, {}, {}},
    {"mistral", kGrouped, WindowRule::kEverywhere, kLlama, {}},
    {"mixtral", kGrouped, WindowRule::kEverywhere, kMixtral, {}},
    {"nemotron_h", kGrouped, WindowRule::kMambaPattern, {}, {}},
    {"phi3", kGrouped, WindowRule::kEverywhere, kLlama, {}},
    {"qwen2", kGrouped, WindowRule::kOptIn, kQwen2, {}},
    {"qwen3", kGrouped, WindowRule::kOptIn, kQwen3, {}},
    {"qwen3_5", kGrouped, WindowRule::kLinearInterval, {}, {}},
    {"qwen3_5_moe", kGrouped, WindowRule::kLinearInterval, {}, {}},
    {"qwen3_moe", kGrouped, WindowRule::kOptIn, kQwen3Moe, {}},
    {"qwen3_next", kGrouped, WindowRule::kLinearInterval, {}, {}},
    {"qwen3_vl", kGrouped, WindowRule::kNone, kQwen3, {}},
    {"qwen3_vl_moe", kGrouped, WindowRule::kNone, kQwen3Moe, {}},
    {"step3p7", kGrouped, WindowRule::kListed, {}, {}},
};

}  // namespace

std::span<const ModelFamily> ModelFamilies() { return kFamilies; }

const ModelFamily* FindFamily(std::string_view model_type) {
  for (const ModelFamily& row : kFamilies) {
    if (row.model_type == model_type) return &row;
  }
  return nullptr;
}

std::string SupportedFamilies() {
  std::string names;
  for (const ModelFamily& row : kFamilies) {
    if (!row.refusal.empty()) continue;
    if (!names.empty()) names += ", ";
    names += row.model_type;
  }
  return names;
}

}  // namespace shorthand
