#include "bench_attention_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "chart.h"
#include "plan/units.h"
#include "result_files.h"
#include "terminal.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

double GbPerSecond(const AttentionRow& row) {
  return static_cast<double>(row.bytes_per_layer) / row.seconds / 1e9;
}

std::string Count(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string CaseLine(const AttentionReport& report) {
  const AttentionCase& what = report.what;
  const std::string queries =
      what.queries == 1 ? "" : fmt::format(", {} queries at once", what.queries);
  return fmt::format("head dim {}, {} a KV head, {}, {} tokens{}, {}", what.dim,
                     Count(what.rows, "row"), Count(what.kv_heads, "KV head"),
                     FormatTokens(what.length), queries, Count(report.threads, "thread"));
}

std::vector<Cell> Cells(const AttentionReport& report, const AttentionRow& row) {
  const double ns = report.Nanoseconds(row.seconds);
  const bool peer = row.peer_seconds.has_value();
  return {{row.recipe},
          {row.k_path == row.v_path ? row.k_path : row.k_path + "/" + row.v_path},
          {FormatSize(row.bytes_per_layer * row.layers)},
          {fmt::format("{:.3f}", row.seconds * 1e3)},
          {fmt::format("{:.2f}", ns), Style::kStrong},
          {fmt::format("{:.1f}", ns * report.hertz * 1e-9)},
          {fmt::format("{:.1f} %", row.spread * 100)},
          {fmt::format("{:.2f}", GbPerSecond(row))},
          {fmt::format("{:.0f} %", GbPerSecond(row) / report.stream_gb_s * 100)},
          {fmt::format("{:.1e}", row.rel_error)},
          {NameOf(row.peer)},
          {peer ? fmt::format("{:.2f}", report.Nanoseconds(*row.peer_seconds)) : "-"},
          {peer ? fmt::format("{:.1f}x", *row.peer_seconds / row.seconds) : "-"}};
}

Json RowJson(const AttentionReport& report, const AttentionRow& row) {
  const bool ok = row.status.ok();
  const auto known = [](bool is, auto value) { return is ? Json(value()) : Json(); };
  const bool peer = ok && row.peer_seconds.has_value();
  const double ns = ok ? report.Nanoseconds(row.seconds) : 0;
  return {{"recipe", row.recipe},
          {"d", report.what.dim},
          {"rows", report.what.rows},
          {"kv_heads", report.what.kv_heads},
          {"length", report.what.length},
          {"threads", report.threads},
          {"ns_per_token_head", known(ok, [&] { return ns; })},
          {"gb_s", known(ok, [&] { return GbPerSecond(row); })},
          {"stream_fraction", known(ok, [&] { return GbPerSecond(row) / report.stream_gb_s; })},
          {"peer", known(ok, [&] { return NameOf(row.peer); })},
          {"peer_ns_per_token_head",
           known(peer, [&] { return report.Nanoseconds(*row.peer_seconds); })},
          {"ratio", known(peer, [&] { return *row.peer_seconds / row.seconds; })},
          {"rel_error", known(ok, [&] { return row.rel_error; })},
          {"queries", report.what.queries},
          {"cycles_per_token_head", known(ok, [&] { return ns * report.hertz * 1e-9; })},
          {"spread", known(ok, [&] { return row.spread; })},
          {"bytes", known(ok, [&] { return row.bytes_per_layer * row.layers; })},
          {"layers", known(ok, [&] { return row.layers; })},
          {"k_path", known(ok, [&] { return row.k_path; })},
          {"v_path", known(ok, [&] { return row.v_path; })},
          {"error", known(!ok, [&] { return row.status.message(); })}};
}

std::string Header(const AttentionReport& report) {
  return fmt::format(
      "{}\nstreaming read {:.2f} GB/s, {:.2f} GHz, kernels for {}, load average {:.1f} before; "
      "medians of {}, {}\n\n",
      Styled(Style::kStrong, CaseLine(report)), report.stream_gb_s, report.hertz * 1e-9,
      report.target, report.load, Count(report.rounds, "round"),
      report.threads == 1 ? "processor time" : "time on the wall");
}

constexpr const char* kFooter =
    "\nns, cycles and the peer's ns are per token and KV head (and query), K and V together; bytes "
    "are codes and\nmetadata of all layers in rotation, of which fewer than 600 MiB may stay in "
    "the cache "
    "of this CPU.\npath: integer reads codes as they are, generic expands them first, unsealed "
    "does so "
    "without kernels,\nexact reads f16; K/V where they differ. spread: between the quartiles. "
    "error: "
    "relative, against\ndouble precision over the same pages. peer: ggml's flash attention with "
    "that "
    "cache type.\n";

}  // namespace

std::string AttentionTable(const AttentionReport& report) {
  Table table;
  table.AddColumn("recipe", Table::Align::kLeft);
  table.AddColumn("path", Table::Align::kLeft);
  for (const char* title : {"bytes", "ms a layer", "ns", "cycles", "spread", "GB/s", "of stream",
                            "error", "peer", "peer ns", "ratio"}) {
    table.AddColumn(title, Table::Align::kRight);
  }
  std::string failed;
  for (const AttentionRow& row : report.rows) {
    if (row.status.ok()) {
      table.AddRow(Cells(report, row));
    } else {
      failed += fmt::format("{} failed: {}\n", row.recipe, row.status.message());
    }
  }
  return Header(report) + table.ToString() + kFooter + failed;
}

nlohmann::ordered_json AttentionJson(const AttentionReport& report) {
  Json rows = Json::array();
  for (const AttentionRow& row : report.rows) rows.push_back(RowJson(report, row));
  return {{"stream_read_gb_s", report.stream_gb_s},
          {"rows", std::move(rows)},
          {"ghz", report.hertz * 1e-9},
          {"target", report.target},
          {"rounds", report.rounds},
          {"load_average", report.load}};
}

std::string AttentionCsv(const AttentionReport& report) {
  return CsvOf(AttentionJson(report).at("rows"));
}

std::string AttentionSvg(const AttentionReport& report) {
  std::vector<Bar> bars;
  for (const AttentionRow& row : report.rows) {
    if (!row.status.ok()) continue;
    bars.push_back({row.recipe, report.Nanoseconds(row.seconds)});
    if (row.peer_seconds) {
      bars.push_back(
          {fmt::format("ggml {}", NameOf(row.peer)), report.Nanoseconds(*row.peer_seconds)});
    }
  }
  return BarChart("Attention: ns per token and KV head (log scale)", CaseLine(report), bars);
}

}  // namespace shorthand
