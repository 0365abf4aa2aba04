#include "eval/needle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "base/checksum.h"
#include "shorthand/recipe.h"

namespace shorthand {
namespace {

constexpr std::array<std::string_view, kMaxNeedles> kNames = {
    "Anna",  "Boris", "Clara", "David", "Elena", "Felix", "Grace", "Hugo",
    "Irene", "James", "Karin", "Louis", "Maria", "Nolan", "Olive", "Peter"};
constexpr std::string_view kSentence = "\nThe number of {}'s locker is";

constexpr int64_t kTokensBefore = kMaxSinkTokens;
constexpr int64_t kTokensBehind = 3 * kPageTokens;

// One needle in tokens: the sentence up to the number, the number, the end.
struct NeedleText {
  std::vector<Token> sentence, digits, end;
};

Result<std::vector<Token>> Tokens(const Vocab& vocab, std::string_view text) {
  return vocab.Tokenize(text, Place::kContinue, Markup::kIgnore);
}

// Five digits that follow from the haystack and the needle's number.
uint64_t NumberOf(std::span<const Token> haystack, int needle) {
  const uint64_t words[2] = {Xxh3(haystack.data(), haystack.size_bytes()),
                             static_cast<uint64_t>(needle)};
  return 10000 + Xxh3(words, sizeof(words)) % uint64_t{90000};
}

Result<NeedleText> WriteNeedle(const Vocab& vocab, std::span<const Token> haystack, int needle) {
  const auto sentence = Tokens(vocab, fmt::format(fmt::runtime(kSentence), kNames[needle]));
  if (!sentence.ok()) return sentence.status();
  const auto digits = Tokens(vocab, fmt::format(" {}", NumberOf(haystack, needle)));
  if (!digits.ok()) return digits.status();
  const auto end = Tokens(vocab, ".\n");
  if (!end.ok()) return end.status();
  return NeedleText{*sentence, *digits, *end};
}

void Append(const std::vector<Token>& tokens, std::vector<Token>& to) {
  to.insert(to.end(), tokens.begin(), tokens.end());
}

int64_t Length(const NeedleText& text) {
  return static_cast<int64_t>(text.sentence.size() + text.digits.size() + text.end.size());
}

// Needles at even distances in `haystack`, of which as much is taken as fills `tokens`.
class Builder {
 public:
  Builder(std::span<const Token> haystack, const std::vector<NeedleText>& texts)
      : haystack_(haystack),
        texts_(texts),
        result_{.passage = {}, .needles = std::vector<Needle>(texts.size())} {}

  NeedlePassage Build(int64_t questions_begin, int64_t last_needle) {
    const size_t count = texts_.size();
    for (size_t i = 0; i < count; ++i) {
      const int64_t span = last_needle - kTokensBefore;
      const int64_t at = count == 1 ? kTokensBefore + span / 2
                                    : kTokensBefore + span * static_cast<int64_t>(i) /
                                                          (static_cast<int64_t>(count) - 1);
      Hay(std::max(at, size()));
      result_.needles[i].depth = static_cast<double>(size()) / haystack_.size();
      for (const auto* part : {&texts_[i].sentence, &texts_[i].digits, &texts_[i].end}) {
        Append(*part, result_.passage.tokens);
      }
    }
    Hay(questions_begin);
    for (size_t i = 0; i < count; ++i) Ask(Order(i));
    return std::move(result_);
  }

 private:
  int64_t size() const { return static_cast<int64_t>(result_.passage.tokens.size()); }

  void Hay(int64_t end) {
    while (size() < end) result_.passage.tokens.push_back(haystack_[taken_++]);
  }

  // From the middle outwards, so that the questions' order is not that of the needles.
  size_t Order(size_t i) const { return (texts_.size() / 2 + i * Stride()) % texts_.size(); }
  // Shares no divisor with any number of needles that it is used for.
  size_t Stride() const { return texts_.size() % 5 != 0 ? 5 : texts_.size() % 3 != 0 ? 3 : 7; }

  void Ask(size_t needle) {
    std::vector<Token>& tokens = result_.passage.tokens;
    Append(texts_[needle].sentence, tokens);
    if (result_.passage.first_scored == 0) result_.passage.first_scored = size() - 1;
    // The token before a digit is the position that is scored.
    result_.needles[needle].first_score = size() - 1 - result_.passage.first_scored;
    result_.needles[needle].scores = static_cast<int64_t>(texts_[needle].digits.size());
    Append(texts_[needle].digits, tokens);
    Append(texts_[needle].end, tokens);
  }

  std::span<const Token> haystack_;
  const std::vector<NeedleText>& texts_;
  NeedlePassage result_;
  size_t taken_ = 0;  // of the haystack
};

}  // namespace

Result<NeedlePassage> HideNeedles(const Vocab& vocab, std::span<const Token> haystack,
                                  int needles) {
  if (needles < 1 || needles > kMaxNeedles) {
    return InvalidArgument(fmt::format("{} needles; 1 to {} are accepted", needles, kMaxNeedles));
  }
  std::vector<NeedleText> texts;
  int64_t all = 0, longest = 0;
  for (int i = 0; i < needles; ++i) {
    auto text = WriteNeedle(vocab, haystack, i);
    if (!text.ok()) return text.status();
    all += Length(*text);
    longest = std::max(longest, Length(*text));
    texts.push_back(std::move(*text));
  }
  const auto tokens = static_cast<int64_t>(haystack.size());
  const int64_t questions_begin = tokens - all;
  const int64_t last_needle = questions_begin - kTokensBehind - longest;
  if (last_needle - kTokensBefore < all) {
    return InvalidArgument(fmt::format(
        "{} needles do not fit into {} tokens; they take {}. Give a longer context or fewer depths",
        needles, tokens, 3 * all + kTokensBefore + kTokensBehind + longest));
  }
  return Builder(haystack, texts).Build(questions_begin, last_needle);
}

NeedleResult FoundNeedles(std::span<const NeedlePassage> passages, const std::string& lane,
                          const ScoreBook& book) {
  NeedleResult result;
  for (const NeedlePassage& hidden : passages) {
    const std::vector<PositionScore>* scores = book.Find(PassageId(hidden.passage), lane);
    if (scores == nullptr) return {};
    result.depths.resize(hidden.needles.size());
    for (size_t i = 0; i < hidden.needles.size(); ++i) {
      const Needle& needle = hidden.needles[i];
      NeedleResult::AtDepth& at = result.depths[i];
      at.depth = needle.depth;
      for (int64_t s = 0; s < needle.scores; ++s) {
        const PositionScore& score = (*scores)[needle.first_score + s];
        at.log_p -= score.nll / static_cast<double>(passages.size());
        at.log_p_exact -= score.nll_exact / static_cast<double>(passages.size());
      }
    }
  }
  for (const NeedleResult::AtDepth& at : result.depths) {
    result.log_p += at.log_p / static_cast<double>(result.depths.size());
    result.log_p_exact += at.log_p_exact / static_cast<double>(result.depths.size());
  }
  return result;
}

}  // namespace shorthand
