// Charts of measured results, from the JSON that the measuring commands write.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_RESULT_CHARTS_H_
#define SHORTHAND_TOOLS_RESULT_CHARTS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shorthand/status.h"

namespace shorthand {

// KL over bits of all rows of `eval --json`, with the line that no other row beats. A report is an
// object, or a list of them, one for each context. Rows that lost nothing or failed have no place.
// Errors: kInvalidArgument for other JSON.
Result<std::string> KlChart(const std::vector<nlohmann::ordered_json>& reports);

// Milliseconds a token over context of all rows of `bench model --json`. Errors: likewise.
Result<std::string> SpeedChart(const std::vector<nlohmann::ordered_json>& reports);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_RESULT_CHARTS_H_
