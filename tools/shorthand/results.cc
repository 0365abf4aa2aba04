#include "results.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
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
bool IsReport(const Json& report, const char* named) {
  if (!report.is_object() || !IsText(report, "model")) return false;
  if (!report.contains("rows") || !report.at("rows").is_array()) return false;
  const Json& rows = report.at("rows");
  return std::all_of(rows.begin(), rows.end(), [&](const Json& row) {
    return row.is_object() && IsText(row, "recipe") && IsText(row, named);
  });
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

Result<ResultReports> ReadResults(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(fmt::format("there is no file {}", path));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return DataLoss(fmt::format("{} is not JSON", path));
  ResultReports reports;
  for (const Json& report : json.is_array() ? json : Json::array({json})) {
    if (IsReport(report, "program")) {
      reports.kl.push_back(report);
    } else if (IsReport(report, "engine")) {
      reports.speed.push_back(report);
    } else {
      return InvalidArgument(fmt::format(
          "{} is not what `eval --json` or `bench model --json` writes: a model and rows", path));
    }
  }
  return reports;
}

std::string KlChart(const std::vector<Json>& reports) {
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

std::string SpeedChart(const std::vector<Json>& reports) {
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
