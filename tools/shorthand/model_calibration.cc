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

bool NeedsStatistics(const RecipeRequest& request) {
  const auto* recipe = std::get_if<Recipe>(&request);
  return recipe == nullptr || NeedsCalibration(*recipe);
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

Result<Calibration> CalibrationOf(Model& model, const std::string& model_path,
                                  const std::string& file, const std::stop_token& stop) {
  Progress progress("probing the model's keys");
  auto calibration =
      file.empty()
          ? ProbeModel(model, {.model_path = model_path,
                               .folder = ProbesFolder(),
                               .on_progress = [&](double share) { progress.Update(share); },
                               .stop = stop})
          : ReadCalibration(file);
  if (!calibration.ok()) return calibration;
  if (Status status = calibration->CheckFits(model.shape()); !status.ok()) return status;
  return calibration;
}

Result<ModelRecipes> RecipesFor(Model& model, const std::string& model_path,
                                std::span<const RecipeRequest> requests, const std::string& file,
                                const std::stop_token& stop) {
  ModelRecipes result;
  if (std::any_of(requests.begin(), requests.end(), NeedsStatistics)) {
    auto calibration = CalibrationOf(model, model_path, file, stop);
    if (!calibration.ok()) return calibration.status();
    result.calibration = *std::move(calibration);
  }
  for (const RecipeRequest& request : requests) {
    if (const auto* recipe = std::get_if<Recipe>(&request)) {
      result.recipes.push_back(*recipe);
      continue;
    }
    const auto* budget = std::get_if<MemoryBudget>(&request);
    const auto chosen =
        budget != nullptr
            ? ChooseRecipe(model.shape(), *result.calibration, *budget)
            : ChooseRecipe(model.shape(), *result.calibration, std::get<AutoBits>(request));
    if (!chosen.ok()) return chosen.status();
    fmt::print(stderr, "{}\n{}\n", chosen->reason, chosen->recipe.ToString());
    result.recipes.push_back(chosen->recipe);
  }
  return result;
}

}  // namespace shorthand
