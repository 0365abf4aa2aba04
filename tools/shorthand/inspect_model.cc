// `shorthand inspect model`: what a GGUF file holds, as the engine reads it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "model/gguf_file.h"
#include "model/hyperparams.h"
#include "model_path.h"
#include "plan/units.h"
#include "shape_summary.h"
#include "terminal.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model;
  bool json = false;
};

// Layers that are alike in all that the cache and RoPE see.
struct Kind {
  LayerShape shape;
  RopeParams rope;
  std::vector<int> layers;
};

std::vector<Kind> KindsOf(const Hyperparams& hyper) {
  const auto alike = [](const Kind& kind, const LayerShape& shape, const RopeParams& rope) {
    return kind.shape == shape && kind.rope.dims == rope.dims && kind.rope.base == rope.base &&
           kind.rope.scale == rope.scale;
  };
  std::vector<Kind> kinds;
  for (size_t i = 0; i < hyper.shape.layers.size(); ++i) {
    const LayerShape& shape = hyper.shape.layers[i];
    const RopeParams& rope = hyper.rope[i];
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const Kind& k) { return alike(k, shape, rope); });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {shape, rope, {}});
    kind->layers.push_back(static_cast<int>(i));
  }
  return kinds;
}

// "0-4 6-10 17".
std::string Spans(const std::vector<int>& layers) {
  std::string text;
  for (size_t i = 0; i < layers.size();) {
    size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    if (i > 0) text += ' ';
    text += end - i > 1 ? fmt::format("{}-{}", layers[i], layers[end - 1])
                        : fmt::format("{}", layers[i]);
    i = end;
  }
  return text;
}

struct TypeTotal {
  int64_t tensors = 0;
  int64_t weights = 0;
  uint64_t bytes = 0;
};

std::map<std::string, TypeTotal> TotalsOf(const GgufFile& file) {
  std::map<std::string, TypeTotal> totals;
  for (const TensorInfo& tensor : file.tensors()) {
    TypeTotal& total = totals[ggml_type_name(tensor.type)];
    ++total.tensors;
    total.weights += tensor.elements();
    total.bytes += tensor.bytes.size();
  }
  return totals;
}

std::string LayersTable(const Hyperparams& hyper) {
  Table table;
  table.AddColumn("layers", Table::Align::kLeft);
  for (const char* title : {"query heads", "KV heads", "K dim", "V dim", "window", "RoPE dims",
                            "RoPE base", "position scale"}) {
    table.AddColumn(title, Table::Align::kRight);
  }
  for (const Kind& kind : KindsOf(hyper)) {
    table.AddRow({{Spans(kind.layers)},
                  {fmt::format("{}", kind.shape.query_heads)},
                  {fmt::format("{}", kind.shape.kv_heads)},
                  {fmt::format("{}", kind.shape.k_dim)},
                  {fmt::format("{}", kind.shape.v_dim)},
                  {kind.shape.window > 0 ? fmt::format("{}", kind.shape.window) : "all"},
                  {fmt::format("{}", kind.rope.dims)},
                  {fmt::format("{:.0f}", kind.rope.base)},
                  {fmt::format("{:g}", kind.rope.scale)}});
  }
  return table.ToString();
}

std::string TypesTable(const GgufFile& file) {
  Table table;
  table.AddColumn("weights", Table::Align::kLeft);
  for (const char* title : {"tensors", "values", "bytes", "bits of a value"}) {
    table.AddColumn(title, Table::Align::kRight);
  }
  for (const auto& [type, total] : TotalsOf(file)) {
    const double bits = 8.0 * static_cast<double>(total.bytes) / static_cast<double>(total.weights);
    table.AddRow({{type},
                  {fmt::format("{}", total.tensors)},
                  {fmt::format("{}", total.weights)},
                  {FormatSize(total.bytes)},
                  {fmt::format("{:.2f}", bits)}});
  }
  return table.ToString();
}

void PrintText(const GgufFile& file, const Hyperparams& hyper) {
  fmt::print("{}: {}\n", Styled(Style::kStrong, hyper.shape.name), ShapeLine(hyper.shape));
  fmt::print("architecture {}, width {}, vocabulary {}, made for {} tokens\n",
             hyper.architecture->name, hyper.width, hyper.vocabulary,
             FormatTokens(hyper.shape.max_context_tokens));
  fmt::print("\n{}\n{}", LayersTable(hyper), TypesTable(file));
}

Json ToJson(const GgufFile& file, const Hyperparams& hyper) {
  Json layers = Json::array();
  for (const Kind& kind : KindsOf(hyper)) {
    layers.push_back({{"layers", kind.layers},
                      {"query_heads", kind.shape.query_heads},
                      {"kv_heads", kind.shape.kv_heads},
                      {"k_dim", kind.shape.k_dim},
                      {"v_dim", kind.shape.v_dim},
                      {"window", kind.shape.window > 0 ? Json(kind.shape.window) : Json()},
                      {"rope_dims", kind.rope.dims},
                      {"rope_base", kind.rope.base},
                      {"rope_scale", kind.rope.scale}});
  }
  Json types = Json::array();
  for (const auto& [type, total] : TotalsOf(file)) {
    types.push_back({{"type", type},
                     {"tensors", total.tensors},
                     {"values", total.weights},
                     {"bytes", total.bytes}});
  }
  return {{"name", hyper.shape.name},
          {"architecture", hyper.architecture->name},
          {"width", hyper.width},
          {"vocabulary", hyper.vocabulary},
          {"max_context", hyper.shape.max_context_tokens},
          {"layers", std::move(layers)},
          {"weights", std::move(types)}};
}

int RunInspectModel(const Options& options) {
  const auto path = ModelPath(options.model);
  if (!path.ok()) return Fail(path.status());
  const auto file = GgufFile::Open(*path);
  if (!file.ok()) return Fail(file.status());
  const auto hyper = ReadHyperparams(**file);
  if (!hyper.ok()) return Fail(hyper.status());
  if (options.json) {
    PrintJson(ToJson(**file, *hyper));
  } else {
    PrintText(**file, *hyper);
  }
  return kExitDone;
}

}  // namespace

Runner DeclareInspectModel(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.description(
      "What a model file holds: its layers as the cache sees them, grouped by kind, and its\n"
      "weights by type. Nothing is loaded.");
  app.footer(
      "Examples:\n"
      "  shorthand inspect model smollm2\n"
      "  shorthand inspect model ~/models/some-model.gguf --json");
  app.add_option("MODEL", options->model, "A GGUF file, or the name of one that is fetched")
      ->required();
  app.add_flag("--json", options->json, "The same for programs");
  return [options] { return RunInspectModel(*options); };
}

}  // namespace shorthand
