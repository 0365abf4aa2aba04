#include "result_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "chart.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

bool IsNumber(const Json& object, const char* field) {
  return object.contains(field) && object.at(field).is_number();
}
bool IsText(const Json& object, const char* field) {
  return object.contains(field) && object.at(field).is_string();
}

// An object with a model and rows, each of which has the text `named`.
Status CheckReport(const Json& report, const char* named) {
  const Status wrong = InvalidArgument(
      fmt::format("it is not a report with a model and rows that have \"{}\"", named));
  if (!report.is_object() || !IsText(report, "model")) return wrong;
  if (!report.contains("rows") || !report.at("rows").is_array()) return wrong;
  const Json& rows = report.at("rows");
  const bool ok = std::all_of(rows.begin(), rows.end(), [&](const Json& row) {
    return row.is_object() && IsText(row, "recipe") && IsText(row, named);
  });
  return ok ? OkStatus() : wrong;
}

// Lists of reports one after another.
std::vector<Json> Flat(const std::vector<Json>& reports) {
  std::vector<Json> flat;
  for (const Json& report : reports) {
    if (report.is_array()) {
      flat.insert(flat.end(), report.begin(), report.end());
    } else {
      flat.push_back(report);
    }
  }
  return flat;
}

// The model's name where all reports are of it.
std::string OneModel(const std::vector<Json>& reports) {
  std::set<std::string> models;
  for (const Json& report : reports) models.insert(report.at("model").get<std::string>());
  return models.size() == 1 ? *models.begin() : "";
}

std::string Titled(const std::string& model, const std::string& title) {
  return model.empty() ? title : fmt::format("{}: {}", model, title);
}

}  // namespace

Result<std::string> KlChart(const std::vector<Json>& given) {
  const std::vector<Json> reports = Flat(given);
  for (const Json& report : reports) {
    if (Status status = CheckReport(report, "program"); !status.ok()) return status;
  }
  const std::string model = OneModel(reports);
  std::vector<Dot> dots;
  int64_t positions = 0;
  for (size_t i = 0; i < reports.size(); ++i) {
    if (IsNumber(reports[i], "tokens")) positions += reports[i].at("tokens").get<int64_t>();
    for (const Json& row : reports[i].at("rows")) {
      if (!IsNumber(row, "bits") || !IsNumber(row, "kld_mean")) continue;
      const auto kl = row.at("kld_mean").get<double>();
      if (!(kl > 0)) continue;
      const auto recipe = row.at("recipe").get<std::string>();
      const bool peer = row.at("program") != "shorthand";
      std::string name = recipe.substr(0, recipe.find(",sink="));
      if (model.empty()) name = reports[i].at("model").get<std::string>() + " " + name;
      // The peers' colour, or one for each report.
      const int series = peer ? 1 : i == 0 ? 0 : static_cast<int>(i) + 1;
      dots.push_back({std::move(name), row.at("bits").get<double>(), kl, series});
    }
  }
  return ScatterChart(
      Titled(model, "what storing keys and values costs"), "bits a value, codes and metadata",
      fmt::format("Mean KL from the exact cache, nats; {} positions", positions), dots);
}

Result<std::string> SpeedChart(const std::vector<Json>& given) {
  const std::vector<Json> reports = Flat(given);
  for (const Json& report : reports) {
    if (Status status = CheckReport(report, "engine"); !status.ok()) return status;
  }
  const std::string model = OneModel(reports);
  std::vector<Line> lines;
  for (const Json& report : reports) {
    const size_t first = lines.size();
    for (const Json& row : report.at("rows")) {
      if (!IsNumber(row, "depth") || !IsNumber(row, "decode_ms_per_token")) continue;
      std::string name =
          row.at("engine").get<std::string>() + " " + row.at("recipe").get<std::string>();
      if (model.empty()) name = report.at("model").get<std::string>() + " " + name;
      auto line = std::find_if(lines.begin() + static_cast<std::ptrdiff_t>(first), lines.end(),
                               [&](const Line& other) { return other.name == name; });
      if (line == lines.end()) line = lines.insert(lines.end(), Line{std::move(name), {}});
      line->points.push_back(
          {row.at("depth").get<double>(), row.at("decode_ms_per_token").get<double>()});
    }
  }
  std::set<int64_t> threads;
  for (const Json& report : reports) {
    if (IsNumber(report, "threads")) threads.insert(report.at("threads").get<int64_t>());
  }
  std::string title = Titled(model, "ms of one generated token");
  if (threads.size() == 1) {
    title += fmt::format(", {} thread{}", *threads.begin(), *threads.begin() == 1 ? "" : "s");
  }
  return LineChart(title, "tokens of context", lines);
}

}  // namespace shorthand
