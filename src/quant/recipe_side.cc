#include "quant/recipe_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "quant/recipe_names.h"

namespace shorthand {
namespace {

constexpr int64_t kOne = 1'000'000;  // of a Decimal

constexpr std::string_view kCodesHelp =
    "codes are f32 f16 bf16, e4m3 e5m2, q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl mxfp4 nvfp4, iB uB, wN, "
    "nfB lmB rnB nuqB";
constexpr std::string_view kGroupsHelp = "groups are tok tok32 tok64 ch ch32 grid page";

// The part of a word before its number.
std::string_view Letters(std::string_view word) {
  return word.substr(0, std::min(word.find_first_of("0123456789."), word.size()));
}

const CodeName* FindCodeName(std::string_view word) {
  for (const CodeName& name : kCodeNames) {
    if (name.number == CodeNumber::kNone && name.name == word) return &name;
  }
  for (const CodeName& name : kCodeNames) {
    if (name.number != CodeNumber::kNone && name.name == Letters(word)) return &name;
  }
  return nullptr;
}

std::string_view WhatIsDecided(TuneRule rule) {
  if (rule == TuneRule::kRange) return "the range";
  return rule == TuneRule::kScale ? "the scale of lmB" : "where the scale comes from";
}

class SideParser {
 public:
  SideParser(RecipeScanner* scanner, SideUse use, Side* side)
      : in_(*scanner), use_(use), side_(*side) {}

  bool Parse() { return ReadSteps() && ReadCode() && ReadGroup() && ReadTunes(); }

 private:
  bool ReadSteps();
  bool ReadStep(size_t rank);
  bool ReadCode();
  bool ReadBits(const CodeName& name, std::string_view digits, size_t at);
  bool ReadWidth(std::string_view digits, size_t at);
  bool CheckStepsOfCode();
  bool ReadGroup();
  bool CheckGroup(size_t at);
  bool ReadTunes();
  bool ReadTune();
  bool ReadTuneNumber(const TuneName& tune, std::string_view digits, size_t at);
  bool CheckRepeated(const TuneName& tune, size_t at);
  bool CheckUsed(std::string_view tune, size_t at);
  bool CheckCalibrated();
  bool FailUnused(std::string_view tune, std::string_view users, size_t at);

  bool HasSteps() const { return last_rank_ >= 0; }
  bool HasStepsButPre() const { return HasSteps() && !(side_.pre && last_rank_ == 0); }
  bool OneOf(std::initializer_list<Code> codes) const {
    return std::find(codes.begin(), codes.end(), side_.code) != codes.end();
  }

  RecipeScanner& in_;
  const SideUse use_;
  Side& side_;
  std::string_view word_;  // the word just read, and where it starts
  size_t word_at_ = 0;
  int last_rank_ = -1;  // of the last step
  std::vector<const TuneName*> seen_;
  size_t cal_at_ = 0;
};

// Steps are told from the code by their name; had, behind the table's, ranks last.
bool SideParser::ReadSteps() {
  for (;;) {
    word_at_ = in_.position();
    word_ = in_.Word();
    size_t rank = 0;
    while (rank < std::size(kStepNames) && kStepNames[rank].name != word_) ++rank;
    if (rank == std::size(kStepNames) && Letters(word_) != kHadamardName) return true;
    if (!ReadStep(rank)) return false;
    if (!in_.Accept(":")) {
      return in_.Fail(in_.position(),
                      fmt::format("the step {} is followed by \":\" and a code", Quoted(word_)));
    }
  }
}

bool SideParser::ReadStep(size_t rank) {
  const int order = static_cast<int>(rank);
  if (order == last_rank_) {
    return in_.Fail(word_at_, fmt::format("the step {} is given twice", Quoted(word_)));
  }
  if (order < last_rank_) {
    return in_.Fail(word_at_, fmt::format("the step {} stands too late; the order is pre mu smooth "
                                          "bal had",
                                          Quoted(word_)));
  }
  last_rank_ = order;
  if (rank == std::size(kStepNames)) {
    if (side_.pre) {
      return in_.Fail(word_at_, "pre and had exclude each other: a rotated key cannot take RoPE");
    }
    const std::string_view length = word_.substr(kHadamardName.size());
    if (!length.empty() && length != std::to_string(kHadamardLength)) {
      return in_.Fail(word_at_ + kHadamardName.size(),
                      fmt::format("{} is not a length; had takes none (the largest power of two "
                                  "that divides the head dim) or 64",
                                  Quoted(length)));
    }
    side_.hadamard = length.empty() ? kHadamardWhole : kHadamardLength;
    return true;
  }
  const StepName& step = kStepNames[rank];
  if (step.flag == &Side::rot) {
    return in_.Fail(word_at_, "rot is reserved for calibrated rotations; had is available");
  }
  if (use_ != SideUse::kKey) {
    return in_.Fail(word_at_,
                    fmt::format("{} is a step of keys only; {}", step.name,
                                use_ == SideUse::kBoth ? "write k= and v= apart" : "V takes had"));
  }
  if (step.flag == &Side::bal && side_.smooth) {
    return in_.Fail(word_at_, "smooth and bal exclude each other: both scale the channels of K");
  }
  side_.*step.flag = true;
  return true;
}

bool SideParser::ReadCode() {
  const CodeName* name = FindCodeName(word_);
  if (name == nullptr) {
    return in_.Fail(word_at_, word_.empty()
                                  ? fmt::format("a code is expected; {}", kCodesHelp)
                                  : fmt::format("{} is not a code; {}", Quoted(word_), kCodesHelp));
  }
  side_.code = name->code;
  const std::string_view digits = word_.substr(name->name.size());
  const size_t digits_at = word_at_ + name->name.size();
  switch (name->number) {
    case CodeNumber::kNone:
      break;
    case CodeNumber::kWidth:
      if (!ReadWidth(digits, digits_at)) return false;
      break;
    case CodeNumber::kBits:
    case CodeNumber::kTableBits:
      if (!ReadBits(*name, digits, digits_at)) return false;
      break;
  }
  return CheckStepsOfCode();
}

bool SideParser::ReadBits(const CodeName& name, std::string_view digits, size_t at) {
  const bool table = name.number == CodeNumber::kTableBits;
  const std::string_view accepted = table ? "234" : "234568";
  if (digits.size() != 1 || accepted.find(digits[0]) == std::string_view::npos) {
    return in_.Fail(at, fmt::format("{} is not a width; {}B takes {} bits", Quoted(word_),
                                    name.name, table ? "2, 3 or 4" : "2, 3, 4, 5, 6 or 8"));
  }
  side_.bits = digits[0] - '0';
  return true;
}

bool SideParser::ReadWidth(std::string_view digits, size_t at) {
  if (!in_.ToDecimal(digits, at, &side_.width)) return false;
  if (side_.width.millionths < 2 * kOne || side_.width.millionths > 8 * kOne) {
    return in_.Fail(
        at, fmt::format("{} is not a width; wN takes 2 to 8 bits on average", Quoted(word_)));
  }
  return true;
}

bool SideParser::CheckStepsOfCode() {
  if (IsExact(side_.code) && HasSteps()) {
    return in_.Fail(word_at_, fmt::format("{} is exact and takes no steps; leave them out", word_));
  }
  if (side_.code != Code::kWater) return true;
  if (use_ != SideUse::kKey) {
    return in_.Fail(word_at_, fmt::format("wN is a code of keys only; {}",
                                          use_ == SideUse::kBoth ? "write k= and v= apart"
                                                                 : "V takes iB uB lmB and others"));
  }
  if (HasStepsButPre()) return in_.Fail(word_at_, "wN takes no step before it but pre");
  return true;
}

bool SideParser::ReadGroup() {
  const std::string code = CodeText(side_);
  if (IsExact(side_.code) || IsBlock(side_.code)) {
    if (in_.Peek() != '/') return true;
    return in_.Fail(in_.position(), fmt::format("{} takes no group; leave it out", code));
  }
  if (!in_.Accept("/")) {
    return in_.Fail(in_.position(),
                    fmt::format("{} needs a group, as in {}/tok; {}", code, code, kGroupsHelp));
  }
  const size_t at = in_.position();
  const std::string_view word = in_.Word();
  for (const GroupName& name : kGroupNames) {
    if (name.name != word) continue;
    side_.axis = name.axis;
    side_.group = name.group;
    return CheckGroup(at);
  }
  const std::string_view letters = Letters(word);
  const bool number_is_wrong = letters == "tok" || letters == "ch";
  return in_.Fail(at + (number_is_wrong ? letters.size() : 0),
                  word.empty() ? fmt::format("a group is expected; {}", kGroupsHelp)
                               : fmt::format("{} is not a group; {}", Quoted(word), kGroupsHelp));
}

bool SideParser::CheckGroup(size_t at) {
  if (side_.code == Code::kWater && (side_.axis != Axis::kChannel || side_.group != 0)) {
    return in_.Fail(at, "wN gives each channel its own width; its group is ch");
  }
  if (side_.mu && side_.axis == Axis::kChannel) {
    return in_.Fail(at,
                    "mu does nothing for a scale per channel, whose offset already is the mean");
  }
  if (side_.mu && side_.axis == Axis::kGrid) {
    return in_.Fail(at, "mu does not go with grid, whose channels have an offset already");
  }
  return true;
}

bool SideParser::ReadTunes() {
  while (in_.Accept(":")) {
    if (!ReadTune()) return false;
  }
  return CheckCalibrated();
}

bool SideParser::ReadTune() {
  const size_t at = in_.position();
  const std::string_view word = in_.Word();
  const std::string_view letters = Letters(word);
  const auto* tune = std::find_if(std::begin(kTuneNames), std::end(kTuneNames),
                                  [letters](const TuneName& name) { return name.name == letters; });
  if (tune == std::end(kTuneNames)) {
    const std::string given = word.empty() ? "a tune is expected" : Quoted(word) + " is not a tune";
    return in_.Fail(at, fmt::format("{}; tunes are clipX mse norm ls ub cal one outX hiX", given));
  }
  if (!CheckRepeated(*tune, at) || !CheckUsed(tune->name, at)) return false;
  if (tune->flag == &Side::cal) cal_at_ = at;
  const std::string_view digits = word.substr(letters.size());
  if (tune->value != nullptr) return ReadTuneNumber(*tune, digits, at + letters.size());
  if (!digits.empty()) {
    return in_.Fail(at + letters.size(), fmt::format("{} takes no number", tune->name));
  }
  if (tune->flag != nullptr) side_.*tune->flag = true;
  return true;
}

bool SideParser::CheckRepeated(const TuneName& tune, size_t at) {
  for (const TuneName* seen : seen_) {
    if (seen == &tune) return in_.Fail(at, fmt::format("{} is given twice", tune.name));
    if (seen->rule == tune.rule && tune.rule != TuneRule::kNone) {
      return in_.Fail(at, fmt::format("{} and {} exclude each other: both decide {}", seen->name,
                                      tune.name, WhatIsDecided(tune.rule)));
    }
  }
  seen_.push_back(&tune);
  return true;
}

// Whether the code uses the tune. What `cal` serves is known only when all tunes are read.
bool SideParser::CheckUsed(std::string_view tune, size_t at) {
  bool used = true;
  std::string_view users;
  if (tune == "clip" || tune == "mse") {
    used = OneOf({Code::kInt, Code::kUint, Code::kRn});
    users = "iB uB rnB use it";
  } else if (tune == "norm" || tune == "ls" || tune == "ub") {
    used = side_.code == Code::kLm;
    users = "lmB uses it";
  } else if (tune == "one") {
    used = IsFloat8(side_.code) && side_.axis == Axis::kPage;
    users = "e4m3/page and e5m2/page use it";
  } else if (tune == "out") {
    used = side_.code == Code::kNuq;
    users = "nuqB uses it";
  } else if (tune == "hi") {
    used = use_ == SideUse::kKey && side_.code == Code::kUint && side_.bits <= 4 &&
           side_.axis == Axis::kChannel;
    users = "keys in u2 u3 u4 with the group ch or ch32 use it";
  }
  return used || FailUnused(tune, users, at);
}

bool SideParser::CheckCalibrated() {
  return !side_.cal || UsesCal(side_) ||
         FailUnused("cal", "e4m3/page e5m2/page nuqB, hiX and the steps mu and smooth use it",
                    cal_at_);
}

bool SideParser::FailUnused(std::string_view tune, std::string_view users, size_t at) {
  return in_.Fail(
      at, fmt::format("{}{} does not use {}; {}", CodeText(side_), GroupText(side_), tune, users));
}

bool SideParser::ReadTuneNumber(const TuneName& tune, std::string_view digits, size_t at) {
  const bool is_clip = tune.value == &Side::clip;
  const std::string_view accepted =
      is_clip ? "a part of the range, above 0 and below 1" : "a percentage, above 0 and below 100";
  if (digits.empty()) {
    return in_.Fail(at, fmt::format("{} needs a number: {}", tune.name, accepted));
  }
  Decimal value;
  if (!in_.ToDecimal(digits, at, &value)) return false;
  if (value.millionths == 0 || value.millionths >= (is_clip ? 1 : 100) * kOne) {
    return in_.Fail(
        at, fmt::format("{} is out of range; {} takes {}", Quoted(digits), tune.name, accepted));
  }
  side_.*tune.value = value;
  return true;
}

}  // namespace

bool ParseSide(RecipeScanner* scanner, SideUse use, Side* side) {
  return SideParser(scanner, use, side).Parse();
}

}  // namespace shorthand
