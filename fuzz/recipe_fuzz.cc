// recipe_fuzz: any text is refused with a sentence or is a recipe whose canonical text is a fixed
// point, which can be described, and whose sizes can be computed for a shape that it fits.
#include <string>

#include "fuzz_input.h"
#include "quant/every_side.h"
#include "quant/footprint.h"
#include "shorthand/recipe.h"
#include "shorthand/shape.h"

namespace shorthand {
namespace {

constexpr const char* kWords[] = {
    "",     ",",     ":",      "@",      "/",     "+",     "-1",    "0.95",    "999",
    "\xff", "k=",    "v=",     "kv=",    "/tok",  "/ch32", "/grid", "u4",      "lm3",
    "nuq3", "w4.5",  "f16",    "had64:", "mu:",   "pre:",  "bal:",  ":mse",    ":ub",
    ":cal", ":out2", ":hi0.5", "@swa",   "@0..3", "4bit",  "sink=", "recent=", "cal="};
constexpr const char* kSteps[] = {"", "", "mu:", "had:", "had32:", "mu:had:", "smooth:", "pre:"};
constexpr const char* kTunes[] = {"", "", ":norm", ":clip0.9", ":mse", ":ub", ":one", ":ls"};
constexpr const char* kOptions[] = {
    "",        ",sink=4",         ",sink=128",   ",recent=128",
    ",cal=0a", ",recent=1280000", "@swa,kv=f16", "@-1,k=f16,v=u2/tok"};

std::string ReadSide(FuzzInput& input) {
  const std::string side = input.Pick(EveryKeySide(input.Pick(Registry())));
  return input.Pick(kSteps) + side + input.Pick(kTunes);
}

// A quarter of the inputs are bytes as they come, the others recipes with up to three edits.
std::string ReadText(FuzzInput& input) {
  if (input.Once(4)) {
    const auto rest = input.Rest();
    return {rest.begin(), rest.end()};
  }
  std::string text = "k=" + ReadSide(input) + ",v=" + ReadSide(input) + input.Pick(kOptions);
  if (input.Once(8)) text = input.Pick(Presets()).name;
  for (int edits = input.Below(4); edits > 0 && !text.empty(); --edits) {
    const size_t at = input.Below(static_cast<int>(text.size()));
    text.replace(at, input.Below(4), input.Pick(kWords));
  }
  return text;
}

void CheckSizes(const Recipe& recipe, const std::string& text) {
  Shape shape;
  shape.layers.assign(4, {.query_heads = 4, .kv_heads = 2, .k_dim = 128, .v_dim = 64});
  shape.layers[1].window = 512;
  const auto groups = ResolveGroups(shape, recipe);
  if (!groups.ok()) {
    Require(!groups.status().message().empty(), "refused without a sentence: " + text);
    return;
  }
  const Footprint footprint = FootprintOf(*groups, 1000, 2);
  Require(footprint.logical_bytes <= footprint.stored_bytes &&
              footprint.stored_bytes <= footprint.allocated_bytes,
          "sizes out of order: " + text);
}

void Check(const std::string& text) {
  const auto recipe = Recipe::Parse(text);
  if (!recipe.ok()) {
    Require(!recipe.status().message().empty(), "refused without a sentence: " + text);
    return;
  }
  const std::string canonical = recipe->ToString();
  const auto again = Recipe::Parse(canonical);
  Require(again.ok() && *again == *recipe, canonical + " is not what was parsed: " + text);
  Require(again->ToString() == canonical, canonical + " is not canonical: " + text);
  Require(!Describe(*recipe).empty(), "not described: " + text);
  CheckSizes(*recipe, text);
}

}  // namespace
}  // namespace shorthand

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shorthand::FuzzInput input({data, size});
  shorthand::Check(shorthand::ReadText(input));
  return 0;
}
