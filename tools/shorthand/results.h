// Results of measurements, as the measuring commands wrote them, and their charts.
// Thread-safety: ReadResults reads a file; the rest are pure functions.
#ifndef SHORTHAND_TOOLS_RESULTS_H_
#define SHORTHAND_TOOLS_RESULTS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shorthand/status.h"

namespace shorthand {

// What a file of `eval --json` or `bench model --json` holds, one report after another.
struct ResultReports {
  std::vector<nlohmann::ordered_json> kl;     // of eval
  std::vector<nlohmann::ordered_json> speed;  // of bench model
};
// Errors: kNotFound; kDataLoss for what is not JSON; kInvalidArgument for other JSON, naming the
// file.
Result<ResultReports> ReadResults(const std::string& path);

// KL over bits of all rows of `eval`, with the line that no other row beats. Rows that lost
// nothing or failed have no place.
std::string KlChart(const std::vector<nlohmann::ordered_json>& reports);

// Milliseconds a token over context of all rows of `bench model`.
std::string SpeedChart(const std::vector<nlohmann::ordered_json>& reports);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_RESULTS_H_
