#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command.h"

namespace shorthand {

Runner DeclarePlan(CLI::App& app);
Runner DeclareRun(CLI::App& app);
Runner DeclareEval(CLI::App& app);
Runner DeclareCalibrate(CLI::App& app);
Runner DeclareTune(CLI::App& app);
Runner DeclareInspect(CLI::App& app);
Runner DeclareBench(CLI::App& app);
Runner DeclarePlot(CLI::App& app);
Runner DeclareExplore(CLI::App& app);

namespace {

constexpr Command kCommands[] = {
    {"plan", "What a model's cache takes, and how it fits into a memory", DeclarePlan},
    {"run", "Text from a model over a quantized cache, once or as a chat", DeclareRun},
    {"eval", "What a quantized cache costs in quality, recipe by recipe", DeclareEval},
    {"calibrate", "Statistics of a model's keys and queries, for recipes that fit it",
     DeclareCalibrate},
    {"tune", "A recipe for one model, layer by layer, by measurement", DeclareTune},
    {"bench", "How fast attention and whole models are, beside ggml and llama.cpp", DeclareBench},
    {"inspect", "What this machine chose, what a recipe stores, what a code does", DeclareInspect},
    {"explore", "A page in the browser: what fits, who shares a scale, what codes lose",
     DeclareExplore},
    {"plot", "Pictures as SVG files: memory, groups, a slice of a head, KL, speed", DeclarePlot},
};

// Lists sub-commands by their summaries; CLI11 would print the whole head of each one's own help.
class SummaryFormatter : public CLI::Formatter {
 public:
  explicit SummaryFormatter(std::span<const Command> commands) : commands_(commands) {}

  std::string make_subcommand(const CLI::App* app) const override {
    const auto command = std::find_if(commands_.begin(), commands_.end(),
                                      [&](const Command& c) { return app->get_name() == c.name; });
    return fmt::format("  {:<{}}{}\n", command->name, get_column_width() - 2, command->summary);
  }

 private:
  std::span<const Command> commands_;
};

}  // namespace

std::span<const Command> Commands() { return kCommands; }

Runner DeclareCommands(std::span<const Command> commands, CLI::App& parent) {
  std::vector<std::pair<CLI::App*, Runner>> declared;
  for (const Command& command : commands) {
    CLI::App* app = parent.add_subcommand(command.name, command.summary);
    declared.emplace_back(app, command.declare(*app));
  }
  parent.require_subcommand(1);
  parent.formatter(std::make_shared<SummaryFormatter>(commands));
  return [declared = std::move(declared)]() -> int {
    for (const auto& [app, run] : declared) {
      if (app->parsed()) return run();
    }
    return kExitUsage;
  };
}

int Fail(const Status& status) {
  fmt::print(stderr, "shorthand: {}\n", status.message());
  return kExitFailed;
}

int FailUsage(const Status& status) {
  fmt::print(stderr, "shorthand: {}\n", status.message());
  return kExitUsage;
}

void AddModelOption(CLI::App& app, std::string& model) {
  app.add_option("-m,--model", model, "A GGUF file, or the name of one that is fetched")
      ->type_name("MODEL")
      ->required();
}

void AddThreadsOption(CLI::App& app, int& threads) {
  app.add_option("-t,--threads", threads, "Compute threads; default: one for each core")
      ->type_name("N")
      ->check(CLI::Range(0, 512).description(""));
}

void AddCalibrationOption(CLI::App& app, std::string& calibration) {
  app.add_option("--calibration", calibration,
                 "Of the model, by `shorthand calibrate`; default: the built-in probe")
      ->type_name("FILE");
}

void AddPictureOption(CLI::App& app, std::string& file) {
  app.add_option("-o,--out", file, "The SVG file to write")->type_name("FILE")->required();
}

namespace {

template <typename T>
Result<std::vector<T>> ParseAll(const std::vector<std::string>& texts,
                                Result<T> (*parse)(std::string_view)) {
  std::vector<T> all;
  for (const std::string& text : texts) {
    auto one = parse(text);
    if (!one.ok()) return one.status();
    all.push_back(*std::move(one));
  }
  return all;
}

}  // namespace

Result<std::vector<Recipe>> ParseRecipes(const std::vector<std::string>& texts) {
  return ParseAll(texts, Recipe::Parse);
}

Result<std::vector<RecipeRequest>> ParseRecipeRequests(const std::vector<std::string>& texts) {
  return ParseAll(texts, ParseRecipeRequest);
}

}  // namespace shorthand
