// `shorthand plan`: the size of a cache, on the command line.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "model_shape.h"
#include "plan_report.h"
#include "plan_request.h"
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
  PlanOptions plan;
  bool json = false;
};

int RunPlan(const Options& options) {
  const auto model = ShapeFromArgument(options.plan.model);
  if (!model.ok()) return Fail(model.status());
  const auto request = RequestOf(options.plan, *model);
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
  AddPlanOptions(app, options->plan);
  app.add_flag("--json", options->json, "The same for programs");
  return [options] { return RunPlan(*options); };
}

}  // namespace shorthand
