// What `shorthand run` says about a generation: speed, the cache in bytes, the recipe in words.
// Thread-safety: pure functions, but for printing.
#ifndef SHORTHAND_TOOLS_RUN_REPORT_H_
#define SHORTHAND_TOOLS_RUN_REPORT_H_

#include <nlohmann/json.hpp>

#include "model/generate.h"
#include "shorthand/cache.h"

namespace shorthand {

// To stderr, so that stdout holds the text alone.
void PrintRunReport(const Generation& generation, const Cache& cache);
void PrintCacheReport(const Cache& cache);

nlohmann::ordered_json RunJson(const Generation& generation, const Cache& cache);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_RUN_REPORT_H_
