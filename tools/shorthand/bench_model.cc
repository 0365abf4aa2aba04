// `shorthand bench model`: decode and prompt speed at depths of context, ours beside llama.cpp's.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench_engines.h"
#include "bench_machine.h"
#include "bench_model_report.h"
#include "command.h"
#include "model_calibration.h"
#include "model_path.h"
#include "plan/units.h"
#include "progress.h"
#include "result_files.h"
#include "terminal.h"

namespace shorthand {
namespace {

constexpr const char* kHelp =
    "How fast a model generates and reads prompts behind so many tokens of context, ours with\n"
    "each recipe beside llama.cpp with its own cache types and flash attention on. All run the\n"
    "same file on as many threads, in turn, round after round; medians are shown, with the line\n"
    "through them: what a token costs at no context, and what 1000 tokens of context add.\n"
    "Contexts are not computed but filled, which takes seconds instead of hours.";

constexpr const char* kExamples =
    "Examples:\n"
    "  shorthand bench model -m smollm2 --kv f16 --kv 4bit\n"
    "  shorthand bench model -m qwen --depth 0,8k,30000 --kv 4bit --peer q4_0 --svg speed.svg\n"
    "\n"
    "MODEL is a GGUF file, or smollm2, qwen, gemma or qwen15, which are fetched on first use.";

// A prompt takes long at depth; so many rounds have one.
constexpr int kPromptRounds = 3;
constexpr const char* kNoPeer = "none";

struct Options {
  std::string model;
  std::string depths = "0,2048,8192";
  std::vector<std::string> recipes = {"f16", "8bit", "4bit"};
  std::vector<std::string> peers = {"f16", "q8_0", "q4_0"};
  int threads = 1;
  int rounds = 9;
  int decode_tokens = 5;
  int prompt_tokens = 256;
  bool json = false;
  std::string csv_file, svg_file;
};

Result<std::vector<int64_t>> ParseDepths(const std::string& text) {
  std::vector<int64_t> depths;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto depth = part == "0" ? Result<int64_t>(int64_t{0})
                                   : ParseTokens(part, std::numeric_limits<int32_t>::max());
    if (!depth.ok()) return depth.status();
    depths.push_back(*depth);
  }
  if (depths.empty()) return InvalidArgument("no depth; accepted are numbers such as 0,2048,8k");
  std::sort(depths.begin(), depths.end());
  depths.erase(std::unique(depths.begin(), depths.end()), depths.end());
  return depths;
}

// An engine under measurement; a failure ends its series.
struct Entry {
  Engine engine;
  ModelSeries series;
  std::vector<double> decode, prefill;  // seconds at the present depth
};

void Record(const Result<double>& seconds, std::vector<double>& samples, Status& status) {
  if (seconds.ok()) {
    samples.push_back(*seconds);
  } else {
    status = seconds.status();
  }
}

void MeasureDepth(std::vector<Entry>& entries, const Options& options, int64_t depth,
                  const std::function<void(double)>& on_progress) {
  for (Entry& entry : entries) {
    entry.decode.clear();
    entry.prefill.clear();
    if (entry.series.status.ok()) entry.series.status = entry.engine.reach(depth);
    // What a first step sets up, such as shifted positions, is not counted.
    if (entry.series.status.ok()) entry.series.status = entry.engine.decode().status();
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (Entry& entry : entries) {
      Status& status = entry.series.status;
      if (status.ok()) Record(entry.engine.decode(), entry.decode, status);
      if (status.ok() && round < kPromptRounds) {
        Record(entry.engine.prefill(), entry.prefill, status);
      }
    }
    on_progress(static_cast<double>(round + 1) / options.rounds);
  }
  for (Entry& entry : entries) {
    if (!entry.series.status.ok()) continue;
    entry.series.rows.push_back(
        {depth, options.prompt_tokens / Median(entry.prefill), Median(entry.decode) * 1e3});
  }
}

Status OpenEngines(const Options& options, Model& model, const std::string& path,
                   const std::vector<RecipeRequest>& requests, const EngineRoom& room,
                   std::vector<Entry>& entries) {
  const auto add = [&](Result<Engine> engine, const char* name, const std::string& recipe) {
    Entry entry;
    entry.series = {.engine = name, .recipe = recipe, .status = engine.status()};
    if (engine.ok()) {
      entry.engine = std::move(*engine);
      entry.series.filling = entry.engine.filling;
    }
    entries.push_back(std::move(entry));
  };
  const auto resolved = RecipesFor(model, path, requests, "");
  if (!resolved.ok()) return resolved.status();
  for (size_t i = 0; i < requests.size(); ++i) {
    add(OurEngine(model, options.recipes[i], resolved->recipes[i], resolved->calibration_or_null(),
                  room),
        "shorthand", options.recipes[i]);
  }
  std::vector<std::string> peers = options.peers;
  std::erase(peers, kNoPeer);
  if (peers.empty()) return OkStatus();
  const auto llama = LoadLlamaModel(path);
  if (!llama.ok()) return llama.status();
  for (const std::string& peer : peers) {
    add(LlamaEngine(*llama, peer, options.threads, room), "llama.cpp", peer);
  }
  return OkStatus();
}

Result<ModelReport> RunAll(const Options& options, const std::vector<int64_t>& depths,
                           const std::vector<RecipeRequest>& requests) {
  const auto path = ModelPath(options.model);
  if (!path.ok()) return path.status();
  const double load = LoadAverage();
  const auto model = Model::Load(*path, {.threads = options.threads});
  if (!model.ok()) return model.status();
  const EngineRoom room = {.max_depth = depths.back(),
                           .prompt_tokens = options.prompt_tokens,
                           .decode_tokens = options.decode_tokens};
  const int64_t most = (*model)->shape().max_context_tokens;
  if (room.total() > most) {
    return OutOfRange(
        fmt::format("a depth of {} with {} tokens to measure behind it; this model was made for {}",
                    room.max_depth, room.total() - room.max_depth, most));
  }
  std::vector<Entry> entries;
  if (Status status = OpenEngines(options, **model, *path, requests, room, entries); !status.ok()) {
    return status;
  }
  WarnIfBusy();
  Progress progress("timing");
  for (size_t i = 0; i < depths.size(); ++i) {
    MeasureDepth(entries, options, depths[i], [&](double share) {
      progress.Update((static_cast<double>(i) + share) / static_cast<double>(depths.size()));
    });
  }
  ModelReport report{.model = options.model,
                     .model_name = (*model)->shape().name,
                     .threads = options.threads,
                     .rounds = options.rounds,
                     .prompt_tokens = options.prompt_tokens,
                     .decode_tokens = options.decode_tokens,
                     .load = load};
  for (Entry& entry : entries) report.series.push_back(std::move(entry.series));
  if (std::all_of(report.series.begin(), report.series.end(),
                  [](const auto& series) { return series.rows.empty(); })) {
    return report.series[0].status;
  }
  return report;
}

int RunBench(const Options& options) {
  const auto depths = ParseDepths(options.depths);
  if (!depths.ok()) return FailUsage(depths.status());
  const auto requests = ParseRecipeRequests(options.recipes);
  if (!requests.ok()) return FailUsage(requests.status());
  for (const std::string& path : {options.csv_file, options.svg_file}) {
    if (Status status = CheckWritable(path); !status.ok()) return FailUsage(status);
  }
  const auto report = RunAll(options, *depths, *requests);
  if (!report.ok()) return Fail(report.status());
  if (options.json) {
    PrintJson(ModelJson(*report));
  } else {
    fmt::print("{}", ModelTable(*report));
  }
  if (Status status = WriteText(options.csv_file, ModelCsv(*report)); !status.ok()) {
    return Fail(status);
  }
  const Status drawn = WriteText(options.svg_file, ModelSvg(*report));
  return drawn.ok() ? kExitDone : Fail(drawn);
}

}  // namespace

Runner DeclareBenchModel(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.description(kHelp);
  app.footer(kExamples);
  AddModelOption(app, options->model);
  app.add_option("--depth", options->depths, "Tokens of context; default 0,2048,8192")
      ->type_name("N,N,...");
  app.add_option("--kv", options->recipes,
                 "A recipe, auto or auto:BITS; repeat it for several. Default: f16, 8bit, 4bit")
      ->type_name("R")
      ->allow_extra_args(false);
  app.add_option("--peer", options->peers,
                 "A cache type of llama.cpp; repeat it for several. Default: all three")
      ->type_name("f16|q8_0|q4_0|none")
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"f16", "q8_0", "q4_0", kNoPeer}).description(""));
  app.add_option("-t,--threads", options->threads, "Compute threads; default 1")
      ->type_name("N")
      ->check(CLI::Range(1, 512).description(""));
  app.add_option("--rounds", options->rounds, "Alternations, of which the median counts; default 9")
      ->type_name("N")
      ->check(CLI::Range(1, 10000).description(""));
  app.add_option("--steps", options->decode_tokens, "Tokens generated in a round; default 5")
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""));
  app.add_option("--prompt", options->prompt_tokens, "Tokens of the prompt at a depth; default 256")
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""));
  app.add_option("--csv", options->csv_file, "Write the rows to a file, too")->type_name("FILE");
  app.add_option("--svg", options->svg_file, "Draw the rows to a file, too")->type_name("FILE");
  app.add_flag("--json", options->json, "The same for programs");
  return [options] { return RunBench(*options); };
}

}  // namespace shorthand
