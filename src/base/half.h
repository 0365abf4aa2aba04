// Half, bfloat and 8-bit floats: conversions by integer arithmetic, round to nearest even, the same
// on every machine.
// Thread-safety: pure functions.
#ifndef SHORTHAND_BASE_HALF_H_
#define SHORTHAND_BASE_HALF_H_

#include <algorithm>
#include <cstdint>

namespace shorthand {

inline constexpr float kMaxF16 = 65504.0f;

float F16ToF32(uint16_t h);
uint16_t F32ToF16(float x);  // overflow becomes infinity
float Bf16ToF32(uint16_t h);
uint16_t F32ToBf16(float x);

// OCP 8-bit floats. Encoding saturates at +-448 / +-57344; NaN stays NaN.
float E4m3ToF32(uint8_t code);
uint8_t F32ToE4m3(float x);
float E5m2ToF32(uint8_t code);
uint8_t F32ToE5m2(float x);

// The nearest f16, as f32.
inline float RoundToF16(float x) { return F16ToF32(F32ToF16(x)); }

// The nearest finite f16, as f32: what scales and offsets are stored as.
inline float RoundToFiniteF16(float x) { return RoundToF16(std::clamp(x, -kMaxF16, kMaxF16)); }

}  // namespace shorthand

#endif  // SHORTHAND_BASE_HALF_H_
