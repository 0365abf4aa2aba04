#include "plan_request.h"

#include <algorithm>

#include "plan/units.h"

namespace shorthand {
namespace {

// What is asked for if no context is given and the model does not say what it was made for.
constexpr int64_t kDefaultContextTokens = 8192;

}  // namespace

void AddPlanOptions(CLI::App& app, PlanOptions& options) {
  app.add_option("MODEL", options.model, "A name, a config.json or its folder, or a GGUF file")
      ->required();
  app.add_option("-c,--context", options.context,
                 "Tokens of each user; default: what the model was made for")
      ->type_name("N");
  app.add_option("--users", options.users, "Conversations held at once; default 1")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, kMaxPlanUsers).description(""));
  app.add_option("--memory", options.memory, "What weights and cache must fit into, e.g. 24GB")
      ->type_name("SIZE");
  app.add_option("--kv", options.recipes,
                 "A recipe; repeat it for several. Default: a selection from f16 to 2bit")
      ->type_name("R")
      ->allow_extra_args(false);
  app.add_option("--weight-bits", options.weight_bits,
                 "Bits of a weight, if the model is no file that says; default 4.5")
      ->type_name("X")
      ->check(CLI::Range(0.1, 64.0).description(""));
}

Result<PlanRequest> RequestOf(const PlanOptions& options, const ModelShape& model) {
  PlanRequest request;
  request.users = options.users;
  request.weight_bits = options.weight_bits;
  request.recipes = options.recipes;
  request.context_tokens = model.shape.max_context_tokens > 0
                               ? std::min(model.shape.max_context_tokens, kMaxPlanTokens)
                               : kDefaultContextTokens;
  if (!options.context.empty()) {
    const auto tokens = ParseTokens(options.context, kMaxPlanTokens);
    if (!tokens.ok()) return tokens.status();
    request.context_tokens = *tokens;
  }
  if (!options.memory.empty()) {
    const auto bytes = ParseSize(options.memory);
    if (!bytes.ok()) return bytes.status();
    request.memory_bytes = *bytes;
  }
  return request;
}

}  // namespace shorthand
