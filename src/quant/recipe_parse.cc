#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "quant/head_tables.h"
#include "quant/presets.h"
#include "quant/recipe_names.h"
#include "quant/recipe_scanner.h"
#include "quant/recipe_side.h"
#include "shorthand/recipe.h"

namespace shorthand {
namespace {

constexpr size_t kMaxHashDigits = 64;  // of a SHA-256

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

class RecipeParser {
 public:
  explicit RecipeParser(std::string_view text) : in_(text) {}

  Result<Recipe> Parse() {
    const bool ok = in_.CheckBytes() && ReadHead() && ReadOptions() && ReadOverrides() && Check();
    return ok ? Result<Recipe>(std::move(recipe_)) : Result<Recipe>(in_.status());
  }

 private:
  bool ReadHead();
  bool ReadPreset(std::string_view name);
  bool ReadPair(SidePair* kv);
  bool ReadPair(std::string_view word, size_t at, SidePair* kv);
  bool ReadOptions();
  bool ReadOption();
  bool ReadTokens(std::string_view name, int* tokens);
  bool ReadHash();
  bool ReadOverrides();
  bool ReadWhere(Override* override);
  bool ReadSpan(LayerSpan* span);
  bool ReadLayer(int* layer);
  bool Check();

  RecipeScanner in_;
  Recipe recipe_;
  bool sink_given_ = false;
  bool recent_given_ = false;
  bool cal_given_ = false;
  size_t cal_at_ = 0;
};

bool RecipeParser::ReadHead() {
  const std::string_view word = in_.Word();
  if (word.empty()) {
    return in_.Fail(0, "a recipe starts with a preset, \"kv=\" or \"k=\"");
  }
  if (in_.Peek() == '=') return ReadPair(word, 0, &recipe_.kv);
  if (word == "auto") {
    return in_.Fail(0,
                    "auto is not a recipe: it is resolved to one when a model is loaded; here a "
                    "preset, \"kv=\" or \"k=\" is accepted");
  }
  return ReadPreset(word);
}

bool RecipeParser::ReadPreset(std::string_view name) {
  const Preset* preset = FindPreset(name);
  if (preset == nullptr) {
    return in_.Fail(0, fmt::format("{} is not a preset; the nearest is \"{}\", and a recipe "
                                   "without a preset starts with \"kv=\" or \"k=\"",
                                   Quoted(name), NearestPreset(name).name));
  }
  recipe_ = *Recipe::Parse(preset->canonical);
  return true;
}

bool RecipeParser::ReadPair(SidePair* kv) {
  const size_t at = in_.position();
  return ReadPair(in_.Word(), at, kv);
}

// `word` is what stands before '=', at `at`.
bool RecipeParser::ReadPair(std::string_view word, size_t at, SidePair* kv) {
  if (word != "kv" && word != "k") {
    return in_.Fail(at, fmt::format("\"kv=\" or \"k=\" is expected{}",
                                    word == "v" ? ", and \"v=\" behind \"k=\"" : ""));
  }
  if (!in_.Accept("=")) return in_.Fail(in_.position(), fmt::format("\"{}=\" lacks its =", word));
  if (word == "kv") {
    if (!ParseSide(&in_, SideUse::kBoth, &kv->k)) return false;
    kv->v = kv->k;
    return true;
  }
  if (!ParseSide(&in_, SideUse::kKey, &kv->k)) return false;
  if (!in_.Accept(",v=")) {
    return in_.Fail(in_.position(), "\",v=\" and how values are stored is expected");
  }
  return ParseSide(&in_, SideUse::kValue, &kv->v);
}

bool RecipeParser::ReadOptions() {
  while (in_.Accept(",")) {
    if (!ReadOption()) return false;
  }
  return true;
}

bool RecipeParser::ReadOption() {
  const size_t at = in_.position();
  const std::string_view name = in_.Word();
  bool* given = name == "sink"     ? &sink_given_
                : name == "recent" ? &recent_given_
                : name == "cal"    ? &cal_given_
                                   : nullptr;
  if (given == nullptr) {
    if (name == "k" || name == "v" || name == "kv") {
      return in_.Fail(at, fmt::format("\"{}=\" stands too late; a recipe starts with one preset, "
                                      "\"kv=\" or \"k=\" with \"v=\"",
                                      name));
    }
    return in_.Fail(
        at, fmt::format("{} is not an option; options are sink= recent= cal=", Quoted(name)));
  }
  if (*given) return in_.Fail(at, fmt::format("the option {} is given twice", name));
  *given = true;
  if (!in_.Accept("=")) {
    return in_.Fail(in_.position(), fmt::format("the option {} needs \"=\" and a value", name));
  }
  if (name == "sink") return ReadTokens(name, &recipe_.sink_tokens);
  if (name == "recent") return ReadTokens(name, &recipe_.recent_tokens);
  cal_at_ = at;
  return ReadHash();
}

bool RecipeParser::ReadTokens(std::string_view name, int* tokens) {
  const size_t at = in_.position();
  if (!in_.ToInteger(in_.Digits(), at, tokens)) return false;
  if (name == "sink" && *tokens > kMaxSinkTokens) {
    return in_.Fail(
        at, fmt::format("{} tokens are too many; sink takes 0 to {}", *tokens, kMaxSinkTokens));
  }
  if (name == "recent" && *tokens % kPageTokens != 0) {
    return in_.Fail(at, fmt::format("{} tokens are no whole pages; recent takes a multiple of {}",
                                    *tokens, kPageTokens));
  }
  return true;
}

bool RecipeParser::ReadHash() {
  const size_t at = in_.position();
  const std::string_view word = in_.Word();
  const size_t digits = std::find_if_not(word.begin(), word.end(), IsHex) - word.begin();
  if (digits < word.size() || word.empty()) {
    return in_.Fail(at + digits,
                    "a hash in hexadecimal digits is expected; cal= names a "
                    "calibration by its hash, never by a path");
  }
  if (word.size() > kMaxHashDigits) {
    return in_.Fail(at, fmt::format("{} digits are too many; a hash has at most {}", word.size(),
                                    kMaxHashDigits));
  }
  recipe_.cal = word;
  return true;
}

bool RecipeParser::ReadOverrides() {
  while (in_.Accept("@")) {
    Override& override = recipe_.overrides.emplace_back();
    if (!ReadWhere(&override)) return false;
    if (!in_.Accept(",")) {
      return in_.Fail(in_.position(), "\",kv=\" or \",k=\" is expected behind the layers");
    }
    if (!ReadPair(&override.kv)) return false;
  }
  if (in_.AtEnd()) return true;
  if (recipe_.overrides.empty()) {
    return in_.Fail(in_.position(),
                    "\",\" and an option, \"@\" and layers, or the end is expected");
  }
  return in_.Fail(in_.position(),
                  "\"@\" and layers, or the end is expected; options stand before the first \"@\"");
}

bool RecipeParser::ReadWhere(Override* override) {
  if (in_.Accept("swa")) {
    override->set = LayerSet::kWindowed;
    return true;
  }
  if (in_.Accept("full")) {
    override->set = LayerSet::kFull;
    return true;
  }
  do {
    if (!ReadSpan(&override->spans.emplace_back())) return false;
  } while (in_.Accept("+"));
  return true;
}

bool RecipeParser::ReadSpan(LayerSpan* span) {
  const size_t at = in_.position();
  if (!ReadLayer(&span->first)) return false;
  span->last = span->first;
  if (!in_.Accept("..")) return true;
  if (!ReadLayer(&span->last)) return false;
  const bool comparable = (span->first < 0) == (span->last < 0);
  if (comparable && span->first > span->last) {
    return in_.Fail(at, fmt::format("layers {}..{} are none; the smaller number comes first",
                                    span->first, span->last));
  }
  return true;
}

bool RecipeParser::ReadLayer(int* layer) {
  const size_t at = in_.position();
  const bool from_end = in_.Accept("-");
  const size_t digits_at = in_.position();
  const std::string_view digits = in_.Digits();
  if (digits.empty()) {
    return in_.Fail(digits_at, "swa, full or layer numbers such as 0, 0..3 or -2..-1 are expected");
  }
  if (!in_.ToInteger(digits, digits_at, layer)) return false;
  if (!from_end) return true;
  if (*layer == 0) return in_.Fail(at, "-0 is no layer; the first is 0, the last is -1");
  *layer = -*layer;
  return true;
}

// What is known only at the end.
bool RecipeParser::Check() {
  if (cal_given_ && !NeedsCalibration(recipe_)) {
    return in_.Fail(cal_at_,
                    "cal= is given, but nothing uses it; the tune cal, the step bal and "
                    "the code wN do");
  }
  const size_t bytes = recipe_.ToString().size();
  if (bytes > kMaxRecipeBytes) {
    return in_.Fail(0, fmt::format("the canonical text has {} bytes; a recipe has at most {}",
                                   bytes, kMaxRecipeBytes));
  }
  return true;
}

}  // namespace

Result<Recipe> Recipe::Parse(std::string_view text) { return RecipeParser(text).Parse(); }

}  // namespace shorthand
