#include "eval/windows.h"

#include <fmt/format.h>

#include <algorithm>

namespace shorthand {

Result<std::vector<Window>> CutWindows(const Vocab& vocab, std::string_view text,
                                       int64_t window_tokens, int64_t windows) {
  if (window_tokens < kMinWindowTokens || windows < 1) {
    return InvalidArgument(
        fmt::format("{} windows of {} tokens; at least 1 window of {} tokens is needed", windows,
                    window_tokens, kMinWindowTokens));
  }
  if (text.empty()) return InvalidArgument("the text is empty");
  const auto tokens = vocab.Tokenize(text, Place::kBegin, Markup::kIgnore);
  if (!tokens.ok()) return tokens.status();
  const auto nothing = vocab.Tokenize("", Place::kBegin, Markup::kIgnore);
  if (!nothing.ok()) return nothing.status();
  const int64_t count = static_cast<int64_t>(tokens->size());
  if (count < window_tokens) {
    return InvalidArgument(
        fmt::format("the text has {} tokens, fewer than one window of {}; give a longer text or a "
                    "shorter context",
                    count, window_tokens));
  }
  std::vector<Window> result;
  for (int64_t w = 0; w < std::min(windows, count / window_tokens); ++w) {
    const auto begin = tokens->begin() + w * window_tokens;
    Window window(begin, begin + window_tokens);
    const bool opens = !nothing->empty() && tokens->front() == nothing->front();
    if (opens) window.front() = nothing->front();
    result.push_back(std::move(window));
  }
  return result;
}

}  // namespace shorthand
