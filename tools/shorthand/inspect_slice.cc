// `shorthand inspect slice`: a piece of a model's keys or values, and what coding does to it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "model_slice.h"
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

Json SpanJson(const Span& span) { return {span.first, span.last}; }

// [tokens][channels]
Json RowsJson(const std::vector<float>& values, int64_t channels) {
  Json rows = Json::array();
  for (size_t at = 0; at < values.size(); at += channels) {
    rows.push_back(std::vector<float>(values.begin() + at, values.begin() + at + channels));
  }
  return rows;
}

Json SliceJson(const Options& options, const ModelSlice& slice) {
  const int64_t channels = slice.channels.count();
  Json codes = Json::array();
  for (const CodedSlice& coded : slice.codes) {
    const Slice& of = coded.slice;
    codes.push_back({{"code", coded.code},
                     {"relative_error", of.relative_error},
                     {"head_relative_error", coded.head_error},
                     {"group_tokens", of.group_tokens},
                     {"group_channels", of.group_channels},
                     {"code_bits", of.code_bits},
                     {"scale_bits", of.scale_bits},
                     {"read", RowsJson(of.read, channels)}});
  }
  return {{"model", options.slice.model},
          {"captured_tokens", slice.text_tokens},
          {"layer", slice.layer},
          {"head", slice.head},
          {"side", options.slice.side},
          {"dim", slice.dim},
          {"tokens", SpanJson(slice.tokens)},
          {"channels", SpanJson(slice.channels)},
          {"exact", options.slice.exact},
          {"sink", options.slice.sinks},
          {"values", RowsJson(slice.x, channels)},
          {"codes", std::move(codes)}};
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

void PrintSlice(const Options& options, const ModelSlice& slice) {
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
  if (options.slice.exact + options.slice.sinks > 0) {
    fmt::print("\nExact: {} tokens at the start, {} at the end.\n", options.slice.sinks,
               options.slice.exact);
  }
}

int RunInspectSlice(const Options& options) {
  if (Status status = CheckSliceOptions(options.slice); !status.ok()) return FailUsage(status);
  const auto slice = SliceOfModel(options.slice);
  if (!slice.ok()) return Fail(slice.status());
  if (options.json) {
    PrintJson(SliceJson(options, *slice));
  } else {
    PrintSlice(options, *slice);
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
