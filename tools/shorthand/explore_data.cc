#include "explore_data.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <random>
#include <utility>

#include "base/half.h"
#include "model_path.h"
#include "model_shape.h"
#include "results.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

// Of every head that keeps keys and values of its own.
std::vector<HeadContrast> ContrastsOf(const CapturedText& captured) {
  const auto request = ParseSliceRequest({});  // by token, by channel
  std::vector<HeadContrast> contrasts;
  for (int l = 0; l < static_cast<int>(captured.shape.layers.size()); ++l) {
    const LayerShape& layer = captured.shape.layers[l];
    if (layer.kv_owner >= 0) continue;
    for (int h = 0; h < layer.kv_heads; ++h) {
      for (const SideKind kind : {SideKind::kKey, SideKind::kValue}) {
        const int dim = kind == SideKind::kKey ? layer.k_dim : layer.v_dim;
        const std::vector<float> rows = HeadRows(captured, l, h, kind);
        std::array<double, 2> errors = {};
        for (size_t i = 0; i < errors.size(); ++i) {
          const auto slice = QuantizeSlice(request->codes[i].side, kind, rows, dim, {});
          if (slice.ok()) errors[i] = slice->relative_error;
        }
        const int64_t first_channel = LoudestChannels(rows, dim, SliceText().shown_channels).first;
        contrasts.push_back({l, h, kind, dim, errors[0], errors[1], first_channel});
      }
    }
  }
  return contrasts;
}

// The named fields of an object; false if one is missing or null.
bool Take(const Json& object, const std::vector<const char*>& fields, Json* taken) {
  for (const char* field : fields) {
    if (!object.contains(field) || object.at(field).is_null()) return false;
    (*taken)[field] = object.at(field);
  }
  return true;
}

Json Shown(const Json& report, const std::string& file, const std::vector<const char*>& fields,
           const std::vector<const char*>& row_fields) {
  Json shown = {{"file", file}};
  Take(report, fields, &shown);
  Json rows = Json::array();
  for (const Json& row : report.at("rows")) {
    Json taken;
    if (Take(row, row_fields, &taken)) rows.push_back(std::move(taken));
  }
  shown["rows"] = std::move(rows);
  return shown;
}

}  // namespace

Result<ExploreData> ExploreModel(const CaptureRequest& request) {
  ExploreData data = {.model = request.model, .shape = {}, .sources = {}};
  if (!request.model.empty()) {
    const auto path = ModelPath(request.model);
    if (!path.ok()) return path.status();
    auto shape = ShapeFromGgufFile(*path);
    if (!shape.ok()) return shape.status();
    data.shape = *std::move(shape);
    auto captured = CaptureModel(request);
    if (!captured.ok()) return captured.status();
    std::vector<HeadContrast> heads = ContrastsOf(*captured);
    data.sources.push_back({"model", *std::move(captured), std::move(heads)});
  }
  data.sources.push_back(SyntheticSource());
  return data;
}

Json ShownKl(const Json& report, const std::string& file) {
  return Shown(report, file, {"model", "context", "tokens"},
               {"recipe", "canonical", "program", "bits", "true_bits", "kld_mean", "kld_mean_error",
                "kld_p999", "top1"});
}

Result<Json> ResultsOf(const std::vector<std::string>& files) {
  Json kl = Json::array(), speed = Json::array();
  for (const std::string& path : files) {
    const auto results = ReadResults(path);
    if (!results.ok()) return results.status();
    const std::string name = std::filesystem::path(path).filename().string();
    for (const Json& report : results->kl) kl.push_back(ShownKl(report, name));
    for (const Json& report : results->speed) {
      speed.push_back(Shown(report, name, {"model", "threads"},
                            {"engine", "recipe", "depth", "decode_ms_per_token"}));
    }
  }
  return Json{{"kl", std::move(kl)}, {"speed", std::move(speed)}};
}

HeadSource SyntheticSource() {
  constexpr int kTokens = 1024, kDim = 64;
  std::mt19937 random(31);
  std::normal_distribution<float> normal;
  CapturedLayer layer;
  for (int t = 0; t < kTokens; ++t) {
    const float loudness = std::exp(0.5f * normal(random));
    for (int c = 0; c < kDim; ++c) {
      const float offset = c == 3 ? 5.0f : c == 11 ? -5.0f : 0.0f;
      layer.k.push_back(RoundToF16(offset + normal(random)));
      layer.v.push_back(RoundToF16(loudness * normal(random)));
    }
  }
  CapturedText captured;
  captured.shape.name = "synthetic";
  captured.shape.layers = {{.query_heads = 1, .kv_heads = 1, .k_dim = kDim, .v_dim = kDim}};
  captured.text = "synthetic";
  captured.capture.tokens = kTokens;
  captured.capture.layers = {std::move(layer)};
  std::vector<HeadContrast> heads = ContrastsOf(captured);
  return {"synthetic", std::move(captured), std::move(heads)};
}

}  // namespace shorthand
