// `shorthand plot`: pictures as SVG files, one file each.
#include "command.h"

namespace shorthand {

Runner DeclarePlotGrouping(CLI::App& app);
Runner DeclarePlotMemory(CLI::App& app);
Runner DeclarePlotPareto(CLI::App& app);
Runner DeclarePlotSlice(CLI::App& app);
Runner DeclarePlotSpeed(CLI::App& app);

namespace {

constexpr Command kPictures[] = {
    {"memory", "Weights and cache of a model, recipe by recipe, against a memory",
     DeclarePlotMemory},
    {"grouping", "Which numbers share a scale, and what an outlier does to them",
     DeclarePlotGrouping},
    {"slice", "A piece of a model's keys or values, and the error of codes on it",
     DeclarePlotSlice},
    {"pareto", "KL over bits, of results of eval", DeclarePlotPareto},
    {"speed", "Time of a token over context, of results of bench model", DeclarePlotSpeed},
};

}  // namespace

Runner DeclarePlot(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  shorthand plot memory Llama-3-8B -c 32k --users 8 --memory 24GB -o memory.svg\n"
      "  shorthand plot grouping -m smollm2 -o grouping.svg\n"
      "  shorthand plot slice -m smollm2 --side K -o keys.svg\n"
      "  shorthand plot pareto kl.json -o kl.svg");
  return DeclareCommands(kPictures, app);
}

}  // namespace shorthand
