// Sealing, third part: values to codes by rounded scales, codes to lines of 64 bytes. Compiled per
// target, after that target's ops file.
//
// The inverse of unpack-inl.h, in the same order of tiles.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_SEAL_CODES_INL_H_
#define SHORTHAND_KERNELS_SEAL_CODES_INL_H_

#include "kernels/seal_groups-inl.h"
#include "kernels/unpack-inl.h"

namespace shorthand {
namespace {

// The low nibbles of a pair of tiles.
inline U32 Nibbles(U32 even, U32 odd) {
  return Or(Field<0, 4>(even), ShiftLeft<4>(Field<0, 4>(odd)));
}

// Eight tiles of codes, a code a byte, to `bits` lines.
inline void PackTiles(int bits, const U32 (&tiles)[kGroupTiles], uint8_t* lines) {
  const auto store = [lines](U32 line, int i) { StoreLine(line, lines + i * kLine); };
  switch (bits) {
    case 2:
      for (int i = 0; i < 2; ++i) {
        const U32* t = tiles + 4 * i;
        store(Or(Or(t[0], ShiftLeft<2>(t[1])), Or(ShiftLeft<4>(t[2]), ShiftLeft<6>(t[3]))), i);
      }
      break;
    case 3: {
      const U32 spread = Or(tiles[6], ShiftLeft<3>(tiles[7]));
      const U32 parts[3] = {Field<0, 2>(spread), Field<2, 2>(spread), Field<4, 2>(spread)};
      for (int i = 0; i < 3; ++i) {
        store(Or(Or(tiles[2 * i], ShiftLeft<3>(tiles[2 * i + 1])), ShiftLeft<6>(parts[i])), i);
      }
      break;
    }
    case 4:
      for (int i = 0; i < 4; ++i) store(Or(tiles[2 * i], ShiftLeft<4>(tiles[2 * i + 1])), i);
      break;
    case 5: {
      U32 top = SetBits(0);
      for (int i = kGroupTiles - 1; i >= 0; --i) {
        top = Or(ShiftLeft<1>(top), Field<4, 1>(tiles[i]));
      }
      store(top, 0);
      for (int i = 0; i < 4; ++i) store(Nibbles(tiles[2 * i], tiles[2 * i + 1]), 1 + i);
      break;
    }
    case 6:
      for (int half = 0; half < 2; ++half) {
        const U32* t = tiles + 4 * half;
        U32 top = SetBits(0);
        for (int i = 3; i >= 0; --i) top = Or(ShiftLeft<2>(top), Field<4, 2>(t[i]));
        store(top, 3 * half);
        for (int i = 0; i < 2; ++i) store(Nibbles(t[2 * i], t[2 * i + 1]), 3 * half + 1 + i);
      }
      break;
    case 8:
      for (int i = 0; i < kGroupTiles; ++i) store(tiles[i], i);
      break;
  }
}

// How (x - offset) / unit becomes a code, as types. `bias` is added to every byte of a word of
// four. Equally spaced levels from `low` to `high`.
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
  U32 operator()(F32 y, size_t) const { return Round(Min(Max(y, low), high)); }
};

// Tables: the number of midpoints between neighbouring levels that lie below, by bisection. Levels
// are kept for the fit.
struct TableCoder {
  Table16 by1, by2, levels;  // by1: midpoint number code; by2: code + 1
  F32 middle, below, above;  // midpoints 7, 3, 11
  U32 bias;
  float* chosen;  // null: not kept

  TableCoder(const SealJob& job, float* levels_out) : chosen(levels_out) {
    float midpoints[32], padded[16] = {};
    for (float& m : midpoints) m = __builtin_inff();
    const int count = 1 << job.bits;
    for (int i = 0; i < count; ++i) padded[i] = job.levels[i];
    for (int i = 0; i + 1 < count; ++i) midpoints[i] = (padded[i] + padded[i + 1]) / 2;
    levels = LoadTable(padded);
    by1 = LoadTable(midpoints);
    by2 = LoadTable(midpoints + 1);
    middle = Set(midpoints[7]);
    below = Set(midpoints[3]);
    above = Set(midpoints[11]);
    bias = SetBits(0);
  }
  // `code` plus `step` where y is above the midpoint; the step's bit is not in it yet.
  static U32 Step(U32 code, F32 midpoint, F32 y, uint32_t step) {
    return BitsOf(IfLess(midpoint, y, FloatOf(Or(code, SetBits(step))), FloatOf(code)));
  }
  U32 operator()(F32 y, size_t at) const {
    U32 code = Step(SetBits(0), middle, y, 8);
    code = Step(code, IfLess(middle, y, above, below), y, 4);
    code = Step(code, Lookup(by2, code), y, 2);
    code = Step(code, Lookup(by1, code), y, 1);
    if (chosen != nullptr) Store(Lookup(levels, code), chosen + at);
    return code;
  }
};

// What the encoder reads and writes besides the view.
struct CodeTask {
  const float* x;
  const float* offsets;  // [groups][width], as below
  const float* units;    // what is divided by; infinite where a group is taken for zeros
  int bits;
  uint32_t zero_word;  // four codes of skipped tokens and padding channels
  uint8_t* lines;
};

// Four positions of a lane tile from `position` on: one tile of codes.
template <bool kPerLane, typename Coder>
inline U32 CodeTile(const SealView& view, const CodeTask& task, const Coder& coder, int lane,
                    int position) {
  const int group = view.GroupAt(kPerLane ? position : lane);
  const int scale = group * view.width() + (kPerLane ? lane : position);
  const float* offset = task.offsets + scale;
  const float* unit = task.units + scale;
  const size_t at = view.At(lane, position);
  U32 codes[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const int i = kPerLane ? 0 : j;
    const size_t x_at = at + j * kLanes;
    const F32 value = Sub(Load(task.x + x_at), Factor<kPerLane>(offset + i));
    codes[j] = coder(Div(value, Factor<kPerLane>(unit + i)), x_at);
  }
  const U32 even = AddBits(AddBits(codes[0], coder.bias), ShiftLeft<16>(codes[2]));
  return AddBits(even, AddBits(ShiftLeft<8>(codes[1]), ShiftLeft<24>(codes[3])));
}

// All ones in the bytes of four positions that take part.
inline uint32_t PositionMask(Span valid, int position) {
  uint32_t mask = 0;
  for (int j = 0; j < 4; ++j) {
    const bool takes_part = position + j >= valid.begin && position + j < valid.end;
    if (takes_part) mask |= 0xffu << 8 * j;
  }
  return mask;
}

// Some lanes and positions: whole pairs of lane tiles, whole lines.
template <bool kPerLane, typename Coder>
inline void CodePart(SealView view, CodeTask task, Coder coder, Span lanes, Span positions) {
  const U32 zero = SetBits(task.zero_word);
  for (int lane = lanes.begin; lane < lanes.end; lane += 2 * kLanes) {
    const int width = lanes.end - lane >= 2 * kLanes ? 2 : 1;
    U32 lane_mask[2];
    for (int i = 0; i < width; ++i) {
      lane_mask[i] = LanesWithin(view.valid_lanes, lane + i * kLanes);
    }
    const int tiles_before = lane / kLanes * view.positions / 4 + positions.begin / 4 * width;
    uint8_t* lines =
        task.lines + static_cast<size_t>(tiles_before / kGroupTiles) * task.bits * kLine;
    for (int first = positions.begin; first < positions.end; first += 4 * kGroupTiles / width) {
      U32 tiles[kGroupTiles];
      for (int i = 0; i < kGroupTiles; ++i) {
        const int in_pair = i & (width - 1), position = first + 4 * (i / width);
        const U32 word = CodeTile<kPerLane>(view, task, coder, lane + in_pair * kLanes, position);
        const U32 mask =
            And(lane_mask[in_pair], SetBits(PositionMask(view.valid_positions, position)));
        tiles[i] = Xor(zero, And(mask, Xor(word, zero)));
      }
      PackTiles(task.bits, tiles, lines);
      lines += task.bits * kLine;
    }
  }
}

// The codes of some scales of every group.
template <typename Coder>
inline void CodeScales(const SealView& view, const CodeTask& task, const Coder& coder,
                       Span scales) {
  if (view.per_lane) {
    CodePart<true>(view, task, coder, scales, {0, view.positions});
  } else {
    CodePart<false>(view, task, coder, {0, view.lanes}, scales);
  }
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SEAL_CODES_INL_H_
