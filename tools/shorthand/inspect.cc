// `shorthand inspect`: what it can look at, one file each.
#include "command.h"

namespace shorthand {

Runner DeclareInspectCpu(CLI::App& app);
Runner DeclareInspectModel(CLI::App& app);
Runner DeclareInspectRecipe(CLI::App& app);

namespace {

constexpr Command kSubjects[] = {
    {"cpu", "The instruction set that was chosen for this machine, and why", DeclareInspectCpu},
    {"model", "What a model file holds: layers by kind, weights by type", DeclareInspectModel},
    {"recipe", "What a recipe stores, in words and in bytes", DeclareInspectRecipe},
};

}  // namespace

Runner DeclareInspect(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  shorthand inspect cpu\n"
      "  shorthand inspect model smollm2\n"
      "  shorthand inspect recipe 4bit --dim 64");
  return DeclareCommands(kSubjects, app);
}

}  // namespace shorthand
