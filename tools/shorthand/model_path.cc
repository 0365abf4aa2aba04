#include "model_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

extern char** environ;

namespace shorthand {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kShortNames = {"smollm2", "qwen", "gemma", "qwen15"};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// The script of the source tree this command was built from, else one in PATH.
std::string FetchProgram() {
  const fs::path script = fs::path(SHORTHAND_SCRIPTS_DIR) / "fetch-models";
  return IsFile(script) ? script.string() : "fetch-models";
}

// Runs the program with its stdout, which lists paths, discarded. Errors: kFailedPrecondition.
Status Fetch(std::string name) {
  std::string program = FetchProgram();
  std::array<char*, 3> arguments = {program.data(), name.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return FailedPrecondition(
        fmt::format("model {} is not here and {} cannot be run; give a path of a GGUF file, or set "
                    "SHORTHAND_MODELS to the folder that holds {}.gguf",
                    name, program, name));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return FailedPrecondition(fmt::format("model {} could not be fetched", name));
  }
  return OkStatus();
}

}  // namespace

std::string ModelsFolder() {
  const std::string folder = Environment("SHORTHAND_MODELS");
  return folder.empty() ? Environment("HOME") + "/.cache/shorthand/models" : folder;
}

Result<std::string> ModelPath(const std::string& model) {
  if (IsFile(model)) return model;
  if (std::find(kShortNames.begin(), kShortNames.end(), model) == kShortNames.end()) {
    return NotFound(
        fmt::format("there is no model file {}; give a path of a GGUF file or one of {}", model,
                    fmt::join(kShortNames, ", ")));
  }
  const fs::path path = fs::path(ModelsFolder()) / (model + ".gguf");
  if (!IsFile(path)) {
    if (Status status = Fetch(model); !status.ok()) return status;
  }
  if (!IsFile(path)) {
    return FailedPrecondition(
        fmt::format("model {} was fetched, but {} is not there", model, path.string()));
  }
  return path.string();
}

}  // namespace shorthand
