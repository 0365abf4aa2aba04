#include "base/half.h"

#include <bit>

namespace shorthand {
namespace {

// A float of fewer bits than f32: sign, exponent, `mantissa_bits` bits of fraction.
struct SmallFloat {
  int mantissa_bits;
  int bias;
  uint32_t max_finite;  // code of the largest finite magnitude
  uint32_t overflow;    // code that larger magnitudes become
};
constexpr SmallFloat kF16{10, 15, 0x7bff, 0x7c00};
constexpr SmallFloat kE4m3{3, 7, 0x7e, 0x7e};
constexpr SmallFloat kE5m2{2, 15, 0x7b, 0x7b};

constexpr uint32_t kAbsMask = 0x7fffffff;
constexpr uint32_t kInfinity = 0x7f800000;

uint32_t ShiftRightToNearestEven(uint32_t value, int shift) {
  const uint32_t half = uint32_t{1} << (shift - 1);
  const uint32_t odd = (value >> shift) & 1;
  return (value + half - 1 + odd) >> shift;
}

// The code of a magnitude that is no NaN. f32 subnormals are far below half of any of these
// formats' smallest step.
uint32_t EncodeMagnitude(const SmallFloat& format, uint32_t magnitude) {
  if (magnitude >= kInfinity) return format.overflow;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  const int binade = std::max(exponent, 1 - format.bias);
  const int shift = 23 - format.mantissa_bits + (binade - exponent);
  if (shift > 24) return 0;
  // The hidden bit of a normal number carries into the exponent field, and so does rounding up.
  const uint32_t code = (static_cast<uint32_t>(binade + format.bias - 1) << format.mantissa_bits) +
                        ShiftRightToNearestEven(significand, shift);
  return code > format.max_finite ? format.overflow : code;
}

float DecodeMagnitude(const SmallFloat& format, uint32_t code) {
  const uint32_t exponent = code >> format.mantissa_bits;
  const uint32_t mantissa = code & ((1u << format.mantissa_bits) - 1);
  if (exponent == 0) {
    const int ulp_exponent = 1 - format.bias - format.mantissa_bits;
    return static_cast<float>(mantissa) *
           std::bit_cast<float>(static_cast<uint32_t>(ulp_exponent + 127) << 23);
  }
  return std::bit_cast<float>(((exponent + 127 - format.bias) << 23) |
                              (mantissa << (23 - format.mantissa_bits)));
}

float WithSign(float magnitude, uint32_t sign) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
}

}  // namespace

float F16ToF32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t magnitude = h & 0x7fff;
  if (magnitude >= 0x7c00) {
    return std::bit_cast<float>(sign | kInfinity | ((magnitude & 0x3ff) << 13));
  }
  return WithSign(DecodeMagnitude(kF16, magnitude), sign);
}

uint16_t F32ToF16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & kAbsMask;
  if (magnitude > kInfinity) {
    return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  }
  return static_cast<uint16_t>(sign | EncodeMagnitude(kF16, magnitude));
}

float Bf16ToF32(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

uint16_t F32ToBf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & kAbsMask) > kInfinity) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float E4m3ToF32(uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  const uint32_t magnitude = code & 0x7f;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000);
  return WithSign(DecodeMagnitude(kE4m3, magnitude), sign);
}

uint8_t F32ToE4m3(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & kAbsMask;
  const uint32_t code = magnitude > kInfinity ? 0x7f : EncodeMagnitude(kE4m3, magnitude);
  return static_cast<uint8_t>(((bits >> 24) & 0x80) | code);
}

// e5m2 is the high byte of f16.
float E5m2ToF32(uint8_t code) { return F16ToF32(static_cast<uint16_t>(code << 8)); }

uint8_t F32ToE5m2(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & kAbsMask;
  const uint32_t code = magnitude > kInfinity ? 0x7f : EncodeMagnitude(kE5m2, magnitude);
  return static_cast<uint8_t>(((bits >> 24) & 0x80) | code);
}

}  // namespace shorthand
