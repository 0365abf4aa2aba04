#include "base/replace_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace shorthand {
namespace {

namespace fs = std::filesystem;

bool Write(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return static_cast<bool>(file);
}

}  // namespace

Status ReplaceFile(const std::string& path, std::string_view text) {
  const Status failure = Internal(fmt::format("{} could not be written", path));
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    return Write(path, text) ? OkStatus() : failure;
  }
  const fs::path target = fs::weakly_canonical(path, error);
  if (error) return failure;
  const std::string unfinished = fmt::format("{}.{}", target.string(), getpid());
  const bool written = Write(unfinished, text);
  if (written) fs::rename(unfinished, target, error);
  if (written && !error) return OkStatus();
  fs::remove(unfinished, error);
  return failure;
}

}  // namespace shorthand
