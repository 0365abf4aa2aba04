// The recipe that a model's own statistics choose: `auto`, `auto:BITS`, or the best one that fits
// into a memory. What is chosen is an ordinary recipe, a text like any other.
// Thread-safety: values and pure functions.
#ifndef SHORTHAND_TUNE_AUTO_RECIPE_H_
#define SHORTHAND_TUNE_AUTO_RECIPE_H_

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "shorthand/calibration.h"
#include "shorthand/recipe.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"
#include "tune/budget.h"

namespace shorthand {

// `auto` spends as few bits as keep the predicted KL below this.
inline constexpr double kAutoKl = 0.001;

// `auto:BITS`: bits of a code, as the presets count them (4bit has 4); without: as few as do.
struct AutoBits {
  std::optional<double> bits = {};
  std::string options = {};  // such as ",recent=0": they replace those of the preset
};

// A recipe, or the wish to have one chosen.
using RecipeRequest = std::variant<Recipe, AutoBits, MemoryBudget>;

// `auto` or `auto:BITS`, with options behind them as behind a preset, or a recipe's text.
// Errors: those of Recipe::Parse; kInvalidArgument for bits below 2 or above 8.
Result<RecipeRequest> ParseRecipeRequest(std::string_view text);

struct ChosenRecipe {
  Recipe recipe;
  double bits = 0;          // of a code, mean
  double predicted_kl = 0;  // nats; of quantization alone, without what stays exact
  std::string reason;       // in a sentence or two, for people
};

// Errors: those of PredictDamage.
Result<ChosenRecipe> ChooseRecipe(const Shape& shape, const Calibration& calibration,
                                  const AutoBits& wish);

// f16 where that fits. Errors: those of PredictDamage; kResourceExhausted if nothing fits, naming
// the least that would.
Result<ChosenRecipe> ChooseRecipe(const Shape& shape, const Calibration& calibration,
                                  const MemoryBudget& budget);

}  // namespace shorthand

#endif  // SHORTHAND_TUNE_AUTO_RECIPE_H_
