// What a command's requests become once a model is loaded: recipes, and the calibration that they
// use, from a file or else from the built-in probe.
// Thread-safety: as Calibrate.
#ifndef SHORTHAND_TOOLS_MODEL_CALIBRATION_H_
#define SHORTHAND_TOOLS_MODEL_CALIBRATION_H_

#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "model/model.h"
#include "shorthand/calibration.h"
#include "shorthand/recipe.h"
#include "shorthand/status.h"
#include "tune/auto_recipe.h"

namespace shorthand {

// Errors: kNotFound for a file that cannot be read; those of Calibration::Parse, naming the file.
Result<Calibration> ReadCalibration(const std::string& path);

// From the file, or the built-in probe if `file` is empty, which is said on stderr while it is
// made. Errors: those of ReadCalibration, ProbeModel and Calibration::CheckFits.
Result<Calibration> CalibrationOf(Model& model, const std::string& model_path,
                                  const std::string& file, const std::stop_token& stop = {});

struct ModelRecipes {
  std::vector<Recipe> recipes;             // one for each request
  std::optional<Calibration> calibration;  // if one of them was chosen or needs it

  // What Cache::Open takes.
  const Calibration* calibration_or_null() const { return calibration ? &*calibration : nullptr; }
};

// Says on stderr what was chosen, and why. Errors: those of CalibrationOf and ChooseRecipe.
Result<ModelRecipes> RecipesFor(Model& model, const std::string& model_path,
                                std::span<const RecipeRequest> requests, const std::string& file,
                                const std::stop_token& stop = {});

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_MODEL_CALIBRATION_H_
