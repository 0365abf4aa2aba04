// `shorthand eval`: what each recipe costs, measured on a model and a text.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "eval/evaluate.h"
#include "eval/fingerprint.h"
#include "eval/windows.h"
#include "eval_report.h"
#include "eval_text.h"
#include "model_calibration.h"
#include "model_path.h"
#include "plan/units.h"
#include "progress.h"
#include "result_files.h"
#include "shorthand/attention.h"
#include "terminal.h"

namespace shorthand {
namespace {

constexpr const char* kHelp =
    "What a quantized cache costs: how far a model's predictions over it are from those over the\n"
    "exact (f16) cache, recipe by recipe, on the same text with the same weights.\n"
    "\n"
    "The text is cut into consecutive windows. Each is fed from an empty sequence, its first "
    "token\n"
    "being the begin token where the model has one, and the second half of its positions is\n"
    "scored. Every position reads the cache as decoding would. Weights are expanded to f32:\n"
    "quantized products round activations, which would drown small differences. The noise floor\n"
    "above the table says what a change that means nothing costs.";

constexpr const char* kExamples =
    "Examples:\n"
    "  shorthand eval -m smollm2\n"
    "      a selection of recipes on the project's documents\n"
    "  shorthand eval -m qwen -f book.txt -c 4k --windows 4 --kv q4_0 --kv 4bit\n"
    "      two recipes on a text of your own\n"
    "  shorthand eval -m smollm2 --kv 4bit --kv k=u4/ch,v=had:lm4/tok\n"
    "      how much the exact sinks and recent tokens of a recipe help\n"
    "  shorthand eval -m qwen -f book.txt -c 8k --windows 20 --resume qwen.results\n"
    "      hours of work that may be stopped; later with more windows or recipes\n"
    "\n"
    "MODEL is a GGUF file, or smollm2, qwen, gemma or qwen15, which are fetched on first use.\n"
    "docs/evaluation.md has the formulas and how to read the table.";

constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();

struct Options {
  std::string model;
  std::string text_file;
  std::string context = "2048";
  int64_t windows = 2;
  std::vector<std::string> recipes = {"q8_0_rot", "q4_0_rot", "q4_0", "kivi4", "kivi2", "turbo4",
                                      "8bit",     "6bit",     "5bit", "4bit",  "3bit",  "2bit"};
  std::string weights = "f32";
  std::string calibration_file;
  int threads = 0;
  std::string resume_file;
  std::string csv_file;
  bool json = false;

  Precision precision() const { return weights == "f32" ? Precision::kF32 : Precision::kNative; }
};

// What is kept between runs holds for the same model, weights, protocol and arithmetic.
Result<ScoreBook> OpenBook(const Options& options, const std::string& model_path) {
  if (options.resume_file.empty()) return ScoreBook();
  const auto model = FileFingerprint(model_path);
  if (!model.ok()) return model.status();
  const auto target = ActiveTarget();
  if (!target.ok()) return target.status();
  return ScoreBook::Open(options.resume_file, {{"the model file of fingerprint", *model},
                                               {"weights", options.weights},
                                               {"the protocol", "streaming"},
                                               {"kernels for", target->name}});
}

Result<EvalReport> Measure(const Options& options, int64_t context_tokens, const EvalText& text,
                           std::span<const Recipe> recipes) {
  const auto path = ModelPath(options.model);
  if (!path.ok()) return path.status();
  auto book = OpenBook(options, *path);
  if (!book.ok()) return book.status();
  Progress progress("evaluating");
  const auto model =
      Model::Load(*path, {.precision = options.precision(), .threads = options.threads});
  if (!model.ok()) return model.status();
  auto windows = CutWindows((*model)->vocab(), text.text, context_tokens, options.windows);
  if (!windows.ok()) return windows.status();
  const TextPassages passages = {
      .name = text.name, .passages = PassagesOf(std::move(*windows), FirstScored(context_tokens))};
  const auto failures =
      ScoreRecipes(**model, passages.passages, recipes, *book,
                   {.on_progress = [&progress](double share) { progress.Update(share); }});
  if (!failures.ok()) return failures.status();
  const Shape& shape = (*model)->shape();
  const auto contenders = ContendersOf(shape, recipes, context_tokens, *failures);
  return EvalReport{.model = options.model,
                    .model_name = shape.name,
                    .text_name = text.name,
                    .weights = options.precision(),
                    .context_tokens = context_tokens,
                    .windows = static_cast<int64_t>(passages.passages.size()),
                    .recipes = options.recipes,
                    .evaluation = Tabulate({&passages, 1}, contenders, *book)};
}

int RunEval(const Options& options) {
  const auto recipes = ParseRecipes(options.recipes);
  if (!recipes.ok()) return FailUsage(recipes.status());
  const auto context = ParseTokens(options.context, kMaxTokens);
  if (!context.ok()) return FailUsage(context.status());
  for (const std::string& path : {options.csv_file, options.resume_file}) {
    if (Status status = CheckWritable(path); !status.ok()) return Fail(status);
  }
  const auto text = ReadEvalText(options.text_file);
  if (!text.ok()) return Fail(text.status());
  const auto report = Measure(options, *context, *text, *recipes);
  if (!report.ok()) return Fail(report.status());

  if (report->windows < options.windows) {
    fmt::print(stderr, "shorthand: the text ends after {} of {} windows\n", report->windows,
               options.windows);
  }
  if (options.json) {
    PrintJson(EvalJson(*report));
  } else {
    fmt::print("{}", EvalTable(*report));
  }
  if (Status status = WriteText(options.csv_file, EvalCsv(*report)); !status.ok())
    return Fail(status);
  const auto& rows = report->evaluation.rows;
  const bool any = std::any_of(rows.begin(), rows.end(),
                               [](const auto& row) { return row.contender.status.ok(); });
  return any ? kExitDone : Fail(InvalidArgument("none of the recipes could be evaluated"));
}

}  // namespace

Runner DeclareEval(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.description(kHelp);
  app.footer(kExamples);
  app.add_option("-m,--model", options->model, "A GGUF file, or the name of one that is fetched")
      ->type_name("MODEL")
      ->required();
  app.add_option("-f,--file", options->text_file, "The text; default: the project's documents")
      ->type_name("TEXT");
  app.add_option("-c,--context", options->context, "Tokens of a window; default 2048")
      ->type_name("N");
  app.add_option("--windows", options->windows, "Windows from the text's begin; default 2")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, kMaxTokens).description(""));
  app.add_option("--kv", options->recipes,
                 "A recipe; repeat it for several. Default: llama.cpp's, published ones, 8bit to "
                 "2bit")
      ->type_name("R")
      ->allow_extra_args(false);
  app.add_option("--calibration", options->calibration_file,
                 "Of the model, by `shorthand calibrate`; default: the built-in probe")
      ->type_name("FILE");
  app.add_option("--weights", options->weights,
                 "f32: expanded; native: as in the file, as its users see it; default f32")
      ->type_name("f32|native")
      ->check(CLI::IsMember({"f32", "native"}).description(""));
  app.add_option("-t,--threads", options->threads, "Compute threads; default: one for each core")
      ->type_name("N")
      ->check(CLI::Range(0, 512).description(""));
  app.add_option("--resume", options->resume_file,
                 "Keep results in a file, and compute only what it does not hold yet")
      ->type_name("FILE");
  app.add_option("--csv", options->csv_file, "Write the rows to a file, too")->type_name("FILE");
  app.add_flag("--json", options->json, "The same for programs");
  return [options] { return RunEval(*options); };
}

}  // namespace shorthand
