#include "tune/auto_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "plan/units.h"
#include "tune/rungs.h"

namespace shorthand {
namespace {

constexpr std::string_view kAuto = "auto";

// "keys 2.5 to 6 bits (most in layer 8)".
std::string Range(const Damage& damage, const Allocation& allocation, const char* name,
                  int LayerRungs::* side, const std::vector<Rung>& rungs) {
  int least = -1, most = -1;
  for (int l = 0; l < static_cast<int>(allocation.layers.size()); ++l) {
    if (damage.k[l].empty()) continue;
    const int rung = allocation.layers[l].*side;
    if (least < 0 || rung < allocation.layers[least].*side) least = l;
    if (most < 0 || rung > allocation.layers[most].*side) most = l;
  }
  if (least < 0) return fmt::format("{} are never sealed", name);
  const auto bits = [&](int l) { return rungs[allocation.layers[l].*side].bits; };
  if (bits(least) == bits(most)) return fmt::format("{} {} bits", name, bits(most));
  return fmt::format("{} {} (layer {}) to {} bits (layer {})", name, bits(least), least, bits(most),
                     most);
}

ChosenRecipe Chosen(const Damage& damage, const Allocation& allocation, std::string_view goal) {
  std::string reason = fmt::format(
      "{}: {:.2f} bits a value by what quantizing costs each layer's attention: {}, {}; KL of "
      "about "
      "{:.2g} is expected",
      goal, allocation.bits, Range(damage, allocation, "keys", &LayerRungs::k, KeyRungs()),
      Range(damage, allocation, "values", &LayerRungs::v, ValueRungs()), allocation.kl);
  return {.recipe = RecipeOf(allocation),
          .bits = allocation.bits,
          .predicted_kl = allocation.kl,
          .reason = std::move(reason)};
}

// The sinks, recent tokens and calibration of a choice with so many bits: the options replace those
// of the preset. Errors: those of Recipe::Parse; kInvalidArgument for overrides.
Result<Recipe> OptionsOf(const AutoBits& wish, double bits) {
  auto recipe = Recipe::Parse((bits < kBitsWithoutRecent ? "4bit" : "5bit") + wish.options);
  if (recipe.ok() && !recipe->overrides.empty()) {
    return InvalidArgument(
        fmt::format("auto{}: layers are chosen, and cannot be given as well", wish.options));
  }
  return recipe;
}

Result<ChosenRecipe> WithOptions(ChosenRecipe chosen, const AutoBits& wish) {
  const auto options = OptionsOf(wish, chosen.bits);
  if (!options.ok()) return options.status();
  chosen.recipe.sink_tokens = options->sink_tokens;
  chosen.recipe.recent_tokens = options->recent_tokens;
  chosen.recipe.cal = options->cal;
  return chosen;
}

}  // namespace

Result<RecipeRequest> ParseRecipeRequest(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(','));
  if (name != kAuto && !name.starts_with("auto:")) {
    auto recipe = Recipe::Parse(text);
    if (!recipe.ok()) return recipe.status();
    return RecipeRequest(*std::move(recipe));
  }
  AutoBits wish = {.options = std::string(text.substr(name.size()))};
  if (const auto options = OptionsOf(wish, KeyRungs().front().bits); !options.ok()) {
    return options.status();
  }
  if (name == kAuto) return RecipeRequest(std::move(wish));
  const std::string_view number = name.substr(kAuto.size() + 1);
  const double least = KeyRungs().front().bits, most = KeyRungs().back().bits;
  double bits = 0;
  const auto [end, error] = std::from_chars(number.begin(), number.end(), bits);
  if (error != std::errc() || end != number.end() || !(bits >= least && bits <= most)) {
    return InvalidArgument(fmt::format(
        "recipe \"{}\": auto: takes {} to {} bits, as in auto:4 or auto:3.5", text, least, most));
  }
  wish.bits = bits;
  return RecipeRequest(std::move(wish));
}

Result<ChosenRecipe> ChooseRecipe(const Shape& shape, const Calibration& calibration,
                                  const AutoBits& wish) {
  const auto damage = PredictDamage(shape, calibration);
  if (!damage.ok()) return damage.status();
  const std::vector<Allocation> allocations = AllocationsByBits(shape, *damage);
  if (wish.bits) {
    const auto largest = LargestWithin(shape, allocations, BitBudget{*wish.bits});
    if (!largest.ok()) return largest.status();
    return WithOptions(Chosen(*damage, *largest, fmt::format("auto:{}", *wish.bits)), wish);
  }
  const auto good =
      std::find_if(allocations.begin(), allocations.end(),
                   [](const Allocation& allocation) { return allocation.kl <= kAutoKl; });
  return WithOptions(Chosen(*damage, good == allocations.end() ? allocations.back() : *good, kAuto),
                     wish);
}

Result<ChosenRecipe> ChooseRecipe(const Shape& shape, const Calibration& calibration,
                                  const MemoryBudget& budget) {
  Recipe exact;
  const auto bytes = AllocatedBytes(shape, exact, budget.tokens);
  if (!bytes.ok()) return bytes.status();
  if (*bytes <= budget.bytes) {
    return ChosenRecipe{
        .recipe = exact,
        .bits = 16,
        .predicted_kl = 0,
        .reason = fmt::format("{}: f16 fits, {}", BudgetText(budget), FormatSize(*bytes))};
  }
  const auto damage = PredictDamage(shape, calibration);
  if (!damage.ok()) return damage.status();
  const auto largest = LargestWithin(shape, AllocationsByBits(shape, *damage), budget);
  if (!largest.ok()) return largest.status();
  return Chosen(*damage, *largest, BudgetText(budget));
}

}  // namespace shorthand
