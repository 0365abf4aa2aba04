#include "model_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "eval_text.h"
#include "model/model.h"
#include "model_path.h"
#include "progress.h"

namespace shorthand {
namespace {

bool ReadNumber(std::string_view text, int64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= 0;
}

// "64..87", or "5".
Result<Span> ParseSpan(const char* name, const std::string& text) {
  const size_t dots = text.find("..");
  Span span;
  const bool ok = ReadNumber(std::string_view(text).substr(0, dots), &span.first) &&
                  (dots == std::string::npos ||
                   ReadNumber(std::string_view(text).substr(dots + 2), &span.last));
  if (dots == std::string::npos) span.last = span.first;
  if (ok && span.first <= span.last) return span;
  return InvalidArgument(fmt::format(
      "{} \"{}\": a span is a number or two, the first and the last, as in 64..87", name, text));
}

// Whether it is uB/page and nothing else.
bool IsWide(const Side& side) {
  Side wide;
  wide.code = Code::kUint;
  wide.bits = side.bits;
  wide.axis = Axis::kPage;
  return side == wide;
}

Result<SliceCode> ParseCode(const std::string& text, SideKind kind) {
  constexpr std::string_view kLayer = "/layer";
  SliceCode code = {.text = text, .side = {}, .by_layer = text.ends_with(kLayer)};
  const std::string side =
      code.by_layer ? text.substr(0, text.size() - kLayer.size()) + "/page" : text;
  const bool keys = kind == SideKind::kKey;
  const auto recipe = Recipe::Parse(keys ? "k=" + side + ",v=f16" : "k=f16,v=" + side);
  if (!recipe.ok()) return recipe.status();
  code.side = keys ? recipe->kv.k : recipe->kv.v;
  if (!code.by_layer || IsWide(code.side)) return code;
  return InvalidArgument(
      fmt::format("code \"{}\": /layer goes with uB alone, as in u4/layer", text));
}

Status CheckSpan(const char* name, const Span& span, int64_t count) {
  if (span.last < count) return OkStatus();
  return OutOfRange(
      fmt::format("{0} {1}..{2}: there are {0} 0 to {3}", name, span.first, span.last, count - 1));
}

Status CheckPlace(const Shape& shape, int layer, int head) {
  const int layers = static_cast<int>(shape.layers.size());
  if (layer >= layers) {
    return OutOfRange(fmt::format("layer {}: the model has layers 0 to {}", layer, layers - 1));
  }
  const LayerShape& of = shape.layers[layer];
  if (of.kv_owner >= 0) {
    return OutOfRange(
        fmt::format("layer {}: it reads the keys and values of layer {}", layer, of.kv_owner));
  }
  if (head >= 0 && head < of.kv_heads) return OkStatus();
  return OutOfRange(
      fmt::format("head {}: layer {} has KV heads 0 to {}", head, layer, of.kv_heads - 1));
}

// Of rows [..][dim].
std::vector<float> Tile(std::span<const float> rows, int dim, const Span& tokens,
                        const Span& channels) {
  std::vector<float> tile;
  for (int64_t t = tokens.first; t <= tokens.last; ++t) {
    const auto row = rows.subspan(t * dim + channels.first, channels.count());
    tile.insert(tile.end(), row.begin(), row.end());
  }
  return tile;
}

int64_t Groups(const std::vector<int64_t>& edges) {
  return std::max<int64_t>(static_cast<int64_t>(edges.size()) - 1, 0);
}

}  // namespace

Result<CapturedText> CaptureModel(const CaptureRequest& request) {
  const auto path = ModelPath(request.model);
  if (!path.ok()) return path.status();
  const auto text = ReadEvalText(request.text_file);
  if (!text.ok()) return text.status();
  const auto model =
      Model::Load(*path, {.precision = Precision::kNative, .threads = request.threads});
  if (!model.ok()) return model.status();
  const auto all = (*model)->vocab().Tokenize(text->text, Place::kBegin, Markup::kIgnore);
  if (!all.ok()) return all.status();
  size_t count = std::min<size_t>(request.tokens, all->size());
  if (const int64_t most = (*model)->shape().max_context_tokens; most > 0) {
    count = std::min<size_t>(count, most);
  }
  Progress progress("capturing keys and values");
  auto capture = CaptureLayers(**model, std::span(*all).first(count),
                               [&progress](double share) { progress.Update(share); });
  if (!capture.ok()) return capture.status();
  return CapturedText{(*model)->shape(), text->name, *std::move(capture)};
}

Result<SliceRequest> ParseSliceRequest(const SliceText& text) {
  if (text.side != "K" && text.side != "V") {
    return InvalidArgument(
        fmt::format("side \"{}\": it is K, for keys, or V, for values", text.side));
  }
  SliceRequest request;
  request.layer = text.layer;
  request.head = text.head;
  request.kind = text.side == "K" ? SideKind::kKey : SideKind::kValue;
  const auto tokens = ParseSpan("tokens", text.tokens);
  if (!tokens.ok()) return tokens.status();
  request.tokens = *tokens;
  if (!text.channels.empty()) {
    const auto channels = ParseSpan("channels", text.channels);
    if (!channels.ok()) return channels.status();
    request.channels = *channels;
  }
  request.shown_channels = text.shown_channels;
  for (const std::string& code : text.codes) {
    auto parsed = ParseCode(code, request.kind);
    if (!parsed.ok()) return parsed.status();
    request.codes.push_back(*std::move(parsed));
  }
  request.exact = {.sinks = text.sinks, .recent = text.exact};
  return request;
}

Span LoudestChannels(std::span<const float> rows, int dim, int shown) {
  std::vector<double> squares(dim);
  for (size_t i = 0; i < rows.size(); ++i) squares[i % dim] += double{rows[i]} * rows[i];
  const auto loudest = std::max_element(squares.begin(), squares.end()) - squares.begin();
  const int64_t first = loudest / shown * shown;
  return {first, std::min<int64_t>(first + shown, dim) - 1};
}

std::vector<float> HeadRows(const CapturedText& captured, int layer, int head, SideKind kind) {
  const LayerShape& shape = captured.shape.layers[layer];
  const CapturedLayer& rows = captured.capture.layers[layer];
  return kind == SideKind::kKey ? RowsOfHead(rows.k, head, shape.kv_heads, shape.k_dim)
                                : RowsOfHead(rows.v, head, shape.kv_heads, shape.v_dim);
}

Result<ModelSlice> SliceOf(const CapturedText& captured, const SliceRequest& request) {
  ModelSlice slice;
  slice.layer =
      request.layer >= 0 ? request.layer : static_cast<int>(captured.shape.layers.size() / 2);
  slice.head = request.head;
  slice.kind = request.kind;
  slice.exact = request.exact;
  slice.text_tokens = captured.capture.tokens;
  slice.tokens = request.tokens;
  if (Status status = CheckPlace(captured.shape, slice.layer, slice.head); !status.ok()) {
    return status;
  }
  const LayerShape& layer = captured.shape.layers[slice.layer];
  slice.dim = slice.kind == SideKind::kKey ? layer.k_dim : layer.v_dim;
  const std::vector<float> head = HeadRows(captured, slice.layer, slice.head, slice.kind);
  slice.channels = request.channels.count() > 0
                       ? request.channels
                       : LoudestChannels(head, slice.dim, request.shown_channels);
  for (const Status& status : {CheckSpan("channels", slice.channels, slice.dim),
                               CheckSpan("tokens", slice.tokens, slice.text_tokens)}) {
    if (!status.ok()) return status;
  }
  slice.x = Tile(head, slice.dim, slice.tokens, slice.channels);
  const int channels = static_cast<int>(slice.channels.count());
  const auto quantize = [&](const SliceCode& code, std::span<const float> x, int width) {
    if (!IsWide(code.side)) return QuantizeSlice(code.side, slice.kind, x, width, slice.exact);
    if (!code.by_layer) return QuantizeByPage(code.side.bits, x, width, slice.exact);
    const CapturedLayer& rows = captured.capture.layers[slice.layer];
    return QuantizeByLayer(code.side.bits, x, width, slice.exact,
                           slice.kind == SideKind::kKey ? rows.k : rows.v,
                           int64_t{layer.kv_heads} * slice.dim);
  };
  for (const SliceCode& code : request.codes) {
    auto tile = quantize(code, slice.x, channels);
    if (!tile.ok()) return tile.status();
    const auto whole = quantize(code, head, slice.dim);
    if (!whole.ok()) return whole.status();
    slice.codes.push_back({code.text, *std::move(tile), whole->relative_error,
                           whole->group_tokens * whole->group_channels,
                           Groups(whole->token_edges) * Groups(whole->channel_edges)});
  }
  return slice;
}

}  // namespace shorthand
