// How values become codes, one family a type. Compiled per target, after that target's ops file.
// Thread-safety: pure functions but for TableCoder, which writes where it is told.
#ifndef SHORTHAND_KERNELS_SEAL_CODERS_INL_H_
#define SHORTHAND_KERNELS_SEAL_CODERS_INL_H_

#include "kernels/elements-inl.h"
#include "kernels/seal.h"

namespace shorthand {
namespace {

// What values are coded by: 16 numbers each, or the same one in every lane.
struct Unit {
  F32 offset, size, inverse;  // size and inverse 0: values are taken for zero
  F32 Quotient(F32 x) const { return shorthand::Quotient(Sub(x, offset), size, inverse); }
};

// How a value becomes a code, as types. `at` is where it stands in the working memory, `bias` is
// added to every byte of a word of four codes.
//
// Equally spaced levels from `low` to `high`.
struct UniformCoder {
  F32 low, high;
  U32 bias;
  explicit UniformCoder(const SealJob& job) {
    const int middle = 1 << (job.bits - 1);
    const bool is_signed = job.rule == SealRule::kSigned;
    low = Set(static_cast<float>(is_signed ? 1 - middle : 0));
    high = Set(static_cast<float>(is_signed ? middle - 1 : 2 * middle - 1));
    bias = SetBits(is_signed ? middle * 0x01010101u : 0u);
  }
  // The same from 0 up in `bits` bits.
  UniformCoder OfWidth(int bits) const {
    UniformCoder coder = *this;
    coder.high = Set(static_cast<float>((1 << bits) - 1));
    return coder;
  }
  U32 operator()(F32 x, const Unit& unit, size_t) const {
    return Round(Min(Max(unit.Quotient(x), low), high));
  }
  F32 Level(U32 code) const { return Convert(code); }
};

// Tables: the number of midpoints between neighbouring levels that lie below. They lie within +-60
// and more than 4 apart, so of 32 intervals of length 4, those of the nearest multiples, each has
// at most one: how many lie below the interval, and a comparison. Levels are kept for the fit.
struct TableCoder {
  static constexpr int kIntervals = 32;
  Table32 counts;     // of midpoints below an interval, as integers
  Table32 midpoints;  // in an interval; infinity where there is none
  Table16 levels;
  U32 bias;
  float* chosen;  // null: not kept

  // The interval's number in the lowest bits. Adding 1.5 * 2^23 rounds to an integer.
  static U32 IntervalOf(F32 y) {
    const F32 within = Min(Max(y, Set(-64.0f)), Set(60.0f));
    return BitsOf(Fma(within, Set(0.25f), Set(0x1.8p23f + kIntervals / 2)));
  }
  TableCoder(const SealJob& job, float* levels_out) : chosen(levels_out) {
    float padded[kLanes] = {}, middles[kLanes], intervals[kLanes];
    for (float& m : middles) m = __builtin_inff();
    const int last = (1 << job.bits) - 1;
    for (int i = 0; i <= last; ++i) padded[i] = job.levels[i];
    for (int i = 0; i < last; ++i) middles[i] = (padded[i] + padded[i + 1]) / 2;
    Store(Convert(And(IntervalOf(Load(middles)), SetBits(kIntervals - 1))), intervals);
    float below[kIntervals], middle[kIntervals];
    for (int i = 0, count = 0; i < kIntervals; ++i) {
      below[i] = __builtin_bit_cast(float, count);
      const bool has_one = count < last && intervals[count] == static_cast<float>(i);
      middle[i] = has_one ? middles[count++] : __builtin_inff();
    }
    levels = LoadTable(padded);
    counts = LoadTable32(below);
    midpoints = LoadTable32(middle);
    bias = SetBits(0);
  }
  U32 operator()(F32 x, const Unit& unit, size_t at) const {
    const F32 y = unit.Quotient(x);
    const U32 interval = IntervalOf(y);
    const F32 count = Lookup32(counts, interval), midpoint = Lookup32(midpoints, interval);
    const F32 next = FloatOf(AddBits(BitsOf(count), SetBits(1)));
    const U32 code = BitsOf(IfLess(midpoint, y, next, count));
    if (chosen != nullptr) Store(Level(code), chosen + at);
    return code;
  }
  F32 Level(U32 code) const { return Lookup(levels, code); }
};

// ggml's blocks: products with the inverse, which halves are added to and the fraction dropped
// from.
struct BlockCoder {
  F32 half, top;
  U32 half_sign;  // the sign bit where a half has the value's sign
  U32 bias;
  explicit BlockCoder(const SealJob& job) {
    const bool is_signed = job.rule == SealRule::kBlockSigned;
    const int middle = 1 << (job.bits - 1);
    const bool centred = job.rule == SealRule::kBlockCentred;
    // The number before a half: added to less than a half it stays below 1.
    half = Set(is_signed ? 0x1.fffffep-2f : centred ? static_cast<float>(middle) + 0.5f : 0.5f);
    top = Set(static_cast<float>(is_signed ? middle - 1 : 2 * middle - 1));
    half_sign = SetBits(is_signed ? 0x80000000u : 0u);
    bias = SetBits(is_signed ? middle * 0x01010101u : 0u);
  }
  U32 operator()(F32 x, const Unit& unit, size_t) const {
    const F32 y = Mul(Sub(x, unit.offset), unit.inverse);
    const F32 signed_half = FloatOf(Or(BitsOf(half), And(BitsOf(y), half_sign)));
    return Truncate(Min(Add(y, signed_half), top));
  }
};

// Floats of 8 bits.
template <int kMantissaBits, int kBias, uint32_t kMaxCode>
struct FloatCoder {
  static constexpr int kDropped = 23 - kMantissaBits;
  static constexpr int kRebias = 127 - kBias;  // from the exponent of f32
  static constexpr float kMax =
      __builtin_bit_cast(float, (kMaxCode << kDropped) + (uint32_t{kRebias} << 23));

  U32 bias;
  FloatCoder() : bias(SetBits(0)) {}
  U32 operator()(F32 x, const Unit& unit, size_t) const {
    const F32 y = Min(Magnitude(unit.Quotient(x)), Set(kMax));
    // Rounded to even, the carry going into the exponent.
    const U32 odd = And(ShiftRight<kDropped>(BitsOf(y)), SetBits(1));
    const U32 half = AddBits(odd, SetBits((1u << (kDropped - 1)) - 1));
    const U32 rounded = ShiftRight<kDropped>(AddBits(BitsOf(y), half));
    const U32 normal = AddBits(rounded, SetBits(0u - (uint32_t{kRebias} << kMantissaBits)));
    // Adding this leaves multiples of the smallest step in the lowest bits.
    const uint32_t magic = uint32_t{kRebias + 1 + kDropped} << 23;
    const F32 shifted = Add(y, FloatOf(SetBits(magic)));
    const U32 subnormal = AddBits(BitsOf(shifted), SetBits(0u - magic));
    const F32 least_normal = FloatOf(SetBits(uint32_t{kRebias + 1} << 23));
    const F32 code = IfLess(y, least_normal, FloatOf(subnormal), FloatOf(normal));
    return Or(BitsOf(code), And(ShiftRight<24>(BitsOf(x)), SetBits(0x80)));
  }
};
using E4m3Coder = FloatCoder<3, 7, 0x7e>;
using E5m2Coder = FloatCoder<2, 15, 0x7b>;

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SEAL_CODERS_INL_H_
