// What `shorthand eval --needle --greedy --layers` adds to its report: a table and JSON fields for
// each.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_EVAL_TASKS_REPORT_H_
#define SHORTHAND_TOOLS_EVAL_TASKS_REPORT_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "eval_report.h"
#include "terminal.h"

namespace shorthand {

// A table with a sentence above it.
struct TitledTable {
  std::string title;
  Table table;
};

// Of what was asked for; rows without figures are left out.
std::vector<TitledTable> TaskTables(const EvalReport& report, const ContextReport& context);

// Fields of row `row`: docs/evaluation.md has them. Those of tasks that were not asked for are
// absent, those without figures null.
void AddTaskFields(const ContextReport& context, size_t row, nlohmann::ordered_json& json);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_EVAL_TASKS_REPORT_H_
