#include "eval_tasks_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

double Mean(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TitledTable NeedleTable(const EvalReport& report, const ContextReport& context) {
  TitledTable result = {
      .title = fmt::format("Needles: log-probability of the right number of five digits, over {} "
                           "text{}, beside the exact cache's; then by depth",
                           context.needles.size(), context.needles.size() == 1 ? "" : "s"),
      .table = {}};
  result.table.AddColumn("recipe", Table::Align::kLeft);
  result.table.AddColumn("mean", Table::Align::kRight);
  result.table.AddColumn("exact", Table::Align::kRight);
  for (const Needle& needle : context.needles.front().needles) {
    result.table.AddColumn(fmt::format("{:.0f} %", 100 * needle.depth), Table::Align::kRight);
  }
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const NeedleResult& row = context.needle_rows[i];
    if (row.depths.empty()) continue;
    std::vector<Cell> cells = {{report.rows[i]},
                               {fmt::format("{:.3f}", row.log_p), Style::kStrong},
                               {fmt::format("{:.3f}", row.log_p_exact)}};
    for (const auto& at : row.depths) cells.push_back({fmt::format("{:.3f}", at.log_p)});
    result.table.AddRow(std::move(cells));
  }
  return result;
}

TitledTable GreedyTable(const EvalReport& report, const ContextReport& context) {
  const Passage& first = context.greedy.front();
  TitledTable result = {
      .title = fmt::format("Greedy agreement: tokens that are the exact cache's, of {} behind {}, "
                           "over {} text{}",
                           first.scored_positions(), first.first_scored + 1, context.greedy.size(),
                           context.greedy.size() == 1 ? "" : "s"),
      .table = {}};
  result.table.AddColumn("recipe", Table::Align::kLeft);
  for (const char* title : {"mean", "least", "most", "to the end"}) {
    result.table.AddColumn(title, Table::Align::kRight);
  }
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const std::vector<int64_t>& row = context.greedy_rows[i];
    if (row.empty()) continue;
    const auto [least, most] = std::minmax_element(row.begin(), row.end());
    const auto whole = std::count(row.begin(), row.end(), first.scored_positions());
    result.table.AddRow({{report.rows[i]},
                         {fmt::format("{:.1f}", Mean(row)), Style::kStrong},
                         {fmt::format("{}", *least)},
                         {fmt::format("{}", *most)},
                         {fmt::format("{} of {}", whole, row.size())}});
  }
  return result;
}

Json NeedleJson(const NeedleResult& result) {
  Json depths = Json::array();
  for (const auto& at : result.depths) {
    depths.push_back({{"depth", at.depth}, {"log_p", at.log_p}, {"log_p_exact", at.log_p_exact}});
  }
  return depths;
}

}  // namespace

std::vector<TitledTable> TaskTables(const EvalReport& report, const ContextReport& context) {
  std::vector<TitledTable> tables;
  if (!context.needles.empty()) tables.push_back(NeedleTable(report, context));
  if (!context.greedy.empty()) tables.push_back(GreedyTable(report, context));
  return tables;
}

void AddTaskFields(const ContextReport& context, size_t row, nlohmann::ordered_json& json) {
  if (!context.needles.empty()) {
    const NeedleResult& result = context.needle_rows[row];
    const bool known = !result.depths.empty();
    json["needle_log_p"] = known ? Json(result.log_p) : Json();
    json["needle_log_p_exact"] = known ? Json(result.log_p_exact) : Json();
    json["needle"] = NeedleJson(result);
  }
  if (!context.greedy.empty()) {
    const std::vector<int64_t>& lengths = context.greedy_rows[row];
    json["greedy_mean"] = lengths.empty() ? Json() : Json(Mean(lengths));
    json["greedy"] = lengths;
  }
}

}  // namespace shorthand
