#include "eval/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shorthand {

Result<std::vector<Window>> CutWindows(const Vocab& vocab, std::string_view text,
                                       int64_t window_tokens, int64_t windows,
                                       int64_t skipped_tokens) {
  if (window_tokens < kMinWindowTokens || windows < 1 || skipped_tokens < 0) {
    return InvalidArgument(fmt::format(
        "{} windows of {} tokens behind {}; at least 1 window of {} tokens behind 0 is needed",
        windows, window_tokens, skipped_tokens, kMinWindowTokens));
  }
  if (text.empty()) return InvalidArgument("the text is empty");
  const auto tokens = vocab.Tokenize(text, Place::kBegin, Markup::kIgnore);
  if (!tokens.ok()) return tokens.status();
  const auto nothing = vocab.Tokenize("", Place::kBegin, Markup::kIgnore);
  if (!nothing.ok()) return nothing.status();
  const int64_t count = std::max<int64_t>(0, static_cast<int64_t>(tokens->size()) - skipped_tokens);
  if (count < window_tokens) {
    return InvalidArgument(fmt::format(
        "the text has {} tokens{}, fewer than one window of {}; give a longer text or a shorter "
        "context",
        count, skipped_tokens > 0 ? fmt::format(" behind the first {}", skipped_tokens) : "",
        window_tokens));
  }
  std::vector<Window> result;
  for (int64_t w = 0; w < std::min(windows, count / window_tokens); ++w) {
    const auto begin = tokens->begin() + skipped_tokens + w * window_tokens;
    Window window(begin, begin + window_tokens);
    const bool opens = !nothing->empty() && tokens->front() == nothing->front();
    if (opens) window.front() = nothing->front();
    result.push_back(std::move(window));
  }
  return result;
}

std::vector<Passage> PassagesOf(std::vector<Window> windows, int64_t first_scored) {
  std::vector<Passage> passages;
  for (Window& window : windows) passages.push_back({std::move(window), first_scored});
  return passages;
}

}  // namespace shorthand
