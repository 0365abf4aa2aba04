#include "model_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "model/probe.h"
#include "progress.h"
#include "quant/head_tables.h"

namespace shorthand {
namespace {

namespace fs = std::filesystem;

// Where probes are kept: $XDG_CACHE_HOME or ~/.cache.
std::string ProbesFolder() {
  const auto folder = [](const char* variable) -> fs::path {
    const char* value = std::getenv(variable);
    return value == nullptr ? "" : value;
  };
  fs::path cache = folder("XDG_CACHE_HOME");
  if (cache.empty() && !folder("HOME").empty()) cache = folder("HOME") / ".cache";
  return cache.empty() ? "" : (cache / "shorthand/probes").string();
}

}  // namespace

Result<Calibration> ReadCalibration(const std::string& path) {
  std::error_code error;
  std::ifstream file(path, std::ios::binary);
  if (!file || !fs::is_regular_file(path, error)) {
    return NotFound(fmt::format("there is no file {} to read a calibration from", path));
  }
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto calibration = Calibration::Parse(text);
  if (calibration.ok()) return calibration;
  return Status(calibration.status().code(),
                fmt::format("{}: {}", path, calibration.status().message()));
}

Result<std::optional<Calibration>> CalibrationFor(Model& model, const std::string& model_path,
                                                  std::span<const Recipe> recipes,
                                                  const std::string& file) {
  const bool needed = std::any_of(recipes.begin(), recipes.end(),
                                  [](const Recipe& recipe) { return NeedsCalibration(recipe); });
  if (!needed) return std::optional<Calibration>();
  Progress progress("probing the model's keys");
  auto calibration =
      file.empty()
          ? ProbeModel(model, {.model_path = model_path,
                               .folder = ProbesFolder(),
                               .on_progress = [&](double share) { progress.Update(share); }})
          : ReadCalibration(file);
  if (!calibration.ok()) return calibration.status();
  if (Status status = calibration->CheckFits(model.shape()); !status.ok()) return status;
  return std::optional(*std::move(calibration));
}

}  // namespace shorthand
