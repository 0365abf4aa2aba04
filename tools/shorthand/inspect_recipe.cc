// `shorthand inspect recipe`: a recipe in words and the bytes of its pages.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "plan/units.h"
#include "quant/footprint.h"
#include "shorthand/recipe.h"
#include "terminal.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string recipe;
  int dim = 128;
  bool json = false;
};

// True bits depend on the length: the exact tail weighs less in a longer context.
constexpr int64_t kLengths[] = {1024, 8192, 131072};

Result<std::vector<LayerGroup>> GroupsOf(const Recipe& recipe, int dim) {
  Shape shape;
  shape.name = fmt::format("a head of {} channels", dim);
  shape.layers = {{.query_heads = 1, .kv_heads = 1, .k_dim = dim, .v_dim = dim}};
  return ResolveGroups(shape, recipe);
}

struct Part {
  const char* name;
  const char* key;
  size_t bytes;
};

std::vector<Part> PartsOf(const LayerGroup& group) {
  const LayerFormat& layer = group.layers.front();
  const PageLayout& page = group.never_sealed ? layer.exact : layer.sealed;
  const size_t descriptor = group.never_sealed ? 0 : sizeof(PageDescriptor);
  return {{"K metadata", "k_meta_bytes", page.k.meta_bytes},
          {"K codes", "k_codes_bytes", page.k.codes_bytes},
          {"V metadata", "v_meta_bytes", page.v.meta_bytes},
          {"V codes", "v_codes_bytes", page.v.codes_bytes},
          {"descriptor", "descriptor_bytes", descriptor}};
}

size_t TotalBytes(const std::vector<Part>& parts) {
  size_t bytes = 0;
  for (const Part& part : parts) bytes += part.bytes;
  return bytes;
}

void PrintPage(const std::vector<LayerGroup>& groups, int dim) {
  const auto parts = PartsOf(groups.front());
  Table table;
  table.AddColumn(fmt::format("a page of {} tokens, head dim {}", kPageTokens, dim),
                  Table::Align::kLeft);
  table.AddColumn("bytes", Table::Align::kRight);
  for (const Part& part : parts) table.AddRow({{part.name}, {fmt::format("{}", part.bytes)}});
  const size_t total = TotalBytes(parts);
  table.AddRow({{"together", Style::kStrong}, {fmt::format("{}", total), Style::kStrong}});
  fmt::print("\n{}", table.ToString());

  fmt::print("\nbits of a value {:.2f}", FootprintOf(groups, kPageTokens, 1).bits);
  fmt::print("; with everything that is stored");
  for (int64_t tokens : kLengths) {
    fmt::print("{} {:.2f} at {}", tokens == kLengths[0] ? "" : ",",
               FootprintOf(groups, tokens, 1).true_bits, FormatTokens(tokens));
  }
  fmt::print(" tokens\n");
}

Json PageJson(const std::vector<LayerGroup>& groups) {
  const auto parts = PartsOf(groups.front());
  Json page = {{"tokens", kPageTokens}};
  for (const Part& part : parts) page[part.key] = part.bytes;
  page["bytes"] = TotalBytes(parts);
  return page;
}

Json TrueBitsJson(const std::vector<LayerGroup>& groups) {
  Json lengths = Json::array();
  for (int64_t tokens : kLengths) {
    lengths.push_back(
        {{"tokens", tokens}, {"true_bits", FootprintOf(groups, tokens, 1).true_bits}});
  }
  return lengths;
}

int RunInspectRecipe(const Options& options) {
  const auto recipe = Recipe::Parse(options.recipe);
  if (!recipe.ok()) return FailUsage(recipe.status());
  const auto groups = GroupsOf(*recipe, options.dim);
  if (options.json) {
    const bool ok = groups.ok();
    PrintJson({{"recipe", options.recipe},
               {"canonical", recipe->ToString()},
               {"description", Describe(*recipe)},
               {"dim", options.dim},
               {"supported", ok},
               {"error", ok ? Json() : Json(groups.status().message())},
               {"bits", ok ? Json(FootprintOf(*groups, kPageTokens, 1).bits) : Json()},
               {"page", ok ? PageJson(*groups) : Json()},
               {"lengths", ok ? TrueBitsJson(*groups) : Json()}});
  } else {
    fmt::print("{}\n{}\n", Styled(Style::kStrong, recipe->ToString()), Describe(*recipe));
    if (groups.ok()) PrintPage(*groups, options.dim);
  }
  return groups.ok() ? kExitDone : Fail(groups.status());
}

std::string PresetNames() {
  std::string names;
  std::string line = "Presets:";
  for (const Preset& preset : Presets()) {
    if (line.size() + 1 + preset.name.size() > 96) {
      names += line + "\n";
      line = " ";
    }
    line += fmt::format(" {}", preset.name);
  }
  return names + line;
}

}  // namespace

Runner DeclareInspectRecipe(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.footer(
      "What a recipe stores: its canonical text, the same in words, the bytes of a page part by\n"
      "part, and the bits of a value with everything counted.\n\n"
      "Examples:\n"
      "  shorthand inspect recipe kivi4\n"
      "  shorthand inspect recipe k=u4/ch,v=had:lm4/tok,sink=4 --dim 64\n\n" +
      PresetNames());
  app.add_option("R", options->recipe, "A preset or a recipe's text")->required();
  app.add_option("--dim", options->dim, "Channels of a head; default 128")
      ->type_name("D")
      ->check(CLI::Range(1, kMaxHeadDim).description(""));
  app.add_flag("--json", options->json, "The same for programs");
  return [options] { return RunInspectRecipe(*options); };
}

}  // namespace shorthand
