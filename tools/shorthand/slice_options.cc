#include "slice_options.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "command.h"
#include "plan/units.h"

namespace shorthand {
namespace {

constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();

}  // namespace

void AddCaptureOptions(CLI::App& app, CaptureOptions& options) {
  app.add_option("-f,--file", options.request.text_file,
                 "The text; default: the project's documents")
      ->type_name("TEXT");
  app.add_option("-n,--captured", options.tokens,
                 "Tokens of the text that the model reads at most; default 1024")
      ->type_name("N");
  AddThreadsOption(app, options.request.threads);
}

Result<CaptureRequest> ReadCaptureOptions(const CaptureOptions& options) {
  const auto tokens = ParseTokens(options.tokens, kMostTokens);
  if (!tokens.ok()) return tokens.status();
  CaptureRequest request = options.request;
  request.tokens = *tokens;
  return request;
}

void AddSliceOptions(CLI::App& app, SliceOptions& options) {
  AddModelOption(app, options.capture.request.model);
  AddCaptureOptions(app, options.capture);
  SliceText& slice = options.slice;
  app.add_option("--layer", slice.layer, "Default: the one in the middle")
      ->type_name("L")
      ->check(CLI::Range(0, 100000).description(""));
  app.add_option("--head", slice.head, "The KV head; default 0")
      ->type_name("H")
      ->check(CLI::Range(0, 100000).description(""));
  app.add_option("--side", slice.side, "K: keys; V: values; default K")
      ->type_name("K|V")
      ->check(CLI::IsMember({"K", "V"}).description(""));
  app.add_option("--tokens", slice.tokens,
                 fmt::format("The first and the last; default {}", slice.tokens))
      ->type_name("A..B");
  app.add_option("--channels", slice.channels,
                 fmt::format("The first and the last, a multiple of 8 of them; default: {}, the "
                             "loudest among them",
                             slice.shown_channels))
      ->type_name("A..B");
  app.add_option("--code", slice.codes,
                 fmt::format("How to code it: one side of a recipe, or uB/page and uB/layer, one "
                             "scale for a page or for all heads; repeat it to compare. Default: {}",
                             fmt::join(slice.codes, ", ")))
      ->type_name("SIDE")
      ->allow_extra_args(false);
  app.add_option("--exact", slice.exact, "Tokens at the end that stay exact; default 0")
      ->type_name("N")
      ->check(CLI::Range(int64_t{0}, kMostTokens).description(""));
  app.add_option("--sink", slice.sinks, "Tokens at the start that stay exact; default 0")
      ->type_name("N")
      ->check(CLI::Range(int64_t{0}, kMostTokens).description(""));
}

int ReadSlice(const SliceOptions& options, ModelSlice* slice) {
  const auto capture = ReadCaptureOptions(options.capture);
  if (!capture.ok()) return FailUsage(capture.status());
  const auto request = ParseSliceRequest(options.slice);
  if (!request.ok()) return FailUsage(request.status());
  const auto captured = CaptureModel(*capture);
  if (!captured.ok()) return Fail(captured.status());
  auto result = SliceOf(*captured, *request);
  if (!result.ok()) return Fail(result.status());
  *slice = *std::move(result);
  return kExitDone;
}

}  // namespace shorthand
