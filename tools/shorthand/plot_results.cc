// `shorthand plot pareto` and `shorthand plot speed`: charts of results that were kept as JSON.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "command.h"
#include "result_charts.h"
#include "result_files.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;
using Chart = Result<std::string> (*)(const std::vector<Json>& reports);

struct Options {
  std::vector<std::string> files;
  std::string output_file;
};

Result<Json> ReadJson(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(fmt::format("there is no file {}", path));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return DataLoss(fmt::format("{} is not JSON", path));
  return json;
}

int Draw(const Options& options, Chart chart) {
  if (Status status = CheckWritable(options.output_file); !status.ok()) return Fail(status);
  std::vector<Json> reports;
  for (const std::string& path : options.files) {
    auto report = ReadJson(path);
    if (!report.ok()) return Fail(report.status());
    reports.push_back(*std::move(report));
    // Alone first, so that an error can name the file.
    if (const auto alone = chart({reports.back()}); !alone.ok()) {
      return Fail(InvalidArgument(fmt::format("{}: {}", path, alone.status().message())));
    }
  }
  const auto picture = chart(reports);
  if (!picture.ok()) return Fail(picture.status());
  const Status written = WriteText(options.output_file, *picture);
  return written.ok() ? kExitDone : Fail(written);
}

Runner Declare(CLI::App& app, Chart chart, const char* what) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->files, what)->required();
  AddPictureOption(app, options->output_file);
  return [options, chart] { return Draw(*options, chart); };
}

}  // namespace

Runner DeclarePlotPareto(CLI::App& app) {
  app.footer(
      "KL over bits of all rows, and the line that no other row beats in both.\n\n"
      "Example:\n"
      "  shorthand eval -m smollm2 --kv 8bit --kv 4bit --kv 2bit --peer q4_0 --json > kl.json\n"
      "  shorthand plot pareto kl.json -o kl.svg");
  return Declare(app, KlChart, "What `shorthand eval --json` wrote");
}

Runner DeclarePlotSpeed(CLI::App& app) {
  app.footer(
      "How long a token takes behind so much context, a line for each cache.\n\n"
      "Example:\n"
      "  shorthand bench model -m smollm2 --json > speed.json\n"
      "  shorthand plot speed speed.json -o speed.svg");
  return Declare(app, SpeedChart, "What `shorthand bench model --json` wrote");
}

}  // namespace shorthand
