// What `shorthand eval` prints, for people and for programs.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_EVAL_REPORT_H_
#define SHORTHAND_TOOLS_EVAL_REPORT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "eval/evaluate.h"
#include "eval/layers.h"
#include "eval/needle.h"
#include "eval/scoring.h"
#include "model/weights.h"
#include "shorthand/shape.h"

namespace shorthand {

// Windows of one length.
struct ContextReport {
  int64_t tokens = 0;  // of a window
  std::vector<TextPassages> texts;
  Evaluation evaluation = {};

  // Empty if they were not asked for; rows [contenders].
  std::vector<NeedlePassage> needles = {};
  std::vector<NeedleResult> needle_rows = {};
  std::vector<Passage> greedy = {};
  std::vector<std::vector<int64_t>> greedy_rows = {};
  int64_t captured_tokens = 0;  // that layers were diagnosed on; 0: they were not
  std::vector<std::vector<LayerScore>> layer_rows = {};  // [contenders][layers]

  int64_t windows() const;  // of all texts
  int64_t first_scored() const { return texts.front().passages.front().first_scored; }
};

// What was measured, and on what.
struct EvalReport {
  std::string model;  // as given
  Shape shape = {};
  int threads = 0;
  Precision weights = Precision::kF32;
  Protocol protocol = Protocol::kStreaming;
  std::vector<std::string> rows;  // names of the contenders, as given
  std::vector<ContextReport> contexts = {};

  bool any_row() const;  // whether there are figures
};

// "f32", "native"; "streaming", "paper".
std::string_view WeightsName(Precision weights);
std::string_view ProtocolName(Protocol protocol);

// A table for each context.
std::string EvalTable(const EvalReport& report);
std::string EvalMarkdown(const EvalReport& report);

// KL over bits, a dot for each row of the first context that has figures.
std::string EvalSvg(const EvalReport& report);

// An object, or an array with one for each of several contexts. The fields are fixed:
// docs/evaluation.md.
nlohmann::ordered_json EvalJson(const EvalReport& report);

// A line of titles, then one for each recipe and context: the rows of EvalJson.
std::string EvalCsv(const EvalReport& report);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_EVAL_REPORT_H_
