// The `shorthand` command: parses the line and runs one sub-command.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "command.h"

namespace shorthand {
namespace {

constexpr const char* kDescription =
    "Shorthand keeps the keys and values of a language model's context in few bits: older tokens\n"
    "in shorthand, the newest in full.";

constexpr const char* kExamples =
    "Examples:\n"
    "  shorthand plan Llama-3-8B -c 32k --users 8 --memory 24GB\n"
    "  shorthand run -m smollm2 --kv 4bit -p \"The capital of France is\"\n"
    "  shorthand eval -m smollm2 --kv 8bit --kv 4bit --kv 3bit\n"
    "  shorthand inspect recipe 4bit\n"
    "\n"
    "`shorthand COMMAND --help` has the options of each and more examples.";

// CLI11's words as one sentence, or better ones where a command is missing.
std::string UsageMessage(const CLI::App& app, const CLI::ParseError& error) {
  if (app.get_require_subcommand_min() > 0 && app.get_subcommands().empty()) {
    const auto unknown = app.remaining();
    return unknown.empty() ? "a command is missing"
                           : fmt::format("there is no command \"{}\"", unknown.front());
  }
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  message.erase(message.find_last_not_of(" .") + 1);
  return message;
}

int UsageError(const CLI::App& top, const CLI::ParseError& error) {
  const CLI::App* app = &top;  // the innermost command that was named
  std::string name = top.get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    name += " " + app->get_name();
  }
  fmt::print(stderr, "{0}: {1}; {0} --help says what is accepted\n", name,
             UsageMessage(*app, error));
  return kExitUsage;
}

int Main(int argc, char** argv) {
  CLI::App app(kDescription, "shorthand");
  app.set_version_flag("--version", std::string("shorthand ") + SHORTHAND_VERSION);
  app.footer(kExamples);
  const Runner run = DeclareCommands(Commands(), app);
  if (argc < 2) {
    fmt::print("{}", app.help());
    return kExitDone;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return UsageError(app, error);
  }
  const int code = run();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Fail(Internal("the output could not be written in full"));
  }
  return code;
}

}  // namespace
}  // namespace shorthand

int main(int argc, char** argv) {
  try {
    return shorthand::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "shorthand: {}\n", error.what());
    return shorthand::kExitFailed;
  }
}
