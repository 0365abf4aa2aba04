// `shorthand inspect`: what it can look at, one file each.
#include "command.h"

namespace shorthand {

Runner DeclareInspectCpu(CLI::App& app);
Runner DeclareInspectModel(CLI::App& app);
Runner DeclareInspectRecipe(CLI::App& app);
Runner DeclareInspectSlice(CLI::App& app);

namespace {

constexpr Command kSubjects[] = {
    {"cpu", "The instruction set that was chosen for this machine, and why", DeclareInspectCpu},
    {"model", "What a model file holds: layers by kind, weights by type", DeclareInspectModel},
    {"recipe", "What a recipe stores, in words and in bytes", DeclareInspectRecipe},
    {"slice", "What coding does to a piece of a model's own keys or values", DeclareInspectSlice},
};

}  // namespace

Runner DeclareInspect(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  shorthand inspect cpu\n"
      "  shorthand inspect model smollm2\n"
      "  shorthand inspect recipe 4bit --dim 64\n"
      "  shorthand inspect slice -m smollm2 --side K --code u2/tok --code u2/ch");
  return DeclareCommands(kSubjects, app);
}

}  // namespace shorthand
