// `shorthand plan`: the size of a cache, on the command line.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "model_shape.h"
#include "plan/units.h"
#include "plan_report.h"
#include "terminal.h"

namespace shorthand {
namespace {

constexpr const char* kHelp =
    "What the keys and values of a model take: for each token, for a context and a number of "
    "users,\n"
    "in several recipes side by side; and whether that fits into a memory beside the weights.\n"
    "The sizes are those that the cache itself takes, to the byte.";

constexpr const char* kExamples =
    "\n\nExamples:\n"
    "  shorthand plan Llama-3-8B -c 32k --users 8 --memory 24GB\n"
    "      eight users of a card of 24 GB: which recipes fit, and what is left\n"
    "  shorthand plan Qwen2.5-7B -c 128k --kv f16 --kv kivi4 --kv k=q8_0,v=q4_0\n"
    "      three recipes of your choice\n"
    "  shorthand plan ~/models/some-model/config.json --memory 16GiB --weight-bits 8\n"
    "      a model by its config.json, with weights of 8 bits\n"
    "\n"
    "GB is 10^9 bytes and GiB 2^30. 32k is 32768 tokens. A recipe is a preset or a text such as\n"
    "k=u4/ch,v=u4/tok,sink=4; `shorthand inspect recipe R` says what one stores.";

struct Options {
  std::string model;
  std::string context;
  std::string memory;
  int64_t users = 1;
  double weight_bits = 4.5;
  std::vector<std::string> recipes;
  bool json = false;
};

// What is asked for if no context is given and the model does not say what it was made for.
constexpr int64_t kDefaultContextTokens = 8192;

Result<PlanRequest> RequestOf(const Options& options, const ModelShape& model) {
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

int RunPlan(const Options& options) {
  const auto model = ShapeFromArgument(options.model);
  if (!model.ok()) return Fail(model.status());
  const auto request = RequestOf(options, *model);
  if (!request.ok()) return FailUsage(request.status());
  const auto plan = MakePlan(*model, *request);
  if (!plan.ok()) return FailUsage(plan.status());

  if (options.json) {
    PrintJson(PlanJson(*model, *request, *plan));
  } else {
    fmt::print("{}", PlanText(*model, *request, *plan));
  }
  const bool any = std::any_of(plan->rows.begin(), plan->rows.end(),
                               [](const PlanRow& row) { return row.status.ok(); });
  return any ? kExitDone : Fail(InvalidArgument("none of the recipes fits this model"));
}

}  // namespace

Runner DeclarePlan(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.footer(std::string(kHelp) + kExamples);
  app.add_option("MODEL", options->model, "A name, a config.json or its folder, or a GGUF file")
      ->required();
  app.add_option("-c,--context", options->context,
                 "Tokens of each user; default: what the model was made for")
      ->type_name("N");
  app.add_option("--users", options->users, "Conversations held at once; default 1")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, kMaxPlanUsers).description(""));
  app.add_option("--memory", options->memory, "What weights and cache must fit into, e.g. 24GB")
      ->type_name("SIZE");
  app.add_option("--kv", options->recipes,
                 "A recipe; repeat it for several. Default: a selection from f16 to 2bit")
      ->type_name("R")
      ->allow_extra_args(false);
  app.add_option("--weight-bits", options->weight_bits,
                 "Bits of a weight, if the model is no file that says; default 4.5")
      ->type_name("X")
      ->check(CLI::Range(0.1, 64.0).description(""));
  app.add_flag("--json", options->json, "The same for programs");
  return [options] { return RunPlan(*options); };
}

}  // namespace shorthand
