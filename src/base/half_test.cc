#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "base/golden_csv.h"

namespace shorthand {
namespace {

uint32_t Hex(const std::string& text) {
  return static_cast<uint32_t>(std::stoul(text, nullptr, 16));
}
float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

// An independent decoder: arithmetic in double from the definition of the format.
double Reference(uint32_t code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t exponent = (code >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const double fraction = std::ldexp(code & ((1u << mantissa_bits) - 1), -mantissa_bits);
  const double sign = (code >> (exponent_bits + mantissa_bits)) != 0 ? -1 : 1;
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1 + fraction, static_cast<int>(exponent) - bias));
}

TEST(HalfTest, EveryF16DecodesToItsValueAndRoundTrips) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const float x = F16ToF32(static_cast<uint16_t>(h));
    if ((h & 0x7c00) == 0x7c00) {
      EXPECT_EQ(std::isinf(x), (h & 0x3ff) == 0) << h;
      EXPECT_EQ(std::isnan(x), (h & 0x3ff) != 0) << h;
      EXPECT_EQ(std::signbit(x), h >= 0x8000) << h;
      EXPECT_EQ(F32ToF16(x) & 0xfc00, h & 0xfc00) << h;
      continue;
    }
    ASSERT_EQ(x, Reference(h, 5, 10)) << h;
    ASSERT_EQ(F32ToF16(x), h);
  }
}

TEST(HalfTest, EveryBf16IsTheUpperHalfOfAnF32) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const float x = Bf16ToF32(static_cast<uint16_t>(h));
    ASSERT_EQ(std::bit_cast<uint32_t>(x), h << 16);
    ASSERT_TRUE(std::isnan(x) || F32ToBf16(x) == h) << h;
  }
}

TEST(HalfTest, F16RoundsMidpointsToEven) {
  for (uint32_t h = 0; h < 0x7bff; ++h) {
    const double low = Reference(h, 5, 10), high = Reference(h + 1, 5, 10);
    const float middle = static_cast<float>((low + high) / 2);  // exact: 12 bits
    EXPECT_EQ(F32ToF16(middle), h + (h & 1)) << h;
    EXPECT_EQ(F32ToF16(std::nextafter(middle, 0.0f)), h) << h;
    EXPECT_EQ(F32ToF16(std::nextafter(middle, 1e9f)), h + 1) << h;
  }
}

TEST(HalfTest, NaNOfEveryFormatStaysNaN) {
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xff800001u, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(RoundToF16(FromBits(bits))));
    EXPECT_TRUE(std::isnan(Bf16ToF32(F32ToBf16(FromBits(bits)))));
    EXPECT_TRUE(std::isnan(E4m3ToF32(F32ToE4m3(FromBits(bits)))));
    EXPECT_TRUE(std::isnan(E5m2ToF32(F32ToE5m2(FromBits(bits)))));
  }
}

TEST(HalfTest, OverflowIsInfiniteOrSaturatesAsNamed) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(RoundToF16(65519.996f), 65504.0f);
  EXPECT_EQ(RoundToF16(65520.0f), inf);
  EXPECT_EQ(RoundToF16(-inf), -inf);
  EXPECT_EQ(RoundToFiniteF16(1e30f), 65504.0f);
  EXPECT_EQ(RoundToFiniteF16(-inf), -65504.0f);
  EXPECT_EQ(E4m3ToF32(F32ToE4m3(1e30f)), 448.0f);
  EXPECT_EQ(E4m3ToF32(F32ToE4m3(-inf)), -448.0f);
  EXPECT_EQ(E5m2ToF32(F32ToE5m2(inf)), 57344.0f);
  EXPECT_EQ(E5m2ToF32(F32ToE5m2(-1e9f)), -57344.0f);
}

TEST(HalfTest, GoldenF16AndBf16Rounding) {
  const auto rows = ReadGoldenCsv("f16_bf16_rounding_rne.csv");
  if (rows.empty()) GTEST_SKIP() << "The shared golden data is not there.";
  for (const auto& row : rows) {
    if (row[1] == "nan") continue;  // the payload is free; NaNs are tested above
    const float x = FromBits(Hex(row[0]));
    EXPECT_EQ(F32ToF16(x), Hex(row[1])) << row[0];
    EXPECT_EQ(F32ToBf16(x), Hex(row[2])) << row[0];
  }
}

TEST(HalfTest, GoldenFp8ValuesAndRounding) {
  const auto values = ReadGoldenCsv("fp8_fp6_fp4_values.csv");
  if (values.empty()) GTEST_SKIP() << "The shared golden data is not there.";
  int decoded = 0;
  for (const auto& row : values) {
    const auto code = static_cast<uint8_t>(Hex(row[1]));
    float x;
    if (row[0] == "e4m3fn") {
      x = E4m3ToF32(code);
    } else if (row[0] == "e5m2") {
      x = E5m2ToF32(code);
    } else {
      continue;
    }
    ++decoded;
    if (row[2] == "nan" || row[2] == "-nan") {
      EXPECT_TRUE(std::isnan(x)) << row[0] << row[1];
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(x), Hex(row[3])) << row[0] << row[1];
    }
  }
  EXPECT_EQ(decoded, 512);
  for (const auto& row : ReadGoldenCsv("fp8_fp4_rounding_rne.csv")) {
    const float x = FromBits(Hex(row[1]));
    if (row[0] == "e4m3fn") {
      EXPECT_EQ(F32ToE4m3(x), Hex(row[3])) << row[1];
      EXPECT_EQ(F32ToE4m3(-x), Hex(row[3]) | 0x80) << row[1];
    } else if (row[0] == "e5m2") {
      EXPECT_EQ(F32ToE5m2(x), Hex(row[3])) << row[1];
      EXPECT_EQ(F32ToE5m2(-x), Hex(row[3]) | 0x80) << row[1];
    }
  }
}

}  // namespace
}  // namespace shorthand
