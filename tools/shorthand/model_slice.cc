#include "model_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "command.h"
#include "eval/layers.h"
#include "eval_text.h"
#include "model/model.h"
#include "model_path.h"
#include "plan/units.h"
#include "progress.h"

namespace shorthand {
namespace {

constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();

bool ReadNumber(std::string_view text, int64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= 0;
}

// "64..87", or "5".
Result<Span> ParseSpan(const std::string& name, const std::string& text) {
  const size_t dots = text.find("..");
  Span span;
  const bool ok = ReadNumber(std::string_view(text).substr(0, dots), &span.first) &&
                  (dots == std::string::npos ||
                   ReadNumber(std::string_view(text).substr(dots + 2), &span.last));
  if (dots == std::string::npos) span.last = span.first;
  if (ok && span.first <= span.last) return span;
  return InvalidArgument(fmt::format(
      "--{} {}: a span is a number or two, the first and the last, as in 64..87", name, text));
}

SideKind KindOf(const SliceOptions& options) {
  return options.side == "K" ? SideKind::kKey : SideKind::kValue;
}

Result<Side> ParseCode(const std::string& text, SideKind kind) {
  const bool keys = kind == SideKind::kKey;
  const auto recipe = Recipe::Parse(keys ? "k=" + text + ",v=f16" : "k=f16,v=" + text);
  if (!recipe.ok()) return recipe.status();
  return keys ? recipe->kv.k : recipe->kv.v;
}

Status CheckSpan(const char* name, const Span& span, int64_t count) {
  if (span.last < count) return OkStatus();
  return OutOfRange(fmt::format("--{0} {1}..{2}: there are {0} 0 to {3}", name, span.first,
                                span.last, count - 1));
}

Status CheckPlace(const Shape& shape, const SliceOptions& options, int layer) {
  const int layers = static_cast<int>(shape.layers.size());
  if (layer >= layers) {
    return OutOfRange(fmt::format("--layer {}: the model has layers 0 to {}", layer, layers - 1));
  }
  const LayerShape& of = shape.layers[layer];
  if (of.kv_owner >= 0) {
    return OutOfRange(
        fmt::format("--layer {}: it reads the keys and values of layer {}", layer, of.kv_owner));
  }
  if (options.head < of.kv_heads) return OkStatus();
  return OutOfRange(fmt::format("--head {}: layer {} has KV heads 0 to {}", options.head, layer,
                                of.kv_heads - 1));
}

// Of the rows [..][dim], `shown` channels from a multiple of it on: those among which the channel
// lies that is largest on the whole.
Span LoudestChannels(std::span<const float> rows, int dim, int shown) {
  std::vector<double> squares(dim);
  for (size_t i = 0; i < rows.size(); ++i) squares[i % dim] += double{rows[i]} * rows[i];
  const auto loudest = std::max_element(squares.begin(), squares.end()) - squares.begin();
  const int64_t first = loudest / shown * shown;
  return {first, std::min<int64_t>(first + shown, dim) - 1};
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

Result<LayerCapture> Capture(Model& model, const SliceOptions& options) {
  const auto wanted = ParseTokens(options.text_tokens, kMostTokens);
  if (!wanted.ok()) return wanted.status();
  const auto text = ReadEvalText(options.text_file);
  if (!text.ok()) return text.status();
  const auto all = model.vocab().Tokenize(text->text, Place::kBegin, Markup::kIgnore);
  if (!all.ok()) return all.status();
  size_t count = std::min<size_t>(*wanted, all->size());
  if (const int64_t most = model.shape().max_context_tokens; most > 0) {
    count = std::min<size_t>(count, most);
  }
  Progress progress("capturing keys and values");
  return CaptureLayers(model, std::span(*all).first(count),
                       [&progress](double share) { progress.Update(share); });
}

}  // namespace

void AddSliceOptions(CLI::App& app, SliceOptions& options) {
  AddModelOption(app, options.model);
  app.add_option("-f,--file", options.text_file, "The text; default: the project's documents")
      ->type_name("TEXT");
  app.add_option("-n,--captured", options.text_tokens,
                 "Tokens of the text that the model reads at most; default 1024")
      ->type_name("N");
  app.add_option("--layer", options.layer, "Default: the one in the middle")
      ->type_name("L")
      ->check(CLI::Range(0, 100000).description(""));
  app.add_option("--head", options.head, "The KV head; default 0")
      ->type_name("H")
      ->check(CLI::Range(0, 100000).description(""));
  app.add_option("--side", options.side, "K: keys; V: values; default K")
      ->type_name("K|V")
      ->check(CLI::IsMember({"K", "V"}).description(""));
  app.add_option("--tokens", options.tokens, "The first and the last; default 64..87")
      ->type_name("A..B");
  app.add_option("--channels", options.channels,
                 fmt::format("The first and the last, a multiple of 8 of them; default: {}, the "
                             "loudest among them",
                             options.shown_channels))
      ->type_name("A..B");
  app.add_option(
         "--code", options.codes,
         fmt::format("How to code it, one side of a recipe; repeat it to compare. Default: {}",
                     fmt::join(options.codes, ", ")))
      ->type_name("SIDE")
      ->allow_extra_args(false);
  app.add_option("--exact", options.exact, "Tokens at the end that stay exact; default 0")
      ->type_name("N")
      ->check(CLI::Range(int64_t{0}, kMostTokens).description(""));
  app.add_option("--sink", options.sinks, "Tokens at the start that stay exact; default 0")
      ->type_name("N")
      ->check(CLI::Range(int64_t{0}, kMostTokens).description(""));
  AddThreadsOption(app, options.threads);
}

Status CheckSliceOptions(const SliceOptions& options) {
  for (const std::string& code : options.codes) {
    if (const auto side = ParseCode(code, KindOf(options)); !side.ok()) return side.status();
  }
  if (const auto tokens = ParseSpan("tokens", options.tokens); !tokens.ok()) return tokens.status();
  if (!options.channels.empty()) {
    const auto span = ParseSpan("channels", options.channels);
    if (!span.ok()) return span.status();
  }
  return ParseTokens(options.text_tokens, kMostTokens).status();
}

Result<ModelSlice> SliceOfModel(const SliceOptions& options) {
  const auto path = ModelPath(options.model);
  if (!path.ok()) return path.status();
  const auto model =
      Model::Load(*path, {.precision = Precision::kNative, .threads = options.threads});
  if (!model.ok()) return model.status();
  const Shape& shape = (*model)->shape();
  ModelSlice slice;
  slice.layer = options.layer >= 0 ? options.layer : static_cast<int>(shape.layers.size() / 2);
  slice.head = options.head;
  slice.kind = KindOf(options);
  slice.tokens = *ParseSpan("tokens", options.tokens);
  if (Status status = CheckPlace(shape, options, slice.layer); !status.ok()) return status;
  const LayerShape& layer = shape.layers[slice.layer];
  const bool keys = slice.kind == SideKind::kKey;
  slice.dim = keys ? layer.k_dim : layer.v_dim;
  const auto capture = Capture(**model, options);
  if (!capture.ok()) return capture.status();
  slice.text_tokens = capture->tokens;
  const CapturedLayer& rows = capture->layers[slice.layer];
  const std::vector<float> head =
      RowsOfHead(keys ? rows.k : rows.v, slice.head, layer.kv_heads, slice.dim);
  slice.channels = options.channels.empty()
                       ? LoudestChannels(head, slice.dim, options.shown_channels)
                       : *ParseSpan("channels", options.channels);
  for (const Status& status : {CheckSpan("channels", slice.channels, slice.dim),
                               CheckSpan("tokens", slice.tokens, slice.text_tokens)}) {
    if (!status.ok()) return status;
  }
  slice.x = Tile(head, slice.dim, slice.tokens, slice.channels);
  const ExactTokens exact = {.sinks = options.sinks, .recent = options.exact};
  for (const std::string& code : options.codes) {
    const auto side = ParseCode(code, slice.kind);
    if (!side.ok()) return side.status();
    auto tile =
        QuantizeSlice(*side, slice.kind, slice.x, static_cast<int>(slice.channels.count()), exact);
    if (!tile.ok()) return tile.status();
    const auto whole = QuantizeSlice(*side, slice.kind, head, slice.dim, exact);
    if (!whole.ok()) return whole.status();
    slice.codes.push_back({code, *std::move(tile), whole->relative_error});
  }
  return slice;
}

}  // namespace shorthand
