#include "quant/recipe_scanner.h"

#include <fmt/format.h>

#include <algorithm>

namespace shorthand {
namespace {

constexpr size_t kQuotedBytes = 120;  // of the text, in an error
constexpr size_t kMaxDigits = 9;      // before the point
constexpr size_t kMaxDecimals = 6;    // behind it

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '_' || c == '.'; }
bool IsPrintable(char c) { return c > ' ' && c < 0x7f; }
char ToLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, kQuotedBytes)) {
    if (IsPrintable(c) || c == ' ') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text.size() > kQuotedBytes ? out + "..." : out;
}

}  // namespace

std::string Quoted(std::string_view word) {
  constexpr size_t kLongest = 32;
  if (word.size() <= kLongest) return fmt::format("\"{}\"", word);
  return fmt::format("\"{}...\"", word.substr(0, kLongest));
}

RecipeScanner::RecipeScanner(std::string_view text) : given_(text) {
  if (text.size() > kMaxRecipeBytes) text = text.substr(0, kMaxRecipeBytes);
  text_.resize(text.size());
  std::transform(text.begin(), text.end(), text_.begin(), ToLower);
}

bool RecipeScanner::CheckBytes() {
  if (given_.size() > kMaxRecipeBytes) {
    return Fail(kMaxRecipeBytes, fmt::format("the text has {} bytes; a recipe has at most {}",
                                             given_.size(), kMaxRecipeBytes));
  }
  for (size_t i = 0; i < text_.size(); ++i) {
    if (IsPrintable(text_[i])) continue;
    return Fail(i, fmt::format("a byte 0x{:02x} stands here; a recipe holds ASCII letters, digits "
                               "and punctuation only, and no spaces",
                               static_cast<unsigned char>(text_[i])));
  }
  return true;
}

bool RecipeScanner::Accept(std::string_view literal) {
  if (!std::string_view(text_).substr(position_).starts_with(literal)) return false;
  position_ += literal.size();
  return true;
}

template <typename Predicate>
std::string_view RecipeScanner::Run(Predicate predicate) {
  const size_t begin = position_;
  while (!AtEnd() && predicate(text_[position_])) ++position_;
  return std::string_view(text_).substr(begin, position_ - begin);
}

std::string_view RecipeScanner::Word() { return Run(IsWord); }
std::string_view RecipeScanner::Digits() { return Run(IsDigit); }

bool RecipeScanner::ToInteger(std::string_view digits, size_t position, int* value) {
  const auto end = std::find_if_not(digits.begin(), digits.end(), IsDigit);
  if (end != digits.end() || digits.empty()) {
    return Fail(position + (end - digits.begin()), "a whole number of digits 0 to 9 is expected");
  }
  if (digits.size() > 1 && digits[0] == '0') {
    return Fail(position, fmt::format("{} starts with a zero; write it without", Quoted(digits)));
  }
  if (digits.size() > kMaxDigits) {
    return Fail(position, fmt::format("{} is too large; a number has at most {} digits",
                                      Quoted(digits), kMaxDigits));
  }
  *value = 0;
  for (char c : digits) *value = *value * 10 + (c - '0');
  return true;
}

bool RecipeScanner::ToDecimal(std::string_view digits, size_t position, Decimal* value) {
  const size_t point = std::min(digits.find('.'), digits.size());
  int whole = 0;
  if (!ToInteger(digits.substr(0, point), position, &whole)) return false;
  value->millionths = int64_t{whole} * 1'000'000;
  if (point == digits.size()) return true;

  const std::string_view fraction = digits.substr(point + 1);
  const size_t fraction_at = position + point + 1;
  const auto end = std::find_if_not(fraction.begin(), fraction.end(), IsDigit);
  if (end != fraction.end() || fraction.empty()) {
    return Fail(fraction_at + (end - fraction.begin()), "a digit is expected behind the point");
  }
  const size_t beyond = fraction.find_first_not_of('0', std::min(kMaxDecimals, fraction.size()));
  if (beyond != std::string_view::npos) {
    return Fail(fraction_at + beyond,
                fmt::format("{} has too many digits behind the point; {} are kept", Quoted(digits),
                            kMaxDecimals));
  }
  int64_t unit = 100'000;
  for (char c : fraction.substr(0, kMaxDecimals)) {
    value->millionths += (c - '0') * unit;
    unit /= 10;
  }
  return true;
}

bool RecipeScanner::Fail(size_t position, std::string_view sentence) {
  if (status_.ok()) {
    status_ = InvalidArgument(
        fmt::format("recipe \"{}\": at byte {}: {}", Escaped(given_), position, sentence));
  }
  return false;
}

}  // namespace shorthand
