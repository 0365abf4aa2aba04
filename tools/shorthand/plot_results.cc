// `shorthand plot pareto` and `shorthand plot speed`: charts of results that were kept as JSON.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "result_files.h"
#include "results.h"

namespace shorthand {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string output_file;
};

// What a picture is drawn of.
using Kind = std::vector<nlohmann::ordered_json> ResultReports::*;
using Chart = std::string (*)(const std::vector<nlohmann::ordered_json>& reports);

int Draw(const Options& options, Kind kind, Chart chart) {
  if (Status status = CheckWritable(options.output_file); !status.ok()) return Fail(status);
  std::vector<nlohmann::ordered_json> reports;
  for (const std::string& path : options.files) {
    const auto results = ReadResults(path);
    if (!results.ok()) return Fail(results.status());
    const auto& of_kind = *results.*kind;
    if (of_kind.empty()) {
      return Fail(
          InvalidArgument(fmt::format("{} holds no results of the kind that is drawn", path)));
    }
    reports.insert(reports.end(), of_kind.begin(), of_kind.end());
  }
  const Status written = WriteText(options.output_file, chart(reports));
  return written.ok() ? kExitDone : Fail(written);
}

Runner Declare(CLI::App& app, Kind kind, Chart chart, const char* what) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->files, what)->required();
  AddPictureOption(app, options->output_file);
  return [options, kind, chart] { return Draw(*options, kind, chart); };
}

}  // namespace

Runner DeclarePlotPareto(CLI::App& app) {
  app.footer(
      "KL over bits of all rows, and the line that no other row beats in both.\n\n"
      "Example:\n"
      "  shorthand eval -m smollm2 --kv 8bit --kv 4bit --kv 2bit --peer q4_0 --json > kl.json\n"
      "  shorthand plot pareto kl.json -o kl.svg");
  return Declare(app, &ResultReports::kl, KlChart, "What `shorthand eval --json` wrote");
}

Runner DeclarePlotSpeed(CLI::App& app) {
  app.footer(
      "How long a token takes behind so much context, a line for each cache.\n\n"
      "Example:\n"
      "  shorthand bench model -m smollm2 --json > speed.json\n"
      "  shorthand plot speed speed.json -o speed.svg");
  return Declare(app, &ResultReports::speed, SpeedChart,
                 "What `shorthand bench model --json` wrote");
}

}  // namespace shorthand
