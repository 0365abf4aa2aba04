#include "run_report.h"

#include <fmt/format.h>

#include <cstdio>

#include "plan/units.h"
#include "shorthand/attention.h"

namespace shorthand {
namespace {

const char* StopWords(StopReason stop) {
  switch (stop) {
    case StopReason::kEndOfText:
      return "the model ended the text";
    case StopReason::kMaxTokens:
      return "-n reached";
    case StopReason::kContextFull:
      return "the context is full; raise -c for more";
    case StopReason::kCaller:
      return "interrupted";
  }
  return "";
}

// Recipes that were chosen layer by layer would fill a screen.
constexpr size_t kDescribedOverrides = 3;

std::string Words(Recipe recipe) {
  const size_t overrides = recipe.overrides.size();
  if (overrides <= kDescribedOverrides) return Describe(recipe);
  recipe.overrides.clear();
  return fmt::format("{} Other layers have {} other formats, as the recipe says.", Describe(recipe),
                     overrides);
}

}  // namespace

void PrintCacheReport(const Cache& cache) {
  const CacheStats stats = cache.Stats();
  fmt::print(stderr, "cache      {}\n           {}\n", cache.recipe().ToString(),
             Words(cache.recipe()));
  fmt::print(stderr,
             "           {} tokens: codes {}, stored {}, allocated {}; f16 would store {}\n",
             stats.tokens, FormatSize(stats.logical_bytes), FormatSize(stats.stored_bytes),
             FormatSize(stats.allocated_bytes), FormatSize(stats.f16_bytes));
  if (const auto target = ActiveTarget(); target.ok()) {
    fmt::print(stderr, "kernels    {}: {}\n", target->name, target->reason);
  }
}

void PrintRunReport(const Generation& generation, const Cache& cache) {
  fmt::print(stderr, "\nprompt     {} tokens, {:.1f} tokens/s\n", generation.prompt_tokens,
             generation.prompt_tokens_per_second());
  fmt::print(stderr, "generated  {} tokens, {:.1f} tokens/s ({})\n", generation.tokens,
             generation.decode_tokens_per_second(), StopWords(generation.stop));
  PrintCacheReport(cache);
}

nlohmann::ordered_json RunJson(const Generation& generation, const Cache& cache) {
  const CacheStats stats = cache.Stats();
  return {{"text", generation.text},
          {"prompt_tokens", generation.prompt_tokens},
          {"tokens", generation.tokens},
          {"prefill_tokens_per_s", generation.prompt_tokens_per_second()},
          {"decode_tokens_per_s", generation.decode_tokens_per_second()},
          {"cache",
           {{"recipe", cache.recipe().ToString()},
            {"logical_bytes", stats.logical_bytes},
            {"stored_bytes", stats.stored_bytes},
            {"allocated_bytes", stats.allocated_bytes}}}};
}

}  // namespace shorthand
