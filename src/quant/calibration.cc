#include "shorthand/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/checksum.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "shorthand calibration";
constexpr int kVersion = 3;
constexpr std::array<std::string_view, 3> kPairNames = {"none", "adjacent", "halves"};

// The vectors of a head, by name.
struct Field {
  std::string_view name;
  std::vector<float> HeadStatistics::* values;
};
constexpr Field kFields[] = {{"k_spread", &HeadStatistics::k_spread},
                             {"q_rms", &HeadStatistics::q_rms}};
struct RangeField {
  std::string_view name;
  std::vector<float> KeyRange::* values;
};
constexpr RangeField kRangeFields[] = {{"mean", &KeyRange::mean},
                                       {"min", &KeyRange::min},
                                       {"max", &KeyRange::max},
                                       {"low", &KeyRange::low},
                                       {"high", &KeyRange::high}};

// Five digits, as a double that prints as them.
double Rounded(float x) { return std::strtod(fmt::format("{:.5g}", x).c_str(), nullptr); }

Json NumbersJson(const std::vector<float>& numbers) {
  Json json = Json::array();
  for (const float x : numbers) json.push_back(Rounded(x));
  return json;
}

Json RangeJson(const KeyRange& range) {
  Json json;
  for (const RangeField& field : kRangeFields) {
    json[std::string(field.name)] = NumbersJson(range.*field.values);
  }
  return json;
}

Json HeadJson(const HeadStatistics& head) {
  Json json;
  for (const Field& field : kFields) {
    json[std::string(field.name)] = NumbersJson(head.*field.values);
  }
  json["keys"] = RangeJson(head.keys);
  json["keys_before_rope"] = RangeJson(head.keys_before_rope);
  json["v_max"] = Rounded(head.v_max);
  return json;
}

Json LevelsJson(const LearnedLevels& levels) {
  Json json = Json::array();
  for (const std::vector<float>& of_bits : levels) json.push_back(NumbersJson(of_bits));
  return json;
}

Json LayerJson(const LayerStatistics& layer) {
  Json heads = Json::array();
  for (const HeadStatistics& head : layer.heads) heads.push_back(HeadJson(head));
  return {{"rope_pairs", kPairNames[static_cast<size_t>(layer.rope_pairs)]},
          {"rope_dims", layer.rope_dims},
          {"k_levels", LevelsJson(layer.k_levels)},
          {"v_levels", LevelsJson(layer.v_levels)},
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

  // A number that is finite and, of those that have no sign, not negative.
  float Number(const Json& value, std::string_view name, float least) {
    const float x = value.is_number() ? value.get<float>() : std::nanf("");
    if (std::isfinite(x) && x >= least) return x;
    Fail(fmt::format("'{}' holds {}; {} are expected", name, value.dump(),
                     least == 0 ? "numbers from 0 on" : "finite numbers"));
    return 0;
  }

  std::vector<float> Numbers(const Json& list, std::string_view name, float least) {
    std::vector<float> numbers;
    for (const Json& value : list) {
      numbers.push_back(Number(value, name, least));
      if (!status.ok()) break;
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

  KeyRange Range(const Json& head, std::string_view name) {
    KeyRange range;
    const Json* json = Find(head, name);
    if (json == nullptr) return range;
    for (const RangeField& field : kRangeFields) {
      range.*field.values = Numbers(Array(*json, field.name), field.name, kLowest);
    }
    Expect(InOrder(range.min, range.max), name, "'max' is below 'min'");
    Expect(InOrder(range.low, range.high), name, "'high' is below 'low'");
    return range;
  }

  HeadStatistics Head(const Json& json) {
    HeadStatistics head;
    for (const Field& field : kFields) {
      head.*field.values = Numbers(Array(json, field.name), field.name, 0);
    }
    head.keys = Range(json, "keys");
    head.keys_before_rope = Range(json, "keys_before_rope");
    if (const Json* v_max = Find(json, "v_max")) head.v_max = Number(*v_max, "v_max", 0);
    return head;
  }

  LearnedLevels Levels(const Json& layer, std::string_view name) {
    LearnedLevels levels;
    const Json& lists = Array(layer, name);
    Expect(lists.size() == levels.size(), name, "levels of 2, 3 and 4 bits are expected");
    for (size_t i = 0; i < levels.size() && status.ok(); ++i) {
      levels[i] = Numbers(lists[i], name, kLowest);
      const bool ascending = std::is_sorted(levels[i].begin(), levels[i].end()) &&
                             (levels[i].empty() || levels[i].front() < levels[i].back());
      Expect(ascending, name, "levels are not ascending");
    }
    return levels;
  }

  LayerStatistics Layer(const Json& json) {
    LayerStatistics layer;
    layer.rope_pairs = Pairs(json);
    layer.rope_dims = Get(json, "rope_dims", 0);
    layer.k_levels = Levels(json, "k_levels");
    layer.v_levels = Levels(json, "v_levels");
    for (const Json& head : Array(json, "heads")) layer.heads.push_back(Head(head));
    layer.k_noise = Numbers(Array(json, "k_noise"), "k_noise", 0);
    layer.v_noise = Numbers(Array(json, "v_noise"), "v_noise", 0);
    return layer;
  }

 private:
  static constexpr float kLowest = std::numeric_limits<float>::lowest();

  static bool InOrder(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), std::less_equal<>());
  }

  void Expect(bool holds, std::string_view name, std::string_view otherwise) {
    if (!holds) Fail(fmt::format("in '{}', {}", name, otherwise));
  }

  void Fail(std::string_view what) {
    if (status.ok()) status = Corrupt(what);
  }
};

std::string Of(const Calibration& calibration) {
  return calibration.model.empty() ? "another model" : calibration.model;
}

bool HeadFits(const HeadStatistics& head, size_t dim) {
  const auto fits = [&](const auto& of, const auto& fields) {
    return std::all_of(std::begin(fields), std::end(fields),
                       [&](const auto& field) { return (of.*field.values).size() == dim; });
  };
  return fits(head, kFields) && fits(head.keys, kRangeFields) &&
         fits(head.keys_before_rope, kRangeFields);
}

bool LevelsFit(const LearnedLevels& levels) {
  return levels[0].size() == 4 && levels[1].size() == 8 && levels[2].size() == 16;
}

bool NoiseFits(const std::vector<float>& noise, size_t widths) {
  return noise.empty() || noise.size() == widths;
}

bool LayerFits(const LayerStatistics& layer, const LayerShape& shape, size_t heads) {
  if (layer.heads.size() != heads) return false;
  if (layer.rope_dims < 0 || layer.rope_dims % 2 != 0 || layer.rope_dims > shape.k_dim) {
    return false;
  }
  if (heads > 0 && !(LevelsFit(layer.k_levels) && LevelsFit(layer.v_levels))) return false;
  if (!NoiseFits(layer.k_noise, kKeyNoiseBits.size()) ||
      !NoiseFits(layer.v_noise, kValueNoiseBits.size())) {
    return false;
  }
  return std::all_of(layer.heads.begin(), layer.heads.end(), [&](const HeadStatistics& head) {
    return HeadFits(head, static_cast<size_t>(shape.k_dim));
  });
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
  if (reader.status.ok() && version != kVersion) {
    return Unimplemented(
        fmt::format("this calibration has version {}, this build reads version {}; make it anew "
                    "with this build",
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
    if (LayerFits(layers[i], layer, heads)) continue;
    return InvalidArgument(fmt::format(
        "the calibration of {} does not fit layer {}, which has {} KV heads of {} channels",
        Of(*this), i, heads, layer.k_dim));
  }
  return OkStatus();
}

}  // namespace shorthand
