#include "quant/levels.h"

#include <array>
#include <cmath>

#include "base/half.h"

namespace shorthand {
namespace {

// scripts/derive-levels.py prints these; levels_test.cc integrates their error.
constexpr float kLm2[] = {-60, -18, 18, 60};
constexpr float kLm3[] = {-62, -39, -22, -7, 7, 22, 39, 62};
constexpr float kLm4[] = {-61, -46, -36, -28, -21, -15, -9, -3, 3, 9, 15, 21, 28, 36, 46, 61};
constexpr float kRn2[] = {-60, -18, 18, 60};
constexpr float kRn3[] = {-62, -39, -22, -7, 7, 22, 39, 62};
constexpr float kRn4[] = {-57, -45, -36, -28, -21, -15, -9, -3, 3, 9, 15, 21, 28, 36, 45, 57};
constexpr float kNf2[] = {-39, 0, 17, 39};
constexpr float kNf3[] = {-60, -32, -15, 0, 11, 23, 37, 60};
constexpr float kNf4[] = {-53, -37, -28, -21, -15, -10, -5, 0, 4, 9, 13, 18, 23, 30, 38, 53};

constexpr LevelTable kLm[] = {{kLm2, .0251724962f}, {kLm3, .0346364953f}, {kLm4, .0448032326f}};
constexpr LevelTable kRn[] = {{kRn2, .0101532171f}, {kRn3, .0134473143f}, {kRn4, .0166210106f}};
constexpr LevelTable kNf[] = {{kNf2, 1.0f / 39}, {kNf3, 1.0f / 60}, {kNf4, 1.0f / 53}};

constexpr float kE2m1[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr float kIq4Nl[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                            1,    13,   25,  38,  53,  69,  89,  113};

using Table256 = std::array<float, 256>;

constexpr Table256 IntegersFrom(int first) {
  Table256 table{};
  for (int i = 0; i < 256; ++i) table[i] = static_cast<float>(first + i);
  return table;
}
constexpr Table256 kUnsigned = IntegersFrom(0);
constexpr Table256 kSigned = IntegersFrom(-128);

Table256 Decoded(float (*decode)(uint8_t)) {
  Table256 table{};
  for (int i = 0; i < 256; ++i) table[i] = decode(static_cast<uint8_t>(i));
  return table;
}

}  // namespace

LevelTable LevelTableOf(Code code, int bits) {
  switch (code) {
    case Code::kLm:
      return kLm[bits - 2];
    case Code::kRn:
      return kRn[bits - 2];
    default:  // kNf, kNuq
      return kNf[bits - 2];
  }
}

const float* SignedLevels(int bits) { return kSigned.data() + 128 - (1 << (bits - 1)); }
const float* UnsignedLevels() { return kUnsigned.data(); }
const float* E2m1Levels() { return kE2m1; }
const float* Iq4NlLevels() { return kIq4Nl; }

const float* E4m3Levels() {
  static const Table256 table = Decoded(E4m3ToF32);
  return table.data();
}

const float* E5m2Levels() {
  static const Table256 table = Decoded(E5m2ToF32);
  return table.data();
}

float LargestFloat8(Code code) { return code == Code::kE4m3 ? 448.0f : 57344.0f; }

uint8_t ZeroCode(const float* levels, int bits) {
  int best = 0;
  for (int code = 1; code < (1 << bits); ++code) {
    if (std::fabs(levels[code]) < std::fabs(levels[best])) best = code;
  }
  return static_cast<uint8_t>(best);
}

}  // namespace shorthand
