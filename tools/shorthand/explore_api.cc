#include "explore_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "model_shape.h"
#include "plan/units.h"
#include "plan_report.h"
#include "shorthand/recipe.h"
#include "slice_json.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "arrays are sent as they lie");

// Text that is not UTF-8 is repaired.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ApiReply JsonReply(const Json& json) { return {.body = Dump(json)}; }

// Reads parameters and keeps the first thing that is wrong.
class Reader {
 public:
  Reader(const ApiParameters& parameters, std::initializer_list<std::string_view> known)
      : parameters_(parameters) {
    for (const auto& [name, value] : parameters) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      Fail(
          fmt::format("there is no parameter \"{}\"; known are: {}", name, fmt::join(known, ", ")));
    }
  }

  const Status& status() const { return status_; }

  std::string Text(const char* name, const std::string& otherwise) {
    const auto [first, last] = parameters_.equal_range(name);
    if (first == last) return otherwise;
    if (std::next(first) != last) Fail(fmt::format("{} is given twice", name));
    return first->second;
  }

  std::vector<std::string> Texts(const char* name) const {
    std::vector<std::string> texts;
    const auto [first, last] = parameters_.equal_range(name);
    for (auto it = first; it != last; ++it) texts.push_back(it->second);
    return texts;
  }

  template <typename Number>
  Number Value(const char* name, Number otherwise, Number least, Number most) {
    const std::string text = Text(name, "");
    if (text.empty() && !parameters_.contains(name)) return otherwise;
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool read = error == std::errc() && end == text.data() + text.size();
    if (read && value >= least && value <= most) return value;
    Fail(fmt::format("{}={}: it takes a number from {} to {}", name, text, least, most));
    return otherwise;
  }

 private:
  void Fail(const std::string& sentence) {
    if (status_.ok()) status_ = InvalidArgument(sentence);
  }

  const ApiParameters& parameters_;
  Status status_;
};

Json SourceJson(const HeadSource& source) {
  Json heads = Json::array();
  for (const HeadContrast& head : source.heads) {
    heads.push_back({{"layer", head.layer},
                     {"head", head.head},
                     {"side", SideName(head.kind)},
                     {"dim", head.dim},
                     {"token_error", head.token_error},
                     {"channel_error", head.channel_error},
                     {"first_channel", head.first_channel}});
  }
  const Shape& shape = source.captured.shape;
  return {{"name", source.name},
          {"model_name", shape.name},
          {"text", source.captured.text},
          {"captured_tokens", source.captured.capture.tokens},
          {"layers", shape.layers.size()},
          {"dim_k", shape.layers.front().k_dim},
          {"dim_v", shape.layers.front().v_dim},
          {"heads", std::move(heads)}};
}

Result<const HeadSource*> SourceOf(const ExploreData& data, const std::string& name) {
  const auto source = std::find_if(data.sources.begin(), data.sources.end(),
                                   [&](const HeadSource& of) { return of.name == name; });
  if (source != data.sources.end()) return &*source;
  return InvalidArgument(
      fmt::format("source={}: it is model, if there is one, or synthetic", name));
}

void AppendFloats(const std::vector<float>& values, std::string* body) {
  body->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

std::string SliceBody(const ModelSlice& slice) {
  std::string header = Dump(SliceJson(slice));
  header.resize((header.size() + 3) / 4 * 4, ' ');
  const auto length = static_cast<uint32_t>(header.size());
  std::string body(reinterpret_cast<const char*>(&length), sizeof(length));
  body += header;
  AppendFloats(slice.x, &body);
  for (const CodedSlice& coded : slice.codes) AppendFloats(coded.slice.read, &body);
  return body;
}

}  // namespace

ApiReply ErrorReply(int status, const std::string& sentence) {
  return {.status = status, .body = Dump({{"error", sentence}})};
}

ApiReply InfoReply(const ExploreData& data, const ApiParameters& parameters) {
  const Reader reader(parameters, {});
  if (!reader.status().ok()) return ErrorReply(400, reader.status().message());
  Json sources = Json::array(), shapes = Json::array(), presets = Json::array();
  for (const HeadSource& source : data.sources) sources.push_back(SourceJson(source));
  if (!data.model.empty()) shapes.push_back(data.model);
  for (const std::string_view name : KnownShapes()) shapes.push_back(name);
  for (const Preset& preset : Presets()) {
    presets.push_back(
        {{"name", preset.name}, {"canonical", preset.canonical}, {"source", preset.source}});
  }
  return JsonReply({{"version", SHORTHAND_VERSION},
                    {"model", data.model.empty() ? Json() : Json(data.model)},
                    {"sources", std::move(sources)},
                    {"shapes", std::move(shapes)},
                    {"presets", std::move(presets)}});
}

ApiReply PlanReply(const ExploreData& data, const ApiParameters& parameters) {
  Reader reader(parameters, {"model", "context", "users", "memory", "weight_bits", "kv"});
  const std::string name = reader.Text("model", "");
  PlanRequest request = {
      .context_tokens = reader.Value<int64_t>("context", 8192, 1, kMaxPlanTokens),
      .users = reader.Value<int64_t>("users", 1, 1, kMaxPlanUsers),
      .memory_bytes = reader.Value<uint64_t>("memory", 0, 1, kMaxPlanMemoryBytes),
      .weight_bits = reader.Value<double>("weight_bits", 4.5, 0.1, 64.0),
      .recipes = reader.Texts("kv")};
  if (!reader.status().ok()) return ErrorReply(400, reader.status().message());
  // Names alone: a page does not choose files of the machine.
  const auto model = !data.model.empty() && name == data.model ? Result<ModelShape>(*data.shape)
                                                               : ShapeFromName(name);
  if (!model.ok()) return ErrorReply(400, model.status().message());
  const auto plan = MakePlan(*model, request);
  if (!plan.ok()) return ErrorReply(400, plan.status().message());
  return JsonReply(PlanJson(*model, request, *plan));
}

ApiReply ResultsReply(const ExploreData& data, const ApiParameters& parameters) {
  const Reader reader(parameters, {});
  if (!reader.status().ok()) return ErrorReply(400, reader.status().message());
  return JsonReply(data.results);
}

ApiReply SliceReply(const ExploreData& data, const ApiParameters& parameters) {
  constexpr int kMost = std::numeric_limits<int32_t>::max();
  Reader reader(parameters,
                {"source", "layer", "head", "side", "tokens", "channels", "code", "exact", "sink"});
  const auto source = SourceOf(data, reader.Text("source", data.sources.front().name));
  SliceText text = {.layer = reader.Value("layer", -1, 0, kMost),
                    .head = reader.Value("head", 0, 0, kMost),
                    .side = reader.Text("side", "K"),
                    .tokens = reader.Text("tokens", SliceText().tokens),
                    .channels = reader.Text("channels", ""),
                    .exact = reader.Value("exact", 0, 0, kMost),
                    .sinks = reader.Value("sink", 0, 0, kMost)};
  if (const auto codes = reader.Texts("code"); !codes.empty()) text.codes = codes;
  if (!reader.status().ok()) return ErrorReply(400, reader.status().message());
  if (!source.ok()) return ErrorReply(400, source.status().message());
  const auto request = ParseSliceRequest(text);
  if (!request.ok()) return ErrorReply(400, request.status().message());
  const auto slice = SliceOf((*source)->captured, *request);
  if (!slice.ok()) return ErrorReply(400, slice.status().message());
  return {.content_type = "application/octet-stream", .body = SliceBody(*slice)};
}

ApiReply LiveReply(LiveRuns& live, const ApiParameters& parameters) {
  const Reader reader(parameters, {});
  if (!reader.status().ok()) return ErrorReply(400, reader.status().message());
  return JsonReply(live.State());
}

ApiReply StartLiveReply(LiveRuns& live, const ApiParameters& parameters) {
  Reader reader(parameters, {"kv"});
  const std::string recipe = reader.Text("kv", "");
  if (!reader.status().ok()) return ErrorReply(400, reader.status().message());
  const Status status = live.Start(recipe);
  if (status.ok()) return JsonReply(live.State());
  return ErrorReply(status.code() == StatusCode::kFailedPrecondition ? 409 : 400, status.message());
}

ApiReply StopLiveReply(LiveRuns& live, const ApiParameters& parameters) {
  const Reader reader(parameters, {});
  if (!reader.status().ok()) return ErrorReply(400, reader.status().message());
  live.Stop();
  return JsonReply(live.State());
}

}  // namespace shorthand
