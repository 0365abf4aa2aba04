// The operations of OPS.md for 64-bit Arm with the dot product extension: 16 lanes are four
// registers.
//
// Include it from one target file only; everything is in an anonymous namespace.
// Thread-safety: pure functions.
#ifndef SHORTHAND_SIMD_OPS_NEON_H_
#define SHORTHAND_SIMD_OPS_NEON_H_

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace shorthand {
namespace {

inline constexpr int kLanes = 16;
// Vectors of running sums that fit the registers beside the operands.
inline constexpr int kAccumulators = 6;

// Lanes 0 to 3, 4 to 7, 8 to 11, 12 to 15.
struct F32 {
  float32x4_t q0, q1, q2, q3;
};
struct U32 {
  uint32x4_t q0, q1, q2, q3;
};

// Applies `f` to each quarter.
template <typename Vector, typename Function, typename... Vectors>
inline Vector EachQuarter(Function f, const Vectors&... v) {
  return {f(v.q0...), f(v.q1...), f(v.q2...), f(v.q3...)};
}

// Memory.
inline F32 Load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
inline void Store(F32 a, float* p) {
  vst1q_f32(p, a.q0);
  vst1q_f32(p + 4, a.q1);
  vst1q_f32(p + 8, a.q2);
  vst1q_f32(p + 12, a.q3);
}
inline F32 LoadF16(const uint16_t* p) {
  const float16x8_t low = vreinterpretq_f16_u16(vld1q_u16(p));
  const float16x8_t high = vreinterpretq_f16_u16(vld1q_u16(p + 8));
  return {vcvt_f32_f16(vget_low_f16(low)), vcvt_high_f32_f16(low), vcvt_f32_f16(vget_low_f16(high)),
          vcvt_high_f32_f16(high)};
}
inline F32 LoadBf16(const uint16_t* p) {
  const uint16x8_t low = vld1q_u16(p), high = vld1q_u16(p + 8);
  return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(low), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(low, 16)),
          vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(high), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(high, 16))};
}
inline U32 LoadLine(const uint8_t* p) {
  return {vreinterpretq_u32_u8(vld1q_u8(p)), vreinterpretq_u32_u8(vld1q_u8(p + 16)),
          vreinterpretq_u32_u8(vld1q_u8(p + 32)), vreinterpretq_u32_u8(vld1q_u8(p + 48))};
}
inline void StoreF16(F32 a, uint16_t* p) {
  vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(a.q0), a.q1)));
  vst1q_u16(p + 8, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(a.q2), a.q3)));
}
// The low halves of eight words.
inline uint16x8_t LowHalves(uint32x4_t a, uint32x4_t b) {
  return vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
}
inline void StoreHalves(U32 a, uint16_t* p) {
  vst1q_u16(p, LowHalves(a.q0, a.q1));
  vst1q_u16(p + 8, LowHalves(a.q2, a.q3));
}
inline void StoreLine(U32 a, uint8_t* p) {
  vst1q_u8(p, vreinterpretq_u8_u32(a.q0));
  vst1q_u8(p + 16, vreinterpretq_u8_u32(a.q1));
  vst1q_u8(p + 32, vreinterpretq_u8_u32(a.q2));
  vst1q_u8(p + 48, vreinterpretq_u8_u32(a.q3));
}

// Constants.
inline F32 Set(float x) {
  const float32x4_t lanes = vdupq_n_f32(x);
  return {lanes, lanes, lanes, lanes};
}
inline U32 SetBits(uint32_t x) {
  const uint32x4_t bits = vdupq_n_u32(x);
  return {bits, bits, bits, bits};
}
inline F32 Iota() {
  return {float32x4_t{0, 1, 2, 3}, float32x4_t{4, 5, 6, 7}, float32x4_t{8, 9, 10, 11},
          float32x4_t{12, 13, 14, 15}};
}

// Float arithmetic.
inline F32 Add(F32 a, F32 b) {
  return EachQuarter<F32>([](auto x, auto y) { return vaddq_f32(x, y); }, a, b);
}
inline F32 Sub(F32 a, F32 b) {
  return EachQuarter<F32>([](auto x, auto y) { return vsubq_f32(x, y); }, a, b);
}
inline F32 Mul(F32 a, F32 b) {
  return EachQuarter<F32>([](auto x, auto y) { return vmulq_f32(x, y); }, a, b);
}
inline F32 Div(F32 a, F32 b) {
  return EachQuarter<F32>([](auto x, auto y) { return vdivq_f32(x, y); }, a, b);
}
// Rounded to a neighbour of the quotient first; the exact remainder then decides.
inline F32 Quotient(F32 a, F32 b, F32 inverse) {
  return EachQuarter<F32>(
      [](auto x, auto y, auto z) {
        float32x4_t q = vmulq_f32(x, z);
        q = vfmaq_f32(q, vfmsq_f32(x, y, q), z);
        return vfmaq_f32(q, vfmsq_f32(x, y, q), z);
      },
      a, b, inverse);
}
inline F32 Sqrt(F32 a) {
  return EachQuarter<F32>([](auto x) { return vsqrtq_f32(x); }, a);
}
inline F32 Fma(F32 a, F32 b, F32 c) {
  return EachQuarter<F32>([](auto x, auto y, auto z) { return vfmaq_f32(z, x, y); }, a, b, c);
}
// By comparison: the instructions for maxima differ for NaN and for zeros.
inline float32x4_t Larger(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
inline F32 Max(F32 a, F32 b) {
  return EachQuarter<F32>([](auto x, auto y) { return Larger(x, y); }, a, b);
}
inline F32 Min(F32 a, F32 b) {
  return EachQuarter<F32>([](auto x, auto y) { return vbslq_f32(vcltq_f32(x, y), x, y); }, a, b);
}
inline F32 IfLess(F32 a, F32 b, F32 yes, F32 no) {
  return EachQuarter<F32>(
      [](auto x, auto y, auto v, auto w) { return vbslq_f32(vcltq_f32(x, y), v, w); }, a, b, yes,
      no);
}

// Across lanes.
inline float SumOfLanes(F32 a) {
  const float32x4_t by4 = vaddq_f32(vaddq_f32(a.q0, a.q2), vaddq_f32(a.q1, a.q3));
  return vpadds_f32(vadd_f32(vget_low_f32(by4), vget_high_f32(by4)));
}
inline float32x4_t SumsOfFour(const F32* rows) {
  float32x2_t by2[4];
  for (int i = 0; i < 4; ++i) {
    const F32& a = rows[i];
    const float32x4_t by4 = vaddq_f32(vaddq_f32(a.q0, a.q2), vaddq_f32(a.q1, a.q3));
    by2[i] = vadd_f32(vget_low_f32(by4), vget_high_f32(by4));
  }
  return vpaddq_f32(vcombine_f32(by2[0], by2[1]), vcombine_f32(by2[2], by2[3]));
}
inline F32 SumsOfLanes(const F32 (&rows)[kLanes]) {
  return {SumsOfFour(rows), SumsOfFour(rows + 4), SumsOfFour(rows + 8), SumsOfFour(rows + 12)};
}
inline float MaxOfLanes(F32 a) {
  const float32x4_t by4 = Larger(Larger(a.q0, a.q2), Larger(a.q1, a.q3));
  const float32x4_t by2 = Larger(by4, vextq_f32(by4, by4, 2));
  return vgetq_lane_f32(Larger(by2, vdupq_laneq_f32(by2, 1)), 0);
}
inline int32_t SumOfWords(U32 a) {
  return static_cast<int32_t>(vaddvq_u32(vaddq_u32(vaddq_u32(a.q0, a.q1), vaddq_u32(a.q2, a.q3))));
}
// The partner minus a is a times -1 plus the partner, which is rounded the same.
template <int kDistance>
inline F32 Butterfly(F32 a) {
  if constexpr (kDistance == 1) {
    const float32x4_t signs = {1, -1, 1, -1};
    return EachQuarter<F32>([&](auto x) { return vfmaq_f32(vrev64q_f32(x), x, signs); }, a);
  } else if constexpr (kDistance == 2) {
    const float32x4_t signs = {1, 1, -1, -1};
    return EachQuarter<F32>([&](auto x) { return vfmaq_f32(vextq_f32(x, x, 2), x, signs); }, a);
  } else if constexpr (kDistance == 4) {
    return {vaddq_f32(a.q0, a.q1), vsubq_f32(a.q0, a.q1), vaddq_f32(a.q2, a.q3),
            vsubq_f32(a.q2, a.q3)};
  } else {
    static_assert(kDistance == 8);
    return {vaddq_f32(a.q0, a.q2), vaddq_f32(a.q1, a.q3), vsubq_f32(a.q0, a.q2),
            vsubq_f32(a.q1, a.q3)};
  }
}
// Four rows of four.
inline void TransposeBlock(float32x4_t& a, float32x4_t& b, float32x4_t& c, float32x4_t& d) {
  const float64x2_t even_low = vreinterpretq_f64_f32(vtrn1q_f32(a, b));
  const float64x2_t odd_low = vreinterpretq_f64_f32(vtrn2q_f32(a, b));
  const float64x2_t even_high = vreinterpretq_f64_f32(vtrn1q_f32(c, d));
  const float64x2_t odd_high = vreinterpretq_f64_f32(vtrn2q_f32(c, d));
  a = vreinterpretq_f32_f64(vtrn1q_f64(even_low, even_high));
  b = vreinterpretq_f32_f64(vtrn1q_f64(odd_low, odd_high));
  c = vreinterpretq_f32_f64(vtrn2q_f64(even_low, even_high));
  d = vreinterpretq_f32_f64(vtrn2q_f64(odd_low, odd_high));
}
inline void Transpose(F32 (&rows)[kLanes]) {
  const auto swap = [](float32x4_t& a, float32x4_t& b) {
    const float32x4_t was = a;
    a = b;
    b = was;
  };
  for (int i = 0; i < kLanes; i += 4) {
    TransposeBlock(rows[i].q0, rows[i + 1].q0, rows[i + 2].q0, rows[i + 3].q0);
    TransposeBlock(rows[i].q1, rows[i + 1].q1, rows[i + 2].q1, rows[i + 3].q1);
    TransposeBlock(rows[i].q2, rows[i + 1].q2, rows[i + 2].q2, rows[i + 3].q2);
    TransposeBlock(rows[i].q3, rows[i + 1].q3, rows[i + 2].q3, rows[i + 3].q3);
  }
  for (int i = 0; i < 4; ++i) {
    swap(rows[i].q1, rows[i + 4].q0);
    swap(rows[i].q2, rows[i + 8].q0);
    swap(rows[i].q3, rows[i + 12].q0);
    swap(rows[i + 4].q2, rows[i + 8].q1);
    swap(rows[i + 4].q3, rows[i + 12].q1);
    swap(rows[i + 8].q3, rows[i + 12].q2);
  }
}

// Bits.
inline U32 BitsOf(F32 a) {
  return EachQuarter<U32>([](auto x) { return vreinterpretq_u32_f32(x); }, a);
}
inline F32 FloatOf(U32 a) {
  return EachQuarter<F32>([](auto x) { return vreinterpretq_f32_u32(x); }, a);
}
inline F32 Convert(U32 a) {
  return EachQuarter<F32>([](auto x) { return vcvtq_f32_s32(vreinterpretq_s32_u32(x)); }, a);
}
inline U32 And(U32 a, U32 b) {
  return EachQuarter<U32>([](auto x, auto y) { return vandq_u32(x, y); }, a, b);
}
inline U32 Or(U32 a, U32 b) {
  return EachQuarter<U32>([](auto x, auto y) { return vorrq_u32(x, y); }, a, b);
}
inline U32 Xor(U32 a, U32 b) {
  return EachQuarter<U32>([](auto x, auto y) { return veorq_u32(x, y); }, a, b);
}
inline U32 AddBits(U32 a, U32 b) {
  return EachQuarter<U32>([](auto x, auto y) { return vaddq_u32(x, y); }, a, b);
}
template <int kBits>
inline U32 ShiftLeft(U32 a) {
  return EachQuarter<U32>([](auto x) { return vshlq_n_u32(x, kBits); }, a);
}
template <int kBits>
inline U32 ShiftRight(U32 a) {
  if constexpr (kBits == 0) {
    return a;  // the instruction shifts by at least one
  } else {
    return EachQuarter<U32>([](auto x) { return vshrq_n_u32(x, kBits); }, a);
  }
}

// Tables.
using Table16 = uint8x16x4_t;  // the bytes of 16 floats
inline Table16 LoadTable(const float* levels) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(levels);
  return {{vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32), vld1q_u8(bytes + 48)}};
}
inline F32 Lookup(const Table16& table, U32 index) {
  return EachQuarter<F32>(
      [&](auto x) {
        const uint32x4_t level = vandq_u32(x, vdupq_n_u32(15));
        // Bytes 4 * level .. 4 * level + 3.
        const uint32x4_t bytes = vmlaq_u32(vdupq_n_u32(0x03020100), level, vdupq_n_u32(0x04040404));
        return vreinterpretq_f32_u8(vqtbl4q_u8(table, vreinterpretq_u8_u32(bytes)));
      },
      index);
}
struct Table32 {
  Table16 lower, upper;
};
inline Table32 LoadTable32(const float* levels) {
  return {LoadTable(levels), LoadTable(levels + 16)};
}
inline F32 Lookup32(const Table32& table, U32 index) {
  const F32 lower = Lookup(table.lower, index), upper = Lookup(table.upper, index);
  return EachQuarter<F32>(
      [](auto x, auto below, auto above) {
        return vbslq_f32(vtstq_u32(x, vdupq_n_u32(16)), above, below);
      },
      index, lower, upper);
}
inline F32 Gather(const float* levels, U32 index) {
  return EachQuarter<F32>(
      [&](auto x) {
        return float32x4_t{levels[vgetq_lane_u32(x, 0)], levels[vgetq_lane_u32(x, 1)],
                           levels[vgetq_lane_u32(x, 2)], levels[vgetq_lane_u32(x, 3)]};
      },
      index);
}

// Bytes.
using ByteTable16 = uint8x16_t;
inline ByteTable16 LoadByteTable(const uint8_t* p) { return vld1q_u8(p); }
inline U32 LookupBytes(const ByteTable16& table, U32 bytes) {
  return EachQuarter<U32>(
      [&](auto x) { return vreinterpretq_u32_u8(vqtbl1q_u8(table, vreinterpretq_u8_u32(x))); },
      bytes);
}
inline U32 LoadWord(const void* p) {
  uint32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return SetBits(word);
}
// There is no product of unsigned and signed bytes here, but `a` <= 127 is a signed byte as it is.
inline U32 Dot(U32 sum, U32 a, U32 b) {
  return EachQuarter<U32>(
      [](auto s, auto x, auto y) {
        return vreinterpretq_u32_s32(
            vdotq_s32(vreinterpretq_s32_u32(s), vreinterpretq_s8_u32(x), vreinterpretq_s8_u32(y)));
      },
      sum, a, b);
}
// Any other `a` is moved: a - 128 is a signed byte, `a` with its top bit turned, and
// a * b = (a - 128) * b - (-128) * b. What is subtracted depends on b alone: the compiler computes
// it once for all that meets the same b.
inline U32 DotWide(U32 sum, U32 a, U32 b) {
  return EachQuarter<U32>(
      [](auto s, auto x, auto y) {
        const int8x16_t low = vdupq_n_s8(-128), factor = vreinterpretq_s8_u32(y);
        const int8x16_t moved = veorq_s8(vreinterpretq_s8_u32(x), low);
        const int32x4_t excess = vdotq_s32(vdupq_n_s32(0), low, factor);
        return vreinterpretq_u32_s32(
            vsubq_s32(vdotq_s32(vreinterpretq_s32_u32(s), moved, factor), excess));
      },
      sum, a, b);
}
inline U32 DotSmall(U32 sum, U32 a, U32 b) { return DotWide(sum, a, b); }
inline U32 Round(F32 a) {
  return EachQuarter<U32>([](auto x) { return vreinterpretq_u32_s32(vcvtnq_s32_f32(x)); }, a);
}
inline U32 Truncate(F32 a) {
  return EachQuarter<U32>([](auto x) { return vreinterpretq_u32_s32(vcvtq_s32_f32(x)); }, a);
}
inline void StoreBytes(U32 a, uint8_t* p) {
  vst1q_u8(p, vuzp1q_u8(vreinterpretq_u8_u16(LowHalves(a.q0, a.q1)),
                        vreinterpretq_u8_u16(LowHalves(a.q2, a.q3))));
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_SIMD_OPS_NEON_H_
