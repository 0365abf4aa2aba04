// Command: one sub-command of `shorthand`. Adding one is a file that declares it and a row in
// commands.cc.
//
// A command says what it takes on CLI11's object and returns what runs once the line is parsed.
// Exit codes: 0 done, 1 failed, 2 the command line is wrong.
// Thread-safety: one thread.
#ifndef SHORTHAND_TOOLS_COMMAND_H_
#define SHORTHAND_TOOLS_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "shorthand/recipe.h"
#include "shorthand/status.h"
#include "tune/auto_recipe.h"

namespace shorthand {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

using Runner = std::function<int()>;

struct Command {
  const char* name;
  const char* summary;
  Runner (*declare)(CLI::App& app);
};

// Every sub-command, in the order of the help.
std::span<const Command> Commands();

// Adds one sub-command of `parent` for each row. The result runs the one that was given.
Runner DeclareCommands(std::span<const Command> commands, CLI::App& parent);

// One sentence to stderr; kExitFailed.
int Fail(const Status& status);
// The same for what the user can put right on the command line; kExitUsage.
int FailUsage(const Status& status);

// Options that several commands take.
void AddModelOption(CLI::App& app, std::string& model);              // required
void AddThreadsOption(CLI::App& app, int& threads);                  // 0: one for each core
void AddCalibrationOption(CLI::App& app, std::string& calibration);  // empty: the probe
void AddPictureOption(CLI::App& app, std::string& file);             // required

// The recipes of a repeated --kv. Errors: the first one's.
Result<std::vector<Recipe>> ParseRecipes(const std::vector<std::string>& texts);
// The same where a model will be loaded, so that `auto` means something.
Result<std::vector<RecipeRequest>> ParseRecipeRequests(const std::vector<std::string>& texts);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_COMMAND_H_
