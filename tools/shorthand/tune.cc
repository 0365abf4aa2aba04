// `shorthand tune`: a recipe for one model, chosen layer by layer by measurement.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "eval_inputs.h"
#include "eval_text.h"
#include "model_calibration.h"
#include "model_path.h"
#include "plan/units.h"
#include "progress.h"
#include "result_files.h"
#include "terminal.h"
#include "tune/rungs.h"
#include "tune/tuner.h"

namespace shorthand {
namespace {

constexpr const char* kHelp =
    "Finds a recipe for one model under a budget of bits or of memory: measures on a text what\n"
    "storing the keys or the values of each layer alone costs, in KL from the exact cache, and\n"
    "spends bits where they prevent most. The result is a recipe like any other: it goes to --kv.\n"
    "\n"
    "`auto:BITS` does the same from statistics, in seconds; tuning measures every layer, which\n"
    "takes minutes to hours and can be stopped and continued with --resume.";

constexpr const char* kExamples =
    "Examples:\n"
    "  shorthand tune -m smollm2 --bits 3 -f book.txt -o smollm2-3bit.recipe\n"
    "  shorthand eval -m smollm2 -f other.txt --kv 3bit --kv \"$(cat smollm2-3bit.recipe)\"\n"
    "  shorthand tune -m qwen --kv-budget 64MiB --kv-context 16k -f book.txt\n"
    "  shorthand tune -m qwen --bits 2.5 -f book.txt -c 1k --resume qwen.results\n"
    "      may be stopped; the same command goes on\n"
    "\n"
    "docs/tuning.md says how it works and what it gains.";

constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();
constexpr size_t kShownCosts = 8;

struct Options {
  std::string model;
  std::vector<std::string> text_files;
  std::string context = "1024";
  int64_t windows = 2;
  std::string skipped = "0";
  double bits = BitBudget().bits;
  std::string memory;
  std::string memory_context;
  int rounds = TuneOptions().rounds;
  std::string calibration_file;
  std::string resume_file;
  std::string output_file;
  int threads = 0;
  bool json = false;
};

// What is read before anything is run.
struct Inputs {
  std::vector<EvalText> texts;
  WindowChoice windows;
  Budget budget;
};

// Memory for 0 tokens is for those of the model.
Result<Budget> ReadBudget(const Options& options) {
  if (options.memory.empty()) return Budget(BitBudget{options.bits});
  const auto bytes = ParseSize(options.memory);
  if (!bytes.ok()) return bytes.status();
  MemoryBudget budget = {.bytes = *bytes};
  if (options.memory_context.empty()) return Budget(budget);
  const auto tokens = ParseTokens(options.memory_context, kMaxTokens);
  if (!tokens.ok()) return tokens.status();
  budget.tokens = *tokens;
  return Budget(budget);
}

Result<Inputs> ReadInputs(const Options& options) {
  Inputs inputs;
  inputs.windows.windows = options.windows;
  const auto context = ParseTokens(options.context, kMaxTokens);
  if (!context.ok()) return context.status();
  inputs.windows.context_tokens = *context;
  if (options.skipped != "0") {
    const auto skipped = ParseTokens(options.skipped, kMaxTokens);
    if (!skipped.ok()) return skipped.status();
    inputs.windows.skipped_tokens = *skipped;
  }
  const auto budget = ReadBudget(options);
  if (!budget.ok()) return budget.status();
  inputs.budget = *budget;
  auto texts = ReadEvalTexts(options.text_files);
  if (!texts.ok()) return texts.status();
  inputs.texts = *std::move(texts);
  return inputs;
}

// Gives a memory budget the tokens of the model where none were given.
Result<TuneResult> Measure(const Options& options, Inputs& inputs) {
  const auto path = ModelPath(options.model);
  if (!path.ok()) return path.status();
  auto book = OpenBook(options.resume_file, *path, Precision::kF32, Protocol::kStreaming);
  if (!book.ok()) return book.status();
  const auto model = Model::Load(*path, {.precision = Precision::kF32, .threads = options.threads});
  if (!model.ok()) return model.status();
  if (auto* memory = std::get_if<MemoryBudget>(&inputs.budget); memory && memory->tokens == 0) {
    memory->tokens = (*model)->shape().max_context_tokens;
  }
  const auto texts = CutTexts((*model)->vocab(), inputs.texts, inputs.windows);
  if (!texts.ok()) return texts.status();
  std::vector<Passage> passages;
  for (const TextPassages& text : *texts) {
    passages.insert(passages.end(), text.passages.begin(), text.passages.end());
  }
  const auto calibration = CalibrationOf(**model, *path, options.calibration_file);
  if (!calibration.ok()) return calibration.status();
  Progress progress("tuning");
  return Tune(**model, passages, *calibration, *book,
              {.budget = inputs.budget,
               .rounds = options.rounds,
               .on_progress = [&progress](double share) { progress.Update(share); }});
}

std::string Kl(double kl) {
  return kl < 1e-4 ? fmt::format("{:.1e}", kl) : fmt::format("{:.5f}", kl);
}

void PrintSteps(const Budget& budget, const TuneResult& result) {
  const auto* memory = std::get_if<MemoryBudget>(&budget);
  const std::string size = memory ? FormatTokens(memory->tokens) + " tokens" : "bits";
  Table table;
  table.AddColumn("step", Table::Align::kLeft);
  for (const std::string& title :
       {size, std::string("expected KL"), std::string("KL"), std::string("+-")}) {
    table.AddColumn(title, Table::Align::kRight);
  }
  for (size_t i = 0; i < result.steps.size(); ++i) {
    const TuneStep& step = result.steps[i];
    table.AddRow({{step.name},
                  {memory ? FormatSize(step.allocated_bytes) : fmt::format("{:.2f}", step.bits)},
                  {Kl(step.expected_kl)},
                  {Kl(step.kl), i == result.best ? Style::kGood : Style::kPlain},
                  {Kl(step.kl_error)}});
  }
  fmt::print("{}\n", table.ToString());
}

// Where most is lost: of the costs at the same bits, those of the first round.
void PrintCosts(const TuneResult& result, size_t parts) {
  std::vector<LayerCost> costs(result.costs.begin(),
                               result.costs.begin() + std::min(parts, result.costs.size()));
  std::sort(costs.begin(), costs.end(),
            [](const LayerCost& a, const LayerCost& b) { return a.kl > b.kl; });
  double sum = 0;
  for (const LayerCost& cost : costs) sum += cost.kl;
  fmt::print("Dearest alone, at 3 bits:");
  for (size_t i = 0; i < std::min(kShownCosts, costs.size()); ++i) {
    fmt::print("{} {} of layer {} {:.0f} %", i == 0 ? "" : ",", costs[i].keys ? "keys" : "values",
               costs[i].layer, 100 * costs[i].kl / sum);
  }
  fmt::print("\n\n");
}

nlohmann::ordered_json BudgetJson(const Budget& budget) {
  if (const auto* bits = std::get_if<BitBudget>(&budget)) return {{"bits", bits->bits}};
  const auto& memory = std::get<MemoryBudget>(budget);
  return {{"allocated_bytes", memory.bytes}, {"tokens", memory.tokens}};
}

nlohmann::ordered_json TuneJson(const Options& options, const Budget& budget,
                                const TuneResult& result) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array(), costs = steps;
  for (const TuneStep& step : result.steps) {
    steps.push_back({{"step", step.name},
                     {"recipe", step.recipe.ToString()},
                     {"bits", step.bits},
                     {"expected_kld", step.expected_kl},
                     {"kld_mean", step.kl},
                     {"kld_mean_error", step.kl_error}});
    if (step.allocated_bytes > 0) steps.back()["allocated_bytes"] = step.allocated_bytes;
  }
  for (const LayerCost& cost : result.costs) {
    costs.push_back({{"layer", cost.layer},
                     {"side", cost.keys ? "k" : "v"},
                     {"bits", cost.bits},
                     {"predicted_kld", cost.predicted_kl},
                     {"kld_mean", cost.kl}});
  }
  return {{"model", options.model},
          {"budget", BudgetJson(budget)},
          {"recipe", result.steps[result.best].recipe.ToString()},
          {"steps", std::move(steps)},
          {"layers", std::move(costs)}};
}

int RunTune(const Options& options) {
  auto inputs = ReadInputs(options);
  if (!inputs.ok()) return FailUsage(inputs.status());
  for (const std::string& path : {options.output_file, options.resume_file}) {
    if (Status status = CheckWritable(path); !status.ok()) return Fail(status);
  }
  const auto result = Measure(options, *inputs);
  if (!result.ok()) return Fail(result.status());
  const std::string recipe = result->steps[result->best].recipe.ToString();
  if (options.json) {
    PrintJson(TuneJson(options, inputs->budget, *result));
  } else {
    PrintSteps(inputs->budget, *result);
    if (options.rounds > 0) PrintCosts(*result, result->parts);
    fmt::print("{}\n", recipe);
  }
  const Status written = WriteText(options.output_file, recipe + "\n");
  return written.ok() ? kExitDone : Fail(written);
}

}  // namespace

Runner DeclareTune(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.description(kHelp);
  app.footer(kExamples);
  AddModelOption(app, options->model);
  CLI::Option* bits =
      app.add_option("--bits", options->bits,
                     "Bits of a code, mean over layers, keys and values, as presets count them; "
                     "default 4")
          ->type_name("B")
          ->check(CLI::Range(KeyRungs().front().bits, KeyRungs().back().bits).description(""));
  CLI::Option* memory =
      app.add_option("--kv-budget", options->memory,
                     "Instead of bits: the memory that a cache may allocate, e.g. 500MiB")
          ->type_name("SIZE")
          ->excludes(bits);
  app.add_option("--kv-context", options->memory_context,
                 "The tokens of that cache; default: what the model was made for")
      ->type_name("N")
      ->needs(memory);
  app.add_option("-f,--file", options->text_files,
                 "A text; repeat it for several. Default: the project's documents")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  app.add_option("-c,--context", options->context, "Tokens of a window; default 1024")
      ->type_name("N");
  app.add_option("--windows", options->windows, "Windows of each text; default 2")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, kMaxTokens).description(""));
  app.add_option("--offset", options->skipped,
                 "Tokens of a text before its first window; default 0")
      ->type_name("N");
  app.add_option("--rounds", options->rounds,
                 "How often every layer is measured; 0 compares what is predicted; default 2")
      ->type_name("N")
      ->check(CLI::Range(0, 8).description(""));
  AddCalibrationOption(app, options->calibration_file);
  AddThreadsOption(app, options->threads);
  app.add_option("--resume", options->resume_file,
                 "Keep results in a file, and compute only what it does not hold yet")
      ->type_name("FILE");
  app.add_option("-o,--output", options->output_file, "Write the recipe to a file")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "Steps and layers, for programs");
  return [options] { return RunTune(*options); };
}

}  // namespace shorthand
