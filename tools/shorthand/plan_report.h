// What `shorthand plan` prints, for people and for programs.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_PLAN_REPORT_H_
#define SHORTHAND_TOOLS_PLAN_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "shorthand/plan.h"

namespace shorthand {

std::string PlanText(const ModelShape& model, const PlanRequest& request, const Plan& plan);

// The fields are fixed: docs/plan.md.
nlohmann::ordered_json PlanJson(const ModelShape& model, const PlanRequest& request,
                                const Plan& plan);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_PLAN_REPORT_H_
