// Codes of a sealed side to f32: value = fma(scale, level[code], offset). Compiled per target,
// after that target's ops file.
//
// K and V are the same thing with two axes exchanged. A tile is 16 lanes x 4 quad positions; its
// 64 bytes, read as 16 dwords, hold one lane a dword, so byte j of all dwords is a whole vector of
// codes. K has tokens on the lanes and channels in the quads, V the reverse. Lane tiles come in
// pairs that alternate, quad after quad; an unpaired last lane tile (V only) is alone.
// Eight consecutive tiles fill exactly `bits` lines of 64 bytes, and a run of one pair, or of one
// unpaired lane tile, is always a multiple of eight tiles.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_UNPACK_INL_H_
#define SHORTHAND_KERNELS_UNPACK_INL_H_

#include "kernels/elements-inl.h"

namespace shorthand {
namespace {

inline constexpr int kGroupTiles = 8;
inline constexpr int kMaxLaneTiles = kMaxDim / kLanes;
inline constexpr int kMaxQuads = kMaxDim / 4;

// kBits lines to eight tiles, a code a byte.
template <int kBits>
inline void ExpandTiles(const uint8_t* lines, U32 (&tiles)[kGroupTiles]);

template <>
inline void ExpandTiles<8>(const uint8_t* lines, U32 (&tiles)[kGroupTiles]) {
  for (int i = 0; i < 8; ++i) tiles[i] = LoadLine(lines + i * kLine);
}

template <>
inline void ExpandTiles<4>(const uint8_t* lines, U32 (&tiles)[kGroupTiles]) {
  for (int i = 0; i < 4; ++i) {
    const U32 line = LoadLine(lines + i * kLine);
    tiles[2 * i] = Field<0, 4>(line);
    tiles[2 * i + 1] = Field<4, 4>(line);
  }
}

template <>
inline void ExpandTiles<2>(const uint8_t* lines, U32 (&tiles)[kGroupTiles]) {
  for (int i = 0; i < 2; ++i) {
    const U32 line = LoadLine(lines + i * kLine);
    tiles[4 * i] = Field<0, 2>(line);
    tiles[4 * i + 1] = Field<2, 2>(line);
    tiles[4 * i + 2] = Field<4, 2>(line);
    tiles[4 * i + 3] = Field<6, 2>(line);
  }
}

// Three lines hold two tiles each in their low six bits; their top two bits are the two-bit fields
// of a fourth line of that kind.
template <>
inline void ExpandTiles<3>(const uint8_t* lines, U32 (&tiles)[kGroupTiles]) {
  U32 line[3];
  for (int i = 0; i < 3; ++i) {
    line[i] = LoadLine(lines + i * kLine);
    tiles[2 * i] = Field<0, 3>(line[i]);
    tiles[2 * i + 1] = Field<3, 3>(line[i]);
  }
  tiles[6] = Or(Field<6, 2>(line[0]), Field<6, 1, 2>(line[1]));
  tiles[7] = Or(Field<7, 1>(line[1]), Field<6, 2, 1>(line[2]));
}

// One line of top bits, then four lines of nibbles.
template <>
inline void ExpandTiles<5>(const uint8_t* lines, U32 (&tiles)[kGroupTiles]) {
  ExpandTiles<4>(lines + kLine, tiles);
  const U32 top = LoadLine(lines);
  tiles[0] = Or(tiles[0], Field<0, 1, 4>(top));
  tiles[1] = Or(tiles[1], Field<1, 1, 4>(top));
  tiles[2] = Or(tiles[2], Field<2, 1, 4>(top));
  tiles[3] = Or(tiles[3], Field<3, 1, 4>(top));
  tiles[4] = Or(tiles[4], Field<4, 1, 4>(top));
  tiles[5] = Or(tiles[5], Field<5, 1, 4>(top));
  tiles[6] = Or(tiles[6], Field<6, 1, 4>(top));
  tiles[7] = Or(tiles[7], Field<7, 1, 4>(top));
}

// Twice: one line of top two bits, then two lines of nibbles, for four tiles.
template <>
inline void ExpandTiles<6>(const uint8_t* lines, U32 (&tiles)[kGroupTiles]) {
  for (int half = 0; half < 2; ++half, lines += 3 * kLine) {
    U32* out = tiles + 4 * half;
    const U32 top = LoadLine(lines);
    for (int i = 0; i < 2; ++i) {
      const U32 line = LoadLine(lines + (1 + i) * kLine);
      out[2 * i] = Field<0, 4>(line);
      out[2 * i + 1] = Field<4, 4>(line);
    }
    out[0] = Or(out[0], Field<0, 2, 4>(top));
    out[1] = Or(out[1], Field<2, 2, 4>(top));
    out[2] = Or(out[2], Field<4, 2, 4>(top));
    out[3] = Or(out[3], Field<6, 2, 4>(top));
  }
}

// How the codes in byte kByte of every word become levels.
// Up to 16 levels: one register.
struct SmallLevels {
  Table16 table;
  SmallLevels(const float* levels, int count) {
    float padded[16] = {};
    for (int i = 0; i < count; ++i) padded[i] = levels[i];
    table = LoadTable(padded);
  }
  template <int kByte>
  F32 Get(U32 codes) const {
    return Lookup(table, ShiftRight<8 * kByte>(codes));
  }
};
// level[i] = i + level[0].
struct UniformLevels {
  F32 first;
  explicit UniformLevels(const float* levels) : first(Set(levels[0])) {}
  static bool Fits(const float* levels, int count) {
    for (int i = 0; i < count; ++i) {
      if (levels[i] != static_cast<float>(i) + levels[0]) return false;
    }
    return true;
  }
  template <int kByte>
  F32 Get(U32 codes) const {
    return Add(Convert(And(ShiftRight<8 * kByte>(codes), SetBits(0xff))), first);
  }
};
// e4m3 (kMantissa 3) and e5m2 (2), their NaN and infinity apart: a gather of 16 takes longer. The
// constants are members so that they are not made again for every vector.
template <int kMantissa>
struct MinifloatLevels {
  static constexpr int kExponent = 7 - kMantissa;
  static constexpr uint32_t kBias = (1u << (kExponent - 1)) - 1;
  U32 magnitude_bits = SetBits(0x7fu << (23 - kMantissa));
  U32 bias = SetBits((127 - kBias) << 23);
  U32 sign_bit = SetBits(0x80000000u);
  F32 minus_least_normal = Set(-2.0f / static_cast<float>(1u << kBias));
  F32 two = Set(2.0f);
  template <int kByte>
  F32 Get(U32 codes) const {
    const U32 top = ShiftLeft<24 - 8 * kByte>(codes);
    const F32 value = FloatOf(AddBits(And(ShiftRight<8 - kExponent>(top), magnitude_bits), bias));
    // Exponent 0 has no hidden one: such a value is as much too large as it lacks to the least
    // normal number.
    const F32 exact = Min(value, Fma(value, two, minus_least_normal));
    return FloatOf(Or(BitsOf(exact), And(top, sign_bit)));
  }
};
struct AnyLevels {
  const float* levels;
  template <int kByte>
  F32 Get(U32 codes) const {
    return Gather(levels, And(ShiftRight<8 * kByte>(codes), SetBits(0xff)));
  }
};

// A side with its axes named by what the kernel does with them. The scale of position 4 * quad + j
// of a lane tile stands at lane_at[tile] + quad_at[quad] + j * step.
struct Side {
  const uint8_t* lines;
  float* out;                // of the first tile and quad that are wanted
  int lanes, positions;      // lanes and quad positions of the page: tokens, channels
  int first_tile, end_tile;  // wanted
  int first_quad, end_quad;
  size_t lane_stride, quad_stride;  // of `out`, in floats; the lane stride is a tile's
  bool per_lane;                    // a scale for each lane, else one for each quad position
  const float* scales;
  const float* offsets;  // null: 0
  int lane_at[kMaxLaneTiles];
  int quad_at[kMaxQuads];
  int step;
  ReadAhead* ahead;
};

// Scale and offset of the quad's position j: a vector over the lanes, or one number for all.
template <bool kPerLane>
inline F32 Factor(const float* p) {
  if constexpr (kPerLane) return Load(p);
  return Set(*p);
}

// Eight tiles: kWidth lane tiles (1 or 2) from `tile` on, alternating, times 8 / kWidth quads.
template <int kBits, bool kPerLane, int kWidth, typename Levels>
inline void UnpackGroup(const Side& side, const Levels& levels, int tile, int quad) {
  Step(side.ahead);
  const int tiles_before = tile * (side.positions / 4) + quad * kWidth;
  U32 codes[kGroupTiles];
  ExpandTiles<kBits>(side.lines + tiles_before / kGroupTiles * kBits * kLine, codes);
  // Copies: stores of vectors could be to anything.
  const float* const scales = side.scales;
  const float* const offsets = side.offsets;
  const size_t quad_stride = side.quad_stride, step = static_cast<size_t>(side.step);
#pragma GCC unroll 8
  for (int i = 0; i < kGroupTiles; ++i) {
    const int lane_tile = tile + i % kWidth, q = quad + i / kWidth;
    float* const out = side.out + (lane_tile - side.first_tile) * side.lane_stride +
                       4 * (q - side.first_quad) * quad_stride;
    const size_t at = static_cast<size_t>(side.lane_at[lane_tile]) + side.quad_at[q];
    const auto unpack = [&](auto byte) {
      constexpr int kByte = decltype(byte)::value;
      const F32 offset = offsets ? Factor<kPerLane>(offsets + at + kByte * step) : Set(0.0f);
      const F32 scale = Factor<kPerLane>(scales + at + kByte * step);
      Store(Fma(scale, levels.template Get<kByte>(codes[i]), offset), out + kByte * quad_stride);
    };
    unpack(Int<0>{});
    unpack(Int<1>{});
    unpack(Int<2>{});
    unpack(Int<3>{});
  }
}

template <int kBits, bool kPerLane, typename Levels>
inline void UnpackSide(const Side& side, const Levels& levels) {
  const int paired = side.lanes / (2 * kLanes) * 2;
  for (int tile = side.first_tile; tile < side.end_tile; tile += 2) {
    const int width = tile < paired ? 2 : 1;
    for (int quad = side.first_quad; quad < side.end_quad; quad += kGroupTiles / width) {
      if (width == 2) {
        UnpackGroup<kBits, kPerLane, 2>(side, levels, tile, quad);
      } else {
        UnpackGroup<kBits, kPerLane, 1>(side, levels, tile, quad);
      }
    }
  }
}

template <int kBits, typename Levels>
inline void UnpackAxis(const Side& side, const Levels& levels) {
  if (side.per_lane) {
    UnpackSide<kBits, true>(side, levels);
  } else {
    UnpackSide<kBits, false>(side, levels);
  }
}

template <int kBits>
inline void UnpackBits(const Side& side, const float* levels) {
  if constexpr (kBits <= 4) {
    UnpackAxis<kBits>(side, SmallLevels(levels, 1 << kBits));
  } else if (UniformLevels::Fits(levels, 1 << kBits)) {
    UnpackAxis<kBits>(side, UniformLevels(levels));
  } else {
    UnpackAxis<kBits>(side, AnyLevels{levels});
  }
}

// Calls f(i, group of i) for i = 0, step, 2 * step, .. < extent. A group that is no multiple of 16
// is a whole head, so that padding channels belong to it too.
template <typename Function>
inline void ForEachPlace(int extent, int step, int group, Function f) {
  const bool whole = group == 0 || group % kLanes != 0;
  const int last = whole ? 0 : extent / group - 1;
  for (int i = 0, g = 0, end = group; i < extent; i += step) {
    for (; g < last && i >= end; end += group) ++g;
    f(i, g);
  }
}

// Where scales stand: [lane group][position] or [position group][lane]; a page's single one at 0.
inline void PlaceScales(const UnpackJob& job, Side* side) {
  const bool single = job.axis == 2, per_lane = side->per_lane;
  side->step = single || per_lane ? 0 : 1;
  ForEachPlace(side->lanes, kLanes, job.group, [&](int lane, int group) {
    side->lane_at[lane / kLanes] = single ? 0 : per_lane ? lane : group * side->positions;
  });
  ForEachPlace(side->positions, 4, job.group, [&](int position, int group) {
    side->quad_at[position / 4] = single ? 0 : per_lane ? group * side->lanes : position;
  });
}

void Unpack(const UnpackJob& job, Side* side) {
  side->lines = job.lines;
  side->scales = job.scales;
  side->offsets = job.offsets;
  side->ahead = job.ahead;
  PlaceScales(job, side);
  if (job.minifloat == Minifloat::kE4m3) return UnpackAxis<8>(*side, MinifloatLevels<3>());
  if (job.minifloat == Minifloat::kE5m2) return UnpackAxis<8>(*side, MinifloatLevels<2>());
  switch (job.bits) {
    case 2:
      return UnpackBits<2>(*side, job.levels);
    case 3:
      return UnpackBits<3>(*side, job.levels);
    case 4:
      return UnpackBits<4>(*side, job.levels);
    case 5:
      return UnpackBits<5>(*side, job.levels);
    case 6:
      return UnpackBits<6>(*side, job.levels);
    case 8:
      return UnpackBits<8>(*side, job.levels);
  }
}

// K: tokens on the lanes, [tiles][dim][16].
inline void UnpackK(const UnpackJob& job, float* k) {
  Side side;
  side.out = k;
  side.lanes = kPageSlots;
  side.positions = job.dim;
  side.first_tile = job.first_token / kLanes;
  side.end_tile = job.end_token / kLanes;
  side.first_quad = 0;
  side.end_quad = job.dim / 4;
  side.lane_stride = static_cast<size_t>(job.dim) * kLanes;
  side.quad_stride = kLanes;
  side.per_lane = job.axis == 0;
  Unpack(job, &side);
}

// V: channels on the lanes, [tokens][dim].
inline void UnpackV(const UnpackJob& job, float* v) {
  Side side;
  side.out = v;
  side.lanes = job.dim;
  side.positions = kPageSlots;
  side.first_tile = 0;
  side.end_tile = job.dim / kLanes;
  side.first_quad = job.first_token / 4;
  side.end_quad = job.end_token / 4;
  side.lane_stride = kLanes;
  side.quad_stride = job.dim;
  side.per_lane = job.axis == 1;
  Unpack(job, &side);
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_UNPACK_INL_H_
