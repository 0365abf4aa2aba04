// `shorthand calibrate`: statistics of a model's keys and queries on a text, to a file.
#include "model/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "eval_text.h"
#include "model/probe.h"
#include "model_path.h"
#include "plan/units.h"
#include "progress.h"
#include "result_files.h"
#include "terminal.h"

namespace shorthand {
namespace {

constexpr const char* kHelp =
    "What a model's keys and queries look like on a text, for recipes that fit a model: `bal`,\n"
    "`wN`, and with them the presets 8bit to 2bit. Without a text of your own the built-in probe\n"
    "is used, which is what these recipes do by themselves. The file is JSON and is named by its\n"
    "hash: a recipe that was opened with it says cal=HASH.";

constexpr const char* kExamples =
    "Examples:\n"
    "  shorthand calibrate -m qwen -f book.txt -o qwen.json\n"
    "  shorthand eval -m qwen --kv 4bit --calibration qwen.json\n"
    "\n"
    "docs/formats/calibration.md has the fields, docs/quality.md what a text of one's own "
    "gains.";

constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();
// More tokens change little.
constexpr int64_t kUsualTokens = 4096;

struct Options {
  std::string model;
  std::string text_file;
  std::string output_file;
  std::string tokens;
  std::string weights = "f32";
  int threads = 0;
  bool json = false;
};

// `tokens`: 0 if the command line does not say.
Result<Calibration> MakeCalibration(const Options& options, int64_t tokens) {
  EvalText text = {.name = "built-in probe", .text = std::string(ProbeText())};
  if (!options.text_file.empty()) {
    auto read = ReadEvalText(options.text_file);
    if (!read.ok()) return read.status();
    text = std::move(*read);
  }
  const auto path = ModelPath(options.model);
  if (!path.ok()) return path.status();
  const Precision weights = options.weights == "f32" ? Precision::kF32 : Precision::kNative;
  const auto model = Model::Load(*path, {.precision = weights, .threads = options.threads});
  if (!model.ok()) return model.status();
  const auto all = (*model)->vocab().Tokenize(text.text, Place::kBegin, Markup::kIgnore);
  if (!all.ok()) return all.status();
  if (tokens == 0) tokens = std::min(kUsualTokens, (*model)->shape().max_context_tokens);
  const auto count = std::min(tokens, static_cast<int64_t>(all->size()));
  Progress progress("calibrating");
  return Calibrate(**model, std::span(*all).first(static_cast<size_t>(count)),
                   {.model_name = (*model)->shape().name,
                    .source = text.name,
                    .on_progress = [&progress](double share) { progress.Update(share); }});
}

int RunCalibrate(const Options& options) {
  const auto tokens =
      options.tokens.empty() ? Result<int64_t>(0) : ParseTokens(options.tokens, kMaxTokens);
  if (!tokens.ok()) return FailUsage(tokens.status());
  if (Status status = CheckWritable(options.output_file); !status.ok()) return Fail(status);
  const auto calibration = MakeCalibration(options, *tokens);
  if (!calibration.ok()) return Fail(calibration.status());
  if (Status status = WriteText(options.output_file, calibration->ToText()); !status.ok()) {
    return Fail(status);
  }
  if (options.json) {
    PrintJson({{"model", options.model},
               {"model_name", calibration->model},
               {"text", calibration->source},
               {"tokens", calibration->tokens},
               {"hash", calibration->Hash()},
               {"file", options.output_file}});
  } else {
    fmt::print("{}: {} tokens of {}, {} layers; cal={}\n", options.output_file, calibration->tokens,
               calibration->source, calibration->layers.size(), calibration->Hash());
  }
  return kExitDone;
}

}  // namespace

Runner DeclareCalibrate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.description(kHelp);
  app.footer(kExamples);
  AddModelOption(app, options->model);
  app.add_option("-f,--file", options->text_file, "The text; default: the built-in probe")
      ->type_name("TEXT");
  app.add_option("-o,--output", options->output_file, "The file to write")
      ->type_name("FILE")
      ->required();
  app.add_option("-n,--tokens", options->tokens,
                 "Tokens of the text at most; default 4096, or what the model was made for")
      ->type_name("N");
  app.add_option("--weights", options->weights,
                 "f32: expanded; native: as in the file; default f32")
      ->type_name("f32|native")
      ->check(CLI::IsMember({"f32", "native"}).description(""));
  AddThreadsOption(app, options->threads);
  app.add_flag("--json", options->json, "What was written, for programs");
  return [options] { return RunCalibrate(*options); };
}

}  // namespace shorthand
