// The operations of OPS.md for any CPU: 16 lanes are an array, one lane at a time.
// The other ops files must produce the same bits.
//
// Include it from one target file only; everything is in an anonymous namespace.
// Thread-safety: pure functions.
#ifndef SHORTHAND_SIMD_OPS_SCALAR_H_
#define SHORTHAND_SIMD_OPS_SCALAR_H_

#include <cstddef>
#include <cstdint>

namespace shorthand {
namespace {

inline constexpr int kLanes = 16;
// Vectors of running sums that fit the registers beside the operands.
inline constexpr int kAccumulators = 4;

struct F32 {
  float lane[kLanes];
};
struct U32 {
  uint32_t lane[kLanes];
};
struct Table16 {
  float level[16];
};

// Applies `f` to each lane number.
template <typename Vector, typename Function>
inline Vector EachLane(Function f) {
  Vector out;
  for (int i = 0; i < kLanes; ++i) out.lane[i] = f(i);
  return out;
}

inline float AsFloat(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Memory.
inline F32 Load(const float* p) {
  return EachLane<F32>([&](int i) { return p[i]; });
}
inline void Store(F32 a, float* p) {
  for (int i = 0; i < kLanes; ++i) p[i] = a.lane[i];
}
inline F32 LoadF16(const uint16_t* p) {
  // Rebiasing by a multiplication is exact and takes care of subnormals.
  return EachLane<F32>([&](int i) {
    const uint32_t magnitude = p[i] & 0x7fffu;
    const float finite = AsFloat(magnitude << 13) * 0x1p112f;
    const uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
    const uint32_t sign = (p[i] & 0x8000u) << 16;
    return AsFloat(__builtin_bit_cast(uint32_t, finite) | special | sign);
  });
}
inline F32 LoadBf16(const uint16_t* p) {
  return EachLane<F32>([&](int i) { return AsFloat(static_cast<uint32_t>(p[i]) << 16); });
}
inline U32 LoadLine(const uint8_t* p) {
  return EachLane<U32>([&](int i) {
    const uint8_t* b = p + 4 * i;
    return static_cast<uint32_t>(b[0]) | static_cast<uint32_t>(b[1]) << 8 |
           static_cast<uint32_t>(b[2]) << 16 | static_cast<uint32_t>(b[3]) << 24;
  });
}
// By integer arithmetic: the hidden bit and rounding up both carry into the exponent.
inline uint16_t HalfOf(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | magnitude >> 13);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Adding 0.5 leaves multiples of 2^-24, the subnormals' unit, in the lowest bits.
    const float shifted = AsFloat(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
}
inline void StoreF16(F32 a, uint16_t* p) {
  for (int i = 0; i < kLanes; ++i) p[i] = HalfOf(a.lane[i]);
}
inline void StoreHalves(U32 a, uint16_t* p) {
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<uint16_t>(a.lane[i]);
}
inline void StoreLine(U32 a, uint8_t* p) {
  for (int i = 0; i < kLanes; ++i) {
    for (int j = 0; j < 4; ++j) p[4 * i + j] = static_cast<uint8_t>(a.lane[i] >> 8 * j);
  }
}

// Constants.
inline F32 Set(float x) {
  return EachLane<F32>([&](int) { return x; });
}
inline U32 SetBits(uint32_t x) {
  return EachLane<U32>([&](int) { return x; });
}
inline F32 Iota() {
  return EachLane<F32>([](int i) { return static_cast<float>(i); });
}

// Float arithmetic.
inline F32 Add(F32 a, F32 b) {
  return EachLane<F32>([&](int i) { return a.lane[i] + b.lane[i]; });
}
inline F32 Sub(F32 a, F32 b) {
  return EachLane<F32>([&](int i) { return a.lane[i] - b.lane[i]; });
}
inline F32 Mul(F32 a, F32 b) {
  return EachLane<F32>([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline F32 Div(F32 a, F32 b) {
  return EachLane<F32>([&](int i) { return a.lane[i] / b.lane[i]; });
}
inline F32 Quotient(F32 a, F32 b, F32 inverse) {
  return EachLane<F32>([&](int i) { return inverse.lane[i] == 0 ? 0.0f : a.lane[i] / b.lane[i]; });
}
inline F32 Sqrt(F32 a) {
  return EachLane<F32>([&](int i) { return __builtin_sqrtf(a.lane[i]); });
}
inline F32 Fma(F32 a, F32 b, F32 c) {
  return EachLane<F32>([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
}
inline F32 Max(F32 a, F32 b) {
  return EachLane<F32>([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline F32 Min(F32 a, F32 b) {
  return EachLane<F32>([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline F32 IfLess(F32 a, F32 b, F32 yes, F32 no) {
  return EachLane<F32>([&](int i) { return a.lane[i] < b.lane[i] ? yes.lane[i] : no.lane[i]; });
}

// Across lanes.
inline float SumOfLanes(F32 a) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) a.lane[i] = a.lane[i] + a.lane[i + half];
  }
  return a.lane[0];
}
inline F32 SumsOfLanes(const F32 (&rows)[kLanes]) {
  F32 sums;
  for (int i = 0; i < kLanes; ++i) sums.lane[i] = SumOfLanes(rows[i]);
  return sums;
}
inline float MaxOfLanes(F32 a) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      a.lane[i] = a.lane[i] > a.lane[i + half] ? a.lane[i] : a.lane[i + half];
    }
  }
  return a.lane[0];
}
inline int32_t SumOfWords(U32 a) {
  uint32_t sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += a.lane[i];
  return static_cast<int32_t>(sum);
}
template <int kDistance>
inline F32 Butterfly(F32 a) {
  return EachLane<F32>([&](int i) {
    const float partner = a.lane[i ^ kDistance];
    return (i & kDistance) != 0 ? partner - a.lane[i] : a.lane[i] + partner;
  });
}
inline void Transpose(F32 (&rows)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) {
    for (int j = 0; j < i; ++j) {
      const float upper = rows[j].lane[i];
      rows[j].lane[i] = rows[i].lane[j];
      rows[i].lane[j] = upper;
    }
  }
}

// Bits.
inline U32 BitsOf(F32 a) { return __builtin_bit_cast(U32, a); }
inline F32 FloatOf(U32 a) { return __builtin_bit_cast(F32, a); }
inline F32 Convert(U32 a) {
  return EachLane<F32>([&](int i) { return static_cast<float>(static_cast<int32_t>(a.lane[i])); });
}
inline U32 And(U32 a, U32 b) {
  return EachLane<U32>([&](int i) { return a.lane[i] & b.lane[i]; });
}
inline U32 Or(U32 a, U32 b) {
  return EachLane<U32>([&](int i) { return a.lane[i] | b.lane[i]; });
}
inline U32 AddBits(U32 a, U32 b) {
  return EachLane<U32>([&](int i) { return a.lane[i] + b.lane[i]; });
}
template <int kBits>
inline U32 ShiftLeft(U32 a) {
  return EachLane<U32>([&](int i) { return a.lane[i] << kBits; });
}
template <int kBits>
inline U32 ShiftRight(U32 a) {
  return EachLane<U32>([&](int i) { return a.lane[i] >> kBits; });
}

// Tables.
inline Table16 LoadTable(const float* levels) {
  Table16 table;
  for (int i = 0; i < 16; ++i) table.level[i] = levels[i];
  return table;
}
inline F32 Lookup(const Table16& table, U32 index) {
  return EachLane<F32>([&](int i) { return table.level[index.lane[i] & 15]; });
}
struct Table32 {
  Table16 lower, upper;
};
inline Table32 LoadTable32(const float* levels) {
  return {LoadTable(levels), LoadTable(levels + 16)};
}
inline F32 Lookup32(const Table32& table, U32 index) {
  return EachLane<F32>([&](int i) {
    const Table16& half = (index.lane[i] & 16) != 0 ? table.upper : table.lower;
    return half.level[index.lane[i] & 15];
  });
}
inline F32 Gather(const float* levels, U32 index) {
  return EachLane<F32>([&](int i) { return levels[index.lane[i]]; });
}

// Bytes.
struct ByteTable16 {
  uint8_t entry[16];
};
inline ByteTable16 LoadByteTable(const uint8_t* p) {
  ByteTable16 table;
  for (int i = 0; i < 16; ++i) table.entry[i] = p[i];
  return table;
}
inline U32 LookupBytes(const ByteTable16& table, U32 bytes) {
  return EachLane<U32>([&](int i) {
    uint32_t word = 0;
    for (int j = 0; j < 4; ++j) {
      word |= static_cast<uint32_t>(table.entry[bytes.lane[i] >> 8 * j & 15]) << 8 * j;
    }
    return word;
  });
}
inline U32 Xor(U32 a, U32 b) {
  return EachLane<U32>([&](int i) { return a.lane[i] ^ b.lane[i]; });
}
inline U32 LoadWord(const void* p) {
  uint32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return SetBits(word);
}
inline U32 DotWide(U32 sum, U32 a, U32 b) {
  return EachLane<U32>([&](int i) {
    int32_t total = static_cast<int32_t>(sum.lane[i]);
    for (int j = 0; j < 32; j += 8) {
      total += static_cast<int32_t>(a.lane[i] >> j & 255) *
               static_cast<int32_t>(static_cast<int8_t>(b.lane[i] >> j & 255));
    }
    return static_cast<uint32_t>(total);
  });
}
inline U32 Dot(U32 sum, U32 a, U32 b) { return DotWide(sum, a, b); }
inline U32 DotSmall(U32 sum, U32 a, U32 b) { return DotWide(sum, a, b); }
inline U32 Round(F32 a) {
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the lowest bits.
  return EachLane<U32>([&](int i) {
    const float shifted = a.lane[i] + 0x1.8p23f;
    return __builtin_bit_cast(uint32_t, shifted) - 0x4b400000u;
  });
}
inline U32 Truncate(F32 a) {
  return EachLane<U32>(
      [&](int i) { return static_cast<uint32_t>(static_cast<int32_t>(a.lane[i])); });
}
inline void StoreBytes(U32 a, uint8_t* p) {
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<uint8_t>(a.lane[i]);
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_SIMD_OPS_SCALAR_H_
