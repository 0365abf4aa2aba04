#include "bench_model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "plan/units.h"
#include "result_files.h"
#include "results.h"
#include "terminal.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

struct Fit {
  double intercept_ms = 0;
  double slope_ms = 0;  // per 1000 tokens
};

// Least squares of decode time over depth.
std::optional<Fit> FitOf(const std::vector<ModelRow>& rows) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const ModelRow& row : rows) {
    const double depth = static_cast<double>(row.depth) / 1000;
    n += 1;
    x += depth;
    y += row.decode_ms;
    xx += depth * depth;
    xy += depth * row.decode_ms;
  }
  const double spread = n * xx - x * x;
  if (n < 2 || spread <= 0) return std::nullopt;
  const double slope = (n * xy - x * y) / spread;
  return Fit{(y - slope * x) / n, slope};
}

std::vector<Cell> Cells(const ModelSeries& series, size_t rows) {
  std::vector<Cell> cells = {{series.engine}, {series.recipe}};
  for (size_t i = 0; i < rows; ++i) {
    const bool known = i < series.rows.size();
    cells.push_back({known ? fmt::format("{:.2f}", series.rows[i].decode_ms) : "-"});
  }
  const auto fit = FitOf(series.rows);
  cells.push_back({fit ? fmt::format("{:.2f}", fit->intercept_ms) : "-"});
  cells.push_back({fit ? fmt::format("{:.3f}", fit->slope_ms) : "-", Style::kStrong});
  for (size_t i = 0; i < rows; ++i) {
    const bool known = i < series.rows.size();
    cells.push_back({known ? fmt::format("{:.1f}", series.rows[i].prefill_tokens_per_s) : "-"});
  }
  return cells;
}

std::string LineName(const ModelSeries& series) { return series.engine + " " + series.recipe; }

}  // namespace

std::string ModelTable(const ModelReport& report) {
  const auto longest =
      std::max_element(report.series.begin(), report.series.end(),
                       [](const auto& a, const auto& b) { return a.rows.size() < b.rows.size(); });
  Table table;
  table.AddColumn("engine", Table::Align::kLeft);
  table.AddColumn("cache", Table::Align::kLeft);
  for (const ModelRow& row : longest->rows) {
    table.AddColumn("ms at " + FormatTokens(row.depth), Table::Align::kRight);
  }
  table.AddColumn("intercept", Table::Align::kRight);
  table.AddColumn("ms per 1k", Table::Align::kRight);
  for (const ModelRow& row : longest->rows) {
    table.AddColumn("prompt t/s at " + FormatTokens(row.depth), Table::Align::kRight);
  }
  for (const ModelSeries& series : report.series) {
    table.AddRow(Cells(series, longest->rows.size()));
  }
  std::string text = fmt::format(
      "{}: {}, {} thread{}\nload average {:.1f} before; medians of {} round{}, {}\n\n",
      Styled(Style::kStrong, report.model), report.model_name, report.threads,
      report.threads == 1 ? "" : "s", report.load, report.rounds, report.rounds == 1 ? "" : "s",
      report.threads == 1 ? "processor time" : "time on the wall");
  text += table.ToString();
  text += fmt::format(
      "\nms of one generated token ({} in each round) behind so many tokens, a line fitted through "
      "it\n(intercept, ms per 1000 tokens of context), and a prompt of {} tokens at that depth.\n",
      report.decode_tokens, report.prompt_tokens);
  std::string last;
  for (const ModelSeries& series : report.series) {
    if (series.engine != last) {
      text += fmt::format("depth of {}: {}\n", series.engine, series.filling);
    }
    last = series.engine;
  }
  for (const ModelSeries& series : report.series) {
    if (!series.status.ok()) {
      text += fmt::format("{} failed: {}\n", LineName(series), series.status.message());
    }
  }
  return text;
}

nlohmann::ordered_json ModelJson(const ModelReport& report) {
  Json rows = Json::array();
  Json failures = Json::array();
  for (const ModelSeries& series : report.series) {
    for (const ModelRow& row : series.rows) {
      rows.push_back({{"engine", series.engine},
                      {"recipe", series.recipe},
                      {"depth", row.depth},
                      {"prefill_tokens_per_s", row.prefill_tokens_per_s},
                      {"decode_ms_per_token", row.decode_ms}});
    }
    if (!series.status.ok()) {
      failures.push_back({{"engine", series.engine},
                          {"recipe", series.recipe},
                          {"error", series.status.message()}});
    }
  }
  Json fits = Json::array();
  for (const ModelSeries& series : report.series) {
    const auto fit = FitOf(series.rows);
    if (!fit) continue;
    fits.push_back({{"engine", series.engine},
                    {"recipe", series.recipe},
                    {"intercept_ms", fit->intercept_ms},
                    {"ms_per_1k_tokens", fit->slope_ms}});
  }
  return {{"model", report.model},   {"threads", report.threads},
          {"rows", std::move(rows)}, {"fits", std::move(fits)},
          {"failures", failures},    {"prompt_tokens", report.prompt_tokens},
          {"rounds", report.rounds}, {"load_average", report.load}};
}

std::string ModelCsv(const ModelReport& report) { return CsvOf(ModelJson(report).at("rows")); }

std::string ModelSvg(const ModelReport& report) { return SpeedChart({ModelJson(report)}); }

}  // namespace shorthand
