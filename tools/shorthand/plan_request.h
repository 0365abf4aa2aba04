// What a plan is made for, as the command line says it.
// Thread-safety: one thread.
#ifndef SHORTHAND_TOOLS_PLAN_REQUEST_H_
#define SHORTHAND_TOOLS_PLAN_REQUEST_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "shorthand/plan.h"
#include "shorthand/status.h"

namespace shorthand {

struct PlanOptions {
  std::string model;
  std::string context;
  std::string memory;
  int64_t users = 1;
  double weight_bits = 4.5;
  std::vector<std::string> recipes;
};
void AddPlanOptions(CLI::App& app, PlanOptions& options);

// Errors: those of ParseTokens and ParseSize.
Result<PlanRequest> RequestOf(const PlanOptions& options, const ModelShape& model);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_PLAN_REQUEST_H_
