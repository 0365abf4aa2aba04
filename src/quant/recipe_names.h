// Names of the recipe language: one table for each kind of word, read alike by the parser, the
// printer and the description, so that a word is spelled in one place.
//
// The grammar itself is in docs/recipes.md. Adding a word: a row here, its meaning in the parser.
// Thread-safety: immutable tables and pure functions.
#ifndef SHORTHAND_QUANT_RECIPE_NAMES_H_
#define SHORTHAND_QUANT_RECIPE_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "shorthand/recipe.h"

namespace shorthand {

// Steps in the order in which they are written and applied; `had`, which has a length, follows.
struct StepName {
  std::string_view name;
  bool Side::* flag;
};
inline constexpr StepName kStepNames[] = {
    {"pre", &Side::pre}, {"mu", &Side::mu},   {"smooth", &Side::smooth},
    {"bal", &Side::bal}, {"rot", &Side::rot},
};
inline constexpr std::string_view kHadamardName = "had";
inline constexpr int kHadamardLength = 64;  // the one length that can be written

// The number behind a code's name.
enum class CodeNumber : uint8_t { kNone, kBits, kTableBits, kWidth };
struct CodeName {
  std::string_view name;
  Code code;
  CodeNumber number;
};
inline constexpr CodeName kCodeNames[] = {
    {"f32", Code::kF32, CodeNumber::kNone},      {"f16", Code::kF16, CodeNumber::kNone},
    {"bf16", Code::kBf16, CodeNumber::kNone},    {"e4m3", Code::kE4m3, CodeNumber::kNone},
    {"e5m2", Code::kE5m2, CodeNumber::kNone},    {"q8_0", Code::kQ8_0, CodeNumber::kNone},
    {"q5_1", Code::kQ5_1, CodeNumber::kNone},    {"q5_0", Code::kQ5_0, CodeNumber::kNone},
    {"q4_1", Code::kQ4_1, CodeNumber::kNone},    {"q4_0", Code::kQ4_0, CodeNumber::kNone},
    {"iq4_nl", Code::kIq4Nl, CodeNumber::kNone}, {"mxfp4", Code::kMxfp4, CodeNumber::kNone},
    {"nvfp4", Code::kNvfp4, CodeNumber::kNone},  {"i", Code::kInt, CodeNumber::kBits},
    {"u", Code::kUint, CodeNumber::kBits},       {"w", Code::kWater, CodeNumber::kWidth},
    {"nf", Code::kNf, CodeNumber::kTableBits},   {"lm", Code::kLm, CodeNumber::kTableBits},
    {"rn", Code::kRn, CodeNumber::kTableBits},   {"nuq", Code::kNuq, CodeNumber::kTableBits},
};

struct GroupName {
  std::string_view name;
  Axis axis;
  int group;
};
inline constexpr GroupName kGroupNames[] = {
    {"tok", Axis::kToken, 0},  {"tok32", Axis::kToken, 32},  {"tok64", Axis::kToken, 64},
    {"ch", Axis::kChannel, 0}, {"ch32", Axis::kChannel, 32}, {"grid", Axis::kGrid, 0},
    {"page", Axis::kPage, 0},
};

// Tunes in canonical order. At most one of a rule is given, because both would decide the same.
enum class TuneRule : uint8_t { kNone, kRange, kScale, kSource };
struct TuneName {
  std::string_view name;
  bool Side::* flag;      // of a tune without a number; null for `ls`, lm's own rule
  Decimal Side::* value;  // of a tune with a number
  TuneRule rule;
};
inline constexpr TuneName kTuneNames[] = {
    {"clip", nullptr, &Side::clip, TuneRule::kRange},
    {"mse", &Side::mse, nullptr, TuneRule::kRange},
    {"norm", &Side::norm, nullptr, TuneRule::kScale},
    {"ls", nullptr, nullptr, TuneRule::kScale},
    {"ub", &Side::ub, nullptr, TuneRule::kScale},
    {"cal", &Side::cal, nullptr, TuneRule::kSource},
    {"one", &Side::one, nullptr, TuneRule::kSource},
    {"out", nullptr, &Side::out, TuneRule::kNone},
    {"hi", nullptr, &Side::hi, TuneRule::kNone},
};

bool IsFloat8(Code code);
// Whether anything of a side could come from a calibration by the tune `cal`.
bool UsesCal(const Side& side);

// Canonical texts: "2.5"; "u4" or "w2.5"; "/tok32" or nothing; "had:lm4/tok:norm".
std::string DecimalText(Decimal decimal);
std::string CodeText(const Side& side);
std::string GroupText(const Side& side);
std::string SideText(const Side& side);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_RECIPE_NAMES_H_
