// What `shorthand bench attention` prints, for people and for programs.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_BENCH_ATTENTION_REPORT_H_
#define SHORTHAND_TOOLS_BENCH_ATTENTION_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench_attention_lanes.h"

namespace shorthand {

struct AttentionRow {
  std::string recipe;  // as given
  Status status;       // why it could not be measured; then nothing below is set
  std::string k_path, v_path;
  uint64_t bytes_per_layer = 0;  // codes and metadata
  int layers = 0;
  double seconds = 0;  // of one layer
  double spread = 0;   // between the quartiles, of the median
  double rel_error = 0;
  PeerType peer = PeerType::kF16;
  std::optional<double> peer_seconds;  // none if ggml has no such attention
};

struct AttentionReport {
  AttentionCase what;
  int threads = 1;
  int rounds = 0;
  double load = 0;  // before the measurement
  double stream_gb_s = 0;
  double hertz = 0;
  std::string target;  // the instruction set of our kernels
  std::vector<AttentionRow> rows = {};

  double Nanoseconds(double seconds) const {  // per token, KV head and query
    return seconds * 1e9 / static_cast<double>(what.length) / what.kv_heads / what.queries;
  }
};

std::string AttentionTable(const AttentionReport& report);
// The fields that programs may rely on come first in each object.
nlohmann::ordered_json AttentionJson(const AttentionReport& report);
std::string AttentionCsv(const AttentionReport& report);
std::string AttentionSvg(const AttentionReport& report);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_BENCH_ATTENTION_REPORT_H_
