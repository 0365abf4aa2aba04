#include "shorthand/calibration.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/checksum.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "shorthand calibration";
constexpr int kVersion = 2;
constexpr std::array<std::string_view, 3> kPairNames = {"none", "adjacent", "halves"};

// The vectors of a head, by name.
struct Field {
  std::string_view name;
  std::vector<float> HeadStatistics::* values;
};
constexpr Field kFields[] = {{"k_spread", &HeadStatistics::k_spread},
                             {"q_rms", &HeadStatistics::q_rms}};

// Five digits, as a double that prints as them.
double Rounded(float x) { return std::strtod(fmt::format("{:.5g}", x).c_str(), nullptr); }

Json NumbersJson(const std::vector<float>& numbers) {
  Json json = Json::array();
  for (const float x : numbers) json.push_back(Rounded(x));
  return json;
}

Json HeadJson(const HeadStatistics& head) {
  Json json;
  for (const Field& field : kFields) {
    json[std::string(field.name)] = NumbersJson(head.*field.values);
  }
  return json;
}

Json LayerJson(const LayerStatistics& layer) {
  Json heads = Json::array();
  for (const HeadStatistics& head : layer.heads) heads.push_back(HeadJson(head));
  return {{"rope_pairs", kPairNames[static_cast<size_t>(layer.rope_pairs)]},
          {"rope_dims", layer.rope_dims},
          {"heads", std::move(heads)},
          {"k_noise", NumbersJson(layer.k_noise)},
          {"v_noise", NumbersJson(layer.v_noise)}};
}

Status Corrupt(std::string_view what) {
  return DataLoss(fmt::format("this is no complete calibration: {}", what));
}

// Reads what Parse is given; the first failure stays.
class Reader {
 public:
  Status status;

  const Json* Find(const Json& object, std::string_view name) {
    const auto it = object.is_object() ? object.find(name) : object.end();
    if (object.is_object() && it != object.end()) return &*it;
    Fail(fmt::format("'{}' is missing", name));
    return nullptr;
  }

  template <typename T>
  T Get(const Json& object, std::string_view name, T fallback) {
    const Json* value = Find(object, name);
    if (value == nullptr) return fallback;
    constexpr bool kIsText = std::is_same_v<T, std::string>;
    if (kIsText ? value->is_string() : value->is_number_integer()) return value->get<T>();
    Fail(fmt::format("'{}' is not {}", name, kIsText ? "a text" : "a whole number"));
    return fallback;
  }

  const Json& Array(const Json& object, std::string_view name) {
    static const Json empty = Json::array();
    const Json* value = Find(object, name);
    if (value != nullptr && value->is_array()) return *value;
    Fail(fmt::format("'{}' is no list", name));
    return empty;
  }

  std::vector<float> Numbers(const Json& object, std::string_view name) {
    std::vector<float> numbers;
    for (const Json& value : Array(object, name)) {
      const float x = value.is_number() ? value.get<float>() : -1.0f;
      if (!std::isfinite(x) || x < 0) {
        Fail(fmt::format("'{}' holds {}; numbers from 0 on are expected", name, value.dump()));
        break;
      }
      numbers.push_back(x);
    }
    return numbers;
  }

  RopePairs Pairs(const Json& object) {
    const auto name = Get<std::string>(object, "rope_pairs", "");
    for (size_t i = 0; i < kPairNames.size(); ++i) {
      if (name == kPairNames[i]) return static_cast<RopePairs>(i);
    }
    Fail(fmt::format("'rope_pairs' is '{}'; none, adjacent and halves are known", name));
    return RopePairs::kNone;
  }

  LayerStatistics Layer(const Json& json) {
    LayerStatistics layer;
    layer.rope_pairs = Pairs(json);
    layer.rope_dims = Get(json, "rope_dims", 0);
    for (const Json& head : Array(json, "heads")) {
      HeadStatistics statistics;
      for (const Field& field : kFields) statistics.*field.values = Numbers(head, field.name);
      layer.heads.push_back(std::move(statistics));
    }
    layer.k_noise = Numbers(json, "k_noise");
    layer.v_noise = Numbers(json, "v_noise");
    return layer;
  }

 private:
  void Fail(std::string_view what) {
    if (status.ok()) status = Corrupt(what);
  }
};

std::string Of(const Calibration& calibration) {
  return calibration.model.empty() ? "another model" : calibration.model;
}

}  // namespace

std::string Calibration::ToText() const {
  Json json = {{"format", kFormat}, {"version", kVersion}, {"model", model},
               {"source", source},  {"tokens", tokens},    {"layers", Json::array()}};
  for (const LayerStatistics& layer : layers) json["layers"].push_back(LayerJson(layer));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Calibration> Calibration::Parse(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Corrupt("it is not JSON, or cut off");
  Reader reader;
  if (reader.Get<std::string>(json, "format", "") != kFormat) {
    return Corrupt(fmt::format("'format' is not '{}'", kFormat));
  }
  const int version = reader.Get(json, "version", 0);
  if (version != kVersion) {
    return Unimplemented(fmt::format(
        "this calibration has version {}; this build reads version {}, which it makes with "
        "`shorthand calibrate`",
        version, kVersion));
  }
  Calibration calibration;
  calibration.model = reader.Get<std::string>(json, "model", "");
  calibration.source = reader.Get<std::string>(json, "source", "");
  calibration.tokens = reader.Get<int64_t>(json, "tokens", 0);
  for (const Json& layer : reader.Array(json, "layers")) {
    calibration.layers.push_back(reader.Layer(layer));
  }
  if (!reader.status.ok()) return reader.status;
  return calibration;
}

std::string Calibration::Hash() const {
  const std::string text = ToText();
  return HexOf(Xxh3(text.data(), text.size()));
}

Status Calibration::CheckFits(const Shape& shape) const {
  if (layers.size() != shape.layers.size()) {
    return InvalidArgument(fmt::format("the calibration of {} has {} layers, the model {}",
                                       Of(*this), layers.size(), shape.layers.size()));
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerShape& layer = shape.layers[i];
    const size_t heads = layer.kv_owner >= 0 ? 0 : layer.kv_heads;
    const bool as_many = layers[i].heads.size() == heads;
    bool as_wide = layers[i].rope_dims >= 0 && layers[i].rope_dims % 2 == 0 &&
                   layers[i].rope_dims <= layer.k_dim;
    for (const HeadStatistics& head : layers[i].heads) {
      for (const Field& field : kFields) {
        as_wide = as_wide && (head.*field.values).size() == static_cast<size_t>(layer.k_dim);
      }
    }
    const auto complete = [](const std::vector<float>& noise, size_t widths) {
      return noise.empty() || noise.size() == widths;
    };
    as_wide = as_wide && complete(layers[i].k_noise, kKeyNoiseBits.size()) &&
              complete(layers[i].v_noise, kValueNoiseBits.size());
    if (as_many && as_wide) continue;
    return InvalidArgument(fmt::format(
        "the calibration of {} does not fit layer {}, which has {} KV heads of {} channels",
        Of(*this), i, heads, layer.k_dim));
  }
  return OkStatus();
}

}  // namespace shorthand
