// `shorthand inspect slice`: a piece of a model's keys or values, and what coding does to it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "slice_json.h"
#include "slice_options.h"
#include "terminal.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    "What coding does to keys or values: a model reads a text, some tokens and channels of one of\n"
    "its heads are taken out and coded by themselves, as if they were all there is, and read back\n"
    "by the code that caches use. The relative error is the size of what was lost over the size\n"
    "of what there was; beside it that of the whole head.";

constexpr const char* kExamples =
    "Examples:\n"
    "  shorthand inspect slice -m smollm2 --side K --code u2/tok --code u2/ch\n"
    "      why keys are grouped by channel\n"
    "  shorthand inspect slice -m smollm2 --side V --code u2/ch --code u2/tok --exact 4 --json\n"
    "      with the numbers, and the last four tokens exact";

struct Options {
  SliceOptions slice;
  bool json = false;
};

// [tokens][channels]
Json RowsJson(const std::vector<float>& values, int64_t channels) {
  Json rows = Json::array();
  for (size_t at = 0; at < values.size(); at += channels) {
    rows.push_back(std::vector<float>(values.begin() + at, values.begin() + at + channels));
  }
  return rows;
}

Json ReportJson(const Options& options, const ModelSlice& slice) {
  Json json = SliceJson(slice);
  json["model"] = options.slice.capture.request.model;
  json["values"] = RowsJson(slice.x, slice.channels.count());
  for (size_t i = 0; i < slice.codes.size(); ++i) {
    json["codes"][i]["read"] = RowsJson(slice.codes[i].slice.read, slice.channels.count());
  }
  return json;
}

// The channel, or the token, that is largest on the whole, and how large it is beside the mean.
std::string Loudest(const ModelSlice& slice, bool by_channel) {
  const int64_t channels = slice.channels.count();
  std::vector<double> squares(by_channel ? channels : slice.tokens.count());
  for (size_t i = 0; i < slice.x.size(); ++i) {
    squares[by_channel ? i % channels : i / channels] += double{slice.x[i]} * slice.x[i];
  }
  double sum = 0;
  for (const double square : squares) sum += square;
  const auto most = std::max_element(squares.begin(), squares.end());
  const auto place = most - squares.begin();
  const double times = sum > 0 ? std::sqrt(*most * double(squares.size()) / sum) : 1;
  return fmt::format("{} {}, {:.1f} times the mean", by_channel ? "channel" : "token",
                     place + (by_channel ? slice.channels.first : slice.tokens.first), times);
}

void PrintSlice(const ModelSlice& slice) {
  fmt::print("{} of layer {}, head {}: tokens {}..{}, channels {}..{} of {}\n",
             slice.kind == SideKind::kKey ? "Keys" : "Values", slice.layer, slice.head,
             slice.tokens.first, slice.tokens.last, slice.channels.first, slice.channels.last,
             slice.dim);
  fmt::print("Largest: {}; {}\n\n", Loudest(slice, true), Loudest(slice, false));
  Table table;
  table.AddColumn("code", Table::Align::kLeft);
  for (const char* title : {"bits", "with scales", "values a scale", "relative error"}) {
    table.AddColumn(title, Table::Align::kRight);
  }
  table.AddColumn(fmt::format("whole head, {} tokens", slice.text_tokens), Table::Align::kRight);
  for (const CodedSlice& coded : slice.codes) {
    const Slice& of = coded.slice;
    const auto group = static_cast<double>(of.group_tokens * of.group_channels);
    table.AddRow({{coded.code},
                  {fmt::format("{}", of.code_bits)},
                  {fmt::format("{:.2f}", of.code_bits + of.scale_bits / group)},
                  {fmt::format("{} x {}", of.group_tokens, of.group_channels)},
                  {fmt::format("{:.1f} %", 100 * of.relative_error), Style::kStrong},
                  {fmt::format("{:.1f} %", 100 * coded.head_error)}});
  }
  fmt::print("{}", table.ToString());
  if (slice.exact.sinks + slice.exact.recent > 0) {
    fmt::print("\nExact: {} tokens at the start, {} at the end.\n", slice.exact.sinks,
               slice.exact.recent);
  }
}

int RunInspectSlice(const Options& options) {
  ModelSlice slice;
  if (const int code = ReadSlice(options.slice, &slice); code != kExitDone) return code;
  if (options.json) {
    PrintJson(ReportJson(options, slice));
  } else {
    PrintSlice(slice);
  }
  return kExitDone;
}

}  // namespace

Runner DeclareInspectSlice(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.description(kHelp);
  app.footer(kExamples);
  AddSliceOptions(app, options->slice);
  app.add_flag("--json", options->json, "The same with all numbers, for programs");
  return [options] { return RunInspectSlice(*options); };
}

}  // namespace shorthand
