#include "eval/greedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "eval/lane.h"

namespace shorthand {
namespace {

Token Likeliest(std::span<const float> logits) {
  return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Appends the `tokens` likeliest tokens behind `text`.
Status Write(Model& model, int64_t tokens, const std::function<void()>& on_token,
             std::vector<Token>& text) {
  Recipe f16;
  f16.kv.k.code = f16.kv.v.code = Code::kF16;
  Lane exact(model.shape(), f16);
  const std::span<const Token> prompt = std::span<const Token>(text).first(text.size() - 1);
  for (size_t at = 0; at < prompt.size();) {
    const size_t count = std::min<size_t>(kPromptTokensAtOnce, prompt.size() - at);
    exact.Feed(model, prompt.subspan(at, count), {});
    at += count;
  }
  constexpr int32_t kOnlyRow = 0;
  for (int64_t i = 0; i < tokens; ++i) {
    const Token last = text.back();
    const std::span<const float> logits = exact.Feed(model, {&last, 1}, {&kOnlyRow, 1});
    if (!exact.status().ok()) return exact.status();
    text.push_back(Likeliest(logits));
    if (on_token) on_token();
  }
  return OkStatus();
}

}  // namespace

Result<Passage> ContinueGreedily(Model& model, std::span<const Token> prompt, int64_t tokens,
                                 ScoreBook& book, const std::function<void()>& on_token) {
  const int64_t most = model.shape().max_context_tokens;
  if (static_cast<int64_t>(prompt.size()) + tokens > most) {
    return OutOfRange(
        fmt::format("{} tokens behind a prompt of {}; this model was made for {} at most", tokens,
                    prompt.size(), most));
  }
  Passage passage = {.tokens = {prompt.begin(), prompt.end()},
                     .first_scored = static_cast<int64_t>(prompt.size()) - 1};
  const std::string name = fmt::format("{} likeliest tokens behind {}", tokens, PassageId(passage));
  if (const std::vector<Token>* text = book.FindText(name); text != nullptr) {
    passage.tokens = *text;
    return passage;
  }
  if (Status status = Write(model, tokens, on_token, passage.tokens); !status.ok()) return status;
  book.PutText(name, passage.tokens);
  if (Status status = book.Save(); !status.ok()) return status;
  return passage;
}

int64_t AgreementLength(std::span<const PositionScore> scores) {
  const auto parts = [](const PositionScore& score) { return !score.same_top; };
  return std::find_if(scores.begin(), scores.end(), parts) - scores.begin();
}

std::vector<int64_t> AgreementLengths(std::span<const Passage> passages, const std::string& lane,
                                      const ScoreBook& book) {
  std::vector<int64_t> lengths;
  for (const Passage& passage : passages) {
    const std::vector<PositionScore>* scores = book.Find(PassageId(passage), lane);
    if (scores == nullptr) return {};
    lengths.push_back(AgreementLength(*scores));
  }
  return lengths;
}

}  // namespace shorthand
