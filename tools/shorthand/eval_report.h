// What `shorthand eval` prints, for people and for programs.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_EVAL_REPORT_H_
#define SHORTHAND_TOOLS_EVAL_REPORT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "eval/evaluate.h"
#include "model/model.h"

namespace shorthand {

// What was measured, and on what.
struct EvalReport {
  std::string model;       // as given
  std::string model_name;  // as the file says
  std::string text_name;
  Precision weights = Precision::kF32;
  int64_t context_tokens = 0;
  int64_t windows = 0;
  std::vector<std::string> recipes;  // as given
  Evaluation evaluation;
};

std::string EvalTable(const EvalReport& report);

// The fields are fixed: docs/evaluation.md.
nlohmann::ordered_json EvalJson(const EvalReport& report);

// A line of titles, then one for each recipe: the rows of EvalJson.
std::string EvalCsv(const EvalReport& report);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_EVAL_REPORT_H_
