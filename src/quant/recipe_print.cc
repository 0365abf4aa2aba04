#include <fmt/format.h>

#include "quant/recipe_names.h"
#include "shorthand/recipe.h"

namespace shorthand {
namespace {

std::string PairText(const SidePair& kv) {
  if (kv.k == kv.v) return "kv=" + SideText(kv.k);
  return fmt::format("k={},v={}", SideText(kv.k), SideText(kv.v));
}

std::string WhereText(const Override& override) {
  if (override.set == LayerSet::kWindowed) return "swa";
  if (override.set == LayerSet::kFull) return "full";
  std::string text;
  for (const LayerSpan& span : override.spans) {
    if (!text.empty()) text += '+';
    text += std::to_string(span.first);
    if (span.last != span.first) text += fmt::format("..{}", span.last);
  }
  return text;
}

}  // namespace

std::string DecimalText(Decimal decimal) {
  std::string text =
      fmt::format("{}.{:06}", decimal.millionths / 1'000'000, decimal.millionths % 1'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string CodeText(const Side& side) {
  for (const CodeName& name : kCodeNames) {
    if (name.code != side.code) continue;
    if (name.number == CodeNumber::kNone) return std::string(name.name);
    if (name.number == CodeNumber::kWidth)
      return fmt::format("{}{}", name.name, DecimalText(side.width));
    return fmt::format("{}{}", name.name, side.bits);
  }
  return "";
}

std::string GroupText(const Side& side) {
  for (const GroupName& name : kGroupNames) {
    if (name.axis == side.axis && name.group == side.group) return fmt::format("/{}", name.name);
  }
  return "";
}

std::string SideText(const Side& side) {
  std::string text;
  for (const StepName& step : kStepNames) {
    if (side.*step.flag) text += fmt::format("{}:", step.name);
  }
  if (side.hadamard == kHadamardWhole) text += fmt::format("{}:", kHadamardName);
  if (side.hadamard > 0) text += fmt::format("{}{}:", kHadamardName, side.hadamard);
  text += CodeText(side) + GroupText(side);
  for (const TuneName& tune : kTuneNames) {
    if (tune.flag != nullptr && side.*tune.flag) text += fmt::format(":{}", tune.name);
    if (tune.value != nullptr && side.*tune.value != Decimal{}) {
      text += fmt::format(":{}{}", tune.name, DecimalText(side.*tune.value));
    }
  }
  return text;
}

std::string Recipe::ToString() const {
  std::string text = PairText(kv);
  if (sink_tokens > 0) text += fmt::format(",sink={}", sink_tokens);
  if (recent_tokens > 0) text += fmt::format(",recent={}", recent_tokens);
  if (!cal.empty()) text += fmt::format(",cal={}", cal);
  for (const Override& override : overrides) {
    text += fmt::format("@{},{}", WhereText(override), PairText(override.kv));
  }
  return text;
}

}  // namespace shorthand
