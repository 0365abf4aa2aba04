// `shorthand eval`: what each recipe costs, measured on a model and a text.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "command.h"
#include "eval_measure.h"
#include "eval_report.h"
#include "eval_text.h"
#include "plan/units.h"
#include "result_files.h"
#include "terminal.h"

namespace shorthand {
namespace {

constexpr const char* kHelp =
    "What a quantized cache costs: how far a model's predictions over it are from those over the\n"
    "exact (f16) cache, recipe by recipe, on the same text with the same weights.\n"
    "\n"
    "A text is cut into consecutive windows. Each is fed from an empty sequence, its first token\n"
    "being the begin token where the model has one, and the second half of its positions is\n"
    "scored. Every position reads the cache as decoding would, unless --paper is given. Weights\n"
    "are expanded to f32: quantized products round activations, which would drown small\n"
    "differences. The noise floor above the table says what a change that means nothing costs.";

constexpr const char* kExamples =
    "Examples:\n"
    "  shorthand eval -m smollm2\n"
    "      a selection of recipes on the project's documents\n"
    "  shorthand eval -m qwen -f book.txt -f code.txt -c 512,4k --windows 4 --kv q4_0 --kv 4bit\n"
    "      two recipes on texts of your own, in two contexts\n"
    "  shorthand eval -m smollm2 --kv 4bit --kv k=u4/ch,v=had:lm4/tok\n"
    "      how much the exact sinks and recent tokens of a recipe help\n"
    "  shorthand eval -m smollm2 --kv 4bit --kv q4_0_rot --peer q4_0\n"
    "      llama.cpp's q4_0 cache as llama.cpp computes with it, beside its format here\n"
    "  shorthand eval -m qwen -f book.txt -c 8k --windows 20 --resume qwen.results\n"
    "      hours of work that may be stopped; later with more windows or recipes\n"
    "\n"
    "MODEL is a GGUF file, or smollm2, qwen, gemma or qwen15, which are fetched on first use.\n"
    "docs/evaluation.md has the formulas and how to read the table.";

constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();

struct Options {
  std::vector<std::string> text_files;
  std::vector<std::string> contexts = {"2048"};
  std::string skipped = "0";
  std::string prompt;
  bool paper = false;
  bool needle = false;
  int depths = 8;
  std::vector<std::string> peers;
  std::string weights = "f32";
  std::string csv_file;
  std::string markdown_file;
  std::string svg_file;
  bool json = false;
  EvalRequest request = {
      .windows = 2,
      .recipe_texts = {"q8_0_rot", "q4_0_rot", "q4_0", "kivi4", "kivi2", "turbo4", "8bit", "6bit",
                       "5bit", "4bit", "3bit", "2bit"},
  };
};

// Completes the request with what is read from texts. Errors: what the user can put right on the
// command line.
Status Complete(Options& options) {
  EvalRequest& request = options.request;
  auto recipes = ParseRecipeRequests(request.recipe_texts);
  if (!recipes.ok()) return recipes.status();
  request.recipes = std::move(*recipes);
  for (const std::string& text : options.contexts) {
    const auto context = ParseTokens(text, kMaxTokens);
    if (!context.ok()) return context.status();
    auto& contexts = request.contexts;
    if (std::find(contexts.begin(), contexts.end(), *context) == contexts.end()) {
      contexts.push_back(*context);
    }
  }
  if (options.skipped != "0") {
    const auto skipped = ParseTokens(options.skipped, kMaxTokens);
    if (!skipped.ok()) return skipped.status();
    request.skipped_tokens = *skipped;
  }
  if (!options.prompt.empty()) {
    const auto prompt = ParseTokens(options.prompt, kMaxTokens);
    if (!prompt.ok()) return prompt.status();
    request.prompt_tokens = *prompt;
  }
  if (options.needle) request.needles = options.depths;
  if (options.paper) request.protocol = Protocol::kPaper;
  if (options.paper && !options.peers.empty()) {
    return InvalidArgument(
        "llama.cpp cannot fill a quantized cache from an exact prompt; give --peer or --paper");
  }
  for (const std::string& text : options.peers) {
    const auto type = ParseLlamaCacheType(text);
    if (!type.ok()) return type.status();
    request.peers.push_back(*type);
  }
  request.weights = options.weights == "f32" ? Precision::kF32 : Precision::kNative;
  return OkStatus();
}

int RunEval(Options& options) {
  if (Status status = Complete(options); !status.ok()) return FailUsage(status);
  for (const std::string& path :
       {options.csv_file, options.markdown_file, options.svg_file, options.request.resume_file}) {
    if (Status status = CheckWritable(path); !status.ok()) return Fail(status);
  }
  auto texts = ReadEvalTexts(options.text_files);
  if (!texts.ok()) return Fail(texts.status());
  options.request.texts = *std::move(texts);
  const auto report = Measure(options.request);
  if (!report.ok()) return Fail(report.status());

  if (options.json) {
    PrintJson(EvalJson(*report));
  } else {
    fmt::print("{}", EvalTable(*report));
  }
  Status written = WriteText(options.csv_file, EvalCsv(*report));
  if (written.ok()) written = WriteText(options.markdown_file, EvalMarkdown(*report));
  if (written.ok()) written = WriteText(options.svg_file, EvalSvg(*report));
  if (!written.ok()) return Fail(written);
  return report->any_row() ? kExitDone
                           : Fail(InvalidArgument("none of the recipes could be evaluated"));
}

void DeclareWhat(CLI::App& app, Options& options) {
  AddModelOption(app, options.request.model);
  app.add_option("-f,--file", options.text_files,
                 "A text; repeat it for several. Default: the project's documents")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  app.add_option("-c,--context", options.contexts,
                 "Tokens of a window; several give a table each. Default 2048")
      ->type_name("N,...")
      ->allow_extra_args(false)
      ->delimiter(',');
  app.add_option("--windows", options.request.windows,
                 "Windows of each text in each context; default 2")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, kMaxTokens).description(""));
  app.add_option("--offset", options.skipped, "Tokens of a text before its first window; default 0")
      ->type_name("N");
  app.add_option("--prompt", options.prompt,
                 "Tokens of a window before the first one that is scored; default half of them")
      ->type_name("N");
  app.add_flag("--paper", options.paper,
               "Attend the prompt exactly and seal it at its end, as publications do");
  app.add_option(
         "--kv", options.request.recipe_texts,
         "A recipe, auto or auto:BITS; repeat it for several. Default: llama.cpp's, published "
         "ones, 8bit to 2bit")
      ->type_name("R")
      ->allow_extra_args(false);
}

void DeclareMore(CLI::App& app, Options& options) {
  app.add_flag(
      "--needle", options.needle,
      "Numbers hidden in each window, asked for at its end: how likely the right digits are");
  app.add_option("--depths", options.depths, "Places at which numbers are hidden; default 8")
      ->type_name("N")
      ->check(CLI::Range(1, kMaxNeedles).description(""));
  app.add_option("--greedy", options.request.greedy_tokens,
                 "For how many of N tokens behind a window's prompt the likeliest are the exact "
                 "cache's; 512 or more say something")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, kMaxTokens).description(""));
  app.add_flag("--layers", options.request.layers,
               "What each recipe does to the attention of every layer, and which is the worst");
  app.add_option("--peer", options.peers,
                 "A cache type of llama.cpp's own, such as q8_0, or q8_0/q4_0 for keys and values; "
                 "repeat it for several")
      ->type_name("TYPE")
      ->allow_extra_args(false);
}

void DeclareHow(CLI::App& app, Options& options) {
  AddCalibrationOption(app, options.request.calibration_file);
  app.add_option("--weights", options.weights,
                 "f32: expanded; native: as in the file, as its users see it; default f32")
      ->type_name("f32|native")
      ->check(CLI::IsMember({"f32", "native"}).description(""));
  AddThreadsOption(app, options.request.threads);
  app.add_option("--resume", options.request.resume_file,
                 "Keep results in a file, and compute only what it does not hold yet")
      ->type_name("FILE");
  app.add_option("--csv", options.csv_file, "Write the rows to a file, too")->type_name("FILE");
  app.add_option("--markdown", options.markdown_file, "Write the tables for documents, too")
      ->type_name("FILE");
  app.add_option("--svg", options.svg_file, "Draw KL over bits, of the first context, too")
      ->type_name("FILE");
  app.add_flag("--json", options.json, "The same for programs");
}

}  // namespace

Runner DeclareEval(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.description(kHelp);
  app.footer(kExamples);
  DeclareWhat(app, *options);
  DeclareMore(app, *options);
  DeclareHow(app, *options);
  return [options] { return RunEval(*options); };
}

}  // namespace shorthand
