// What `shorthand bench model` prints, for people and for programs.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_BENCH_MODEL_REPORT_H_
#define SHORTHAND_TOOLS_BENCH_MODEL_REPORT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "shorthand/status.h"

namespace shorthand {

// One engine at one depth.
struct ModelRow {
  int64_t depth = 0;
  double prefill_tokens_per_s = 0;
  double decode_ms = 0;  // a token
};

struct ModelSeries {
  std::string engine;
  std::string recipe;
  std::string filling = {};
  Status status;  // what went wrong behind the last row
  std::vector<ModelRow> rows = {};
};

struct ModelReport {
  std::string model;  // as given
  std::string model_name;
  int threads = 1;
  int rounds = 0;
  int prompt_tokens = 0;
  int decode_tokens = 0;
  double load = 0;  // before the measurement
  std::vector<ModelSeries> series = {};
};

std::string ModelTable(const ModelReport& report);
// The fields that programs may rely on come first in each object.
nlohmann::ordered_json ModelJson(const ModelReport& report);
std::string ModelCsv(const ModelReport& report);
std::string ModelSvg(const ModelReport& report);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_BENCH_MODEL_REPORT_H_
