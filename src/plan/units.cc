#include "plan/units.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace shorthand {
namespace {

constexpr double kMaxSizeBytes = 1125899906842624.0;  // 1 PiB

// A decimal number in front and what follows it.
struct NumberAndUnit {
  double number = 0;
  bool whole = true;
  std::string unit;  // lower case
};

std::optional<NumberAndUnit> Split(std::string_view text) {
  NumberAndUnit split;
  size_t i = 0;
  int digits = 0;
  double place = 1;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && split.whole && digits > 0) {
      split.whole = false;
    } else if (c >= '0' && c <= '9') {
      ++digits;
      if (!split.whole) place /= 10;
      split.number = split.whole ? split.number * 10 + (c - '0') : split.number + (c - '0') * place;
    } else {
      break;
    }
  }
  if (digits == 0 || text[i - 1] == '.') return std::nullopt;
  if (i < text.size() && text[i] == ' ') ++i;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    split.unit += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return split;
}

std::optional<double> SizeUnit(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  constexpr std::string_view kPrefixes = "kmgt";
  const size_t power = kPrefixes.find(unit[0]);
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(1);
  if (rest == "b") return std::pow(1000.0, static_cast<double>(power + 1));
  if (rest == "ib") return std::pow(1024.0, static_cast<double>(power + 1));
  return std::nullopt;
}

std::string WithoutTrailingZeros(std::string text) {
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view text) {
  const auto split = Split(text);
  const auto unit = split ? SizeUnit(split->unit) : std::nullopt;
  const double bytes = unit ? std::floor(split->number * *unit + 0.5) : 0;
  if (!unit || bytes < 1 || bytes > kMaxSizeBytes) {
    return InvalidArgument(fmt::format(
        "\"{}\" is no size; write bytes, or a number with KB MB GB TB (powers of 1000) or KiB MiB "
        "GiB TiB (powers of 1024), up to 1024TiB",
        text));
  }
  return static_cast<uint64_t>(bytes);
}

Result<int64_t> ParseTokens(std::string_view text, int64_t limit) {
  const auto split = Split(text);
  double tokens = 0;
  if (split && (split->unit.empty() || split->unit == "k" || split->unit == "m")) {
    tokens = split->number * (split->unit.empty() ? 1 : split->unit == "k" ? 1024 : 1024 * 1024);
  }
  if (tokens < 1 || tokens > static_cast<double>(limit) || tokens != std::floor(tokens)) {
    return InvalidArgument(fmt::format(
        "\"{}\" is no number of tokens; write a whole number from 1 to {}, where 32k is 32768",
        text, limit));
  }
  return static_cast<int64_t>(tokens);
}

std::string FormatSize(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  const bool bare = unit == 0 || (unit == 1 && value == std::floor(value));
  return bare ? fmt::format("{:.0f} {}", value, kUnits[unit])
              : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string FormatDecimalSize(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1000 && unit < 5) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{} {}", WithoutTrailingZeros(fmt::format("{:.2f}", value)), kUnits[unit]);
}

std::string FormatParameters(int64_t count) {
  if (count >= 1'000'000'000)
    return fmt::format("{:.2f} billion", static_cast<double>(count) / 1e9);
  return fmt::format("{:.0f} million", static_cast<double>(count) / 1e6);
}

std::string FormatTokens(int64_t tokens) {
  if (tokens >= 1024 * 1024 && tokens % (1024 * 1024) == 0) {
    return fmt::format("{}M", tokens / (1024 * 1024));
  }
  if (tokens >= 1024 && tokens % 1024 == 0) return fmt::format("{}k", tokens / 1024);
  return fmt::format("{}", tokens);
}

}  // namespace shorthand
