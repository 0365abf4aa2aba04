#include <fmt/format.h>

#include <string>
#include <string_view>

#include "quant/recipe_names.h"
#include "shorthand/recipe.h"

namespace shorthand {
namespace {

void Append(std::string* text, std::string_view phrase) {
  if (phrase.empty()) return;
  if (!text->empty()) *text += ", ";
  *text += phrase;
}

std::string StepsPhrase(const Side& side) {
  std::string text;
  if (side.pre) Append(&text, "as they are before RoPE");
  if (side.mu) Append(&text, side.cal ? "less the mean of the head" : "less the mean of the page");
  if (side.smooth) Append(&text, "smoothed channel by channel");
  if (side.bal) Append(&text, "balanced channel by channel against the queries");
  if (side.hadamard == kHadamardWhole) Append(&text, "Hadamard-rotated");
  if (side.hadamard > 0) {
    Append(&text, fmt::format("Hadamard-rotated over {} channels", side.hadamard));
  }
  return text;
}

std::string CodePhrase(const Side& side) {
  switch (side.code) {
    case Code::kInt:
      return fmt::format("in {} bits, symmetric", side.bits);
    case Code::kUint:
      return fmt::format("in {} bits", side.bits);
    case Code::kWater:
      return fmt::format("in {} bits on average, each channel with a width of its own",
                         DecimalText(side.width));
    case Code::kNf:
      return fmt::format("in {}-bit normal-float levels", side.bits);
    case Code::kLm:
      return fmt::format("in {}-bit Lloyd-Max levels", side.bits);
    case Code::kRn:
      return fmt::format("in {}-bit range-normalised levels", side.bits);
    case Code::kNuq:
      return fmt::format("in {}-bit {} levels", side.bits,
                         side.cal ? "learned" : "range-normalised normal-float");
    case Code::kE4m3:
    case Code::kE5m2:
      return fmt::format("as 8-bit floats ({})", CodeText(side));
    default:
      return fmt::format("in {}{}", CodeText(side), IsBlock(side.code) ? " blocks" : "");
  }
}

bool HasOffset(Code code) {
  return code == Code::kUint || code == Code::kWater || code == Code::kRn || code == Code::kNuq;
}

std::string GroupPhrase(const Side& side) {
  const std::string_view scale = HasOffset(side.code) ? "one scale and offset" : "one scale";
  if (side.one) return "scale 1";
  switch (side.axis) {
    case Axis::kNone:
      return "";
    case Axis::kToken:
      if (side.group == 0) return fmt::format("{} per token", scale);
      return fmt::format("{} per token and {} channels", scale, side.group);
    case Axis::kChannel:
      if (side.group == 0) {
        return fmt::format("{} per channel and page of {} tokens", scale, kPageTokens);
      }
      return fmt::format("{} per channel and {} tokens", scale, side.group);
    case Axis::kGrid:
      return fmt::format("{} per channel times a factor per token", scale);
    case Axis::kPage:
      return fmt::format("{} per page of {} tokens", scale, kPageTokens);
  }
  return "";
}

std::string TunesPhrase(const Side& side) {
  std::string text;
  if (side.clip != Decimal{}) {
    Append(&text, fmt::format("clipped to {} of the range", DecimalText(side.clip)));
  }
  if (side.mse) Append(&text, "clipped where the squared error is least");
  if (side.norm) Append(&text, "norms kept");
  if (side.ub) Append(&text, "scale unbiased");
  if (side.cal) Append(&text, "statistics from calibration");
  if (side.out != Decimal{}) {
    Append(&text, fmt::format("{} % outliers exact", DecimalText(side.out)));
  }
  if (side.hi != Decimal{}) {
    Append(&text,
           fmt::format("{} % of the channels in {} bits", DecimalText(side.hi), 2 * side.bits));
  }
  return text;
}

std::string SidePhrase(const Side& side) {
  std::string text = StepsPhrase(side);
  Append(&text, CodePhrase(side));
  Append(&text, GroupPhrase(side));
  Append(&text, TunesPhrase(side));
  return text;
}

std::string PairPhrase(const SidePair& kv) {
  if (kv.k == kv.v) return "keys and values " + SidePhrase(kv.k);
  return fmt::format("keys {}; values {}", SidePhrase(kv.k), SidePhrase(kv.v));
}

// "layer 3", "layers 0 to 1", "layers 2 to the last", "the last 2 layers".
std::string SpanPhrase(const LayerSpan& span) {
  const auto name = [](int layer) {
    if (layer == -1) return std::string("the last");
    return layer < 0 ? fmt::format("{} from the end", -layer) : std::to_string(layer);
  };
  if (span.first == span.last) {
    return span.first == -1 ? "the last layer" : "layer " + name(span.first);
  }
  if (span.last == -1 && span.first < 0) return fmt::format("the last {} layers", -span.first);
  return fmt::format("layers {} to {}", name(span.first), name(span.last));
}

std::string WherePhrase(const Override& override) {
  if (override.set == LayerSet::kWindowed) return "layers with a sliding window";
  if (override.set == LayerSet::kFull) return "layers with full attention";
  std::string text;
  for (const LayerSpan& span : override.spans) {
    if (!text.empty()) text += " and ";
    text += SpanPhrase(span);
  }
  return text;
}

bool IsExact(const SidePair& kv) { return IsExact(kv.k.code) && IsExact(kv.v.code); }

std::string ExactTokensPhrase(const Recipe& recipe) {
  if (IsExact(recipe.kv)) return "";
  std::string text;
  if (recipe.sink_tokens == 1) text += "; the first token exact";
  if (recipe.sink_tokens > 1) {
    text += fmt::format("; the first {} tokens exact", recipe.sink_tokens);
  }
  text += "; the page being written";
  if (recipe.recent_tokens > 0) {
    text += fmt::format(" and {} tokens before it", recipe.recent_tokens);
  }
  return text + " exact";
}

std::string Sentence(std::string phrase) {
  if (phrase[0] >= 'a' && phrase[0] <= 'z') phrase[0] = static_cast<char>(phrase[0] - 'a' + 'A');
  return phrase + '.';
}

}  // namespace

std::string Describe(const Recipe& recipe) {
  std::string text = Sentence(PairPhrase(recipe.kv) + ExactTokensPhrase(recipe));
  if (!recipe.cal.empty()) text.insert(text.size() - 1, "; calibration " + recipe.cal);
  if (recipe.overrides.empty()) return text;
  std::string layers;
  for (const Override& override : recipe.overrides) {
    if (!layers.empty()) layers += "; ";
    layers += fmt::format("{}: {}", WherePhrase(override), PairPhrase(override.kv));
  }
  return fmt::format("{} {}", text, Sentence(std::move(layers)));
}

}  // namespace shorthand
