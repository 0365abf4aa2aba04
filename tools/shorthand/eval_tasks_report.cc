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

// One of the figures of a layer, and which way it is bad.
struct LayerFigure {
  const char* field;
  const char* title;
  double LayerScore::* value;
  double sign;  // the worst layer has the largest value times sign
};
constexpr LayerFigure kLayerFigures[] = {
    {"logit_correlation", "logit correlation", &LayerScore::logit_correlation, -1},
    {"attention_kl", "attention KL", &LayerScore::attention_kl, 1},
    {"k_nsr", "K noise/signal", &LayerScore::k_nsr, 1},
    {"v_nsr", "V noise/signal", &LayerScore::v_nsr, 1}};

// Of the layers that are sealed; the worst is -1 if none is.
struct LayerSummary {
  double mean = 0;
  int worst = -1;
};
LayerSummary Summarize(const std::vector<LayerScore>& layers, const LayerFigure& figure) {
  LayerSummary summary;
  int sealed = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].sealed) continue;
    const double value = layers[i].*figure.value;
    summary.mean += value;
    ++sealed;
    if (summary.worst < 0 ||
        figure.sign * value > figure.sign * (layers[summary.worst].*figure.value)) {
      summary.worst = static_cast<int>(i);
    }
  }
  if (sealed > 0) summary.mean /= sealed;
  return summary;
}

std::string Figure(double value) {
  return value != 0 && value < 1e-3 ? fmt::format("{:.1e}", value) : fmt::format("{:.5f}", value);
}

TitledTable LayerTable(const EvalReport& report, const ContextReport& context) {
  TitledTable result = {
      .title =
          fmt::format("Layers: exact against sealed pages over {} tokens, mean and worst layer",
                      context.captured_tokens),
      .table = {}};
  result.table.AddColumn("recipe", Table::Align::kLeft);
  for (const LayerFigure& figure : kLayerFigures) {
    result.table.AddColumn(figure.title, Table::Align::kRight);
    result.table.AddColumn("worst", Table::Align::kRight);
  }
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const std::vector<LayerScore>& layers = context.layer_rows[i];
    std::vector<Cell> cells = {{report.rows[i]}};
    for (const LayerFigure& figure : kLayerFigures) {
      const LayerSummary summary = Summarize(layers, figure);
      if (summary.worst < 0) break;
      cells.push_back({Figure(summary.mean)});
      cells.push_back({fmt::format("{} in layer {}", Figure(layers[summary.worst].*figure.value),
                                   summary.worst)});
    }
    if (cells.size() > 1) result.table.AddRow(std::move(cells));
  }
  return result;
}

void AddLayerFields(const std::vector<LayerScore>& layers, Json& json) {
  for (const LayerFigure& figure : kLayerFigures) {
    const LayerSummary summary = Summarize(layers, figure);
    const bool known = summary.worst >= 0;
    const std::string field = figure.field;
    json[field] = known ? Json(summary.mean) : Json();
    json[field + "_worst"] = known ? Json(layers[summary.worst].*figure.value) : Json();
    json[field + "_worst_layer"] = known ? Json(summary.worst) : Json();
  }
  Json all = Json::array();
  for (const LayerScore& layer : layers) {
    Json one = {{"sealed", layer.sealed}};
    for (const LayerFigure& figure : kLayerFigures) one[figure.field] = layer.*figure.value;
    all.push_back(std::move(one));
  }
  json["layers"] = std::move(all);
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
  if (context.captured_tokens > 0) tables.push_back(LayerTable(report, context));
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
  if (context.captured_tokens > 0) AddLayerFields(context.layer_rows[row], json);
}

}  // namespace shorthand
