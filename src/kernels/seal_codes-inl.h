// Sealing, third part: values to codes, codes to lines of 64 bytes. Compiled per
// target, after that target's ops file.
//
// The inverse of unpack-inl.h, in the same order of tiles.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_SEAL_CODES_INL_H_
#define SHORTHAND_KERNELS_SEAL_CODES_INL_H_

#include "kernels/seal_coders-inl.h"
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

// What the encoder reads and writes besides the view.
struct CodeTask {
  const float* x;
  const float* offsets;  // [groups][width], as below
  const float* units;
  const float* inverses;
  int bits;
  uint32_t zero_word;  // four codes of skipped tokens and padding channels
  uint8_t* lines;
};

// What four positions from `position` on of a lane tile at `lane` are coded by.
template <bool kPerLane>
struct TileUnits {
  Unit of[4];

  TileUnits(const SealView& view, const CodeTask& task, int group, int lane, int position) {
    const int scale = group * view.width() + (kPerLane ? lane : position);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const int i = scale + (kPerLane ? 0 : j);
      of[j] = {Factor<kPerLane>(task.offsets + i), Factor<kPerLane>(task.units + i),
               Factor<kPerLane>(task.inverses + i)};
    }
  }
};

// Four positions from `position` on of the lane tile at `lane`, all of one group: a tile of codes.
template <bool kPerLane, typename Coder>
inline U32 CodeTile(const SealView& view, const CodeTask& task, const Coder& coder,
                    const TileUnits<kPerLane>& units, int lane, int position) {
  const size_t at = view.At(lane, position);
  U32 codes[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const size_t x_at = at + j * kLanes;
    codes[j] = coder(Load(task.x + x_at), units.of[j], x_at);
  }
  const U32 even = AddBits(AddBits(codes[0], coder.bias), ShiftLeft<16>(codes[2]));
  return AddBits(even, AddBits(ShiftLeft<8>(codes[1]), ShiftLeft<24>(codes[3])));
}

// All ones in the bytes of four positions that take part.
inline uint32_t PositionMask(Span valid, int position) {
  uint32_t mask = 0;
  for (int j = 0; j < 4; ++j) {
    if (valid.Contains({position + j, position + j + 1})) mask |= 0xffu << 8 * j;
  }
  return mask;
}

// A tile of codes, but zero codes where nothing takes part.
inline U32 Masked(const SealView& view, U32 zero, U32 codes, int lane, int position) {
  const U32 mask = And(LanesWithin(view.valid_lanes, lane),
                       SetBits(PositionMask(view.valid_positions, position)));
  return Xor(zero, And(mask, Xor(codes, zero)));
}

// Some lanes and positions: whole pairs of lane tiles, whole lines. Eight tiles never lie across
// groups of positions.
template <bool kPerLane, typename Coder>
inline void CodePart(SealView view, CodeTask task, Coder coder, Span lanes, Span positions) {
  const U32 zero = SetBits(task.zero_word);
  for (int lane = lanes.begin; lane < lanes.end; lane += 2 * kLanes) {
    const int width = lanes.end - lane >= 2 * kLanes ? 2 : 1;
    const int tiles_before = lane / kLanes * view.positions / 4 + positions.begin / 4 * width;
    uint8_t* lines =
        task.lines + static_cast<size_t>(tiles_before / kGroupTiles) * task.bits * kLine;
    const int depth = 4 * kGroupTiles / width;
    for (int first = positions.begin; first < positions.end; first += depth) {
      const bool whole = view.valid_lanes.Contains({lane, lane + width * kLanes}) &&
                         view.valid_positions.Contains({first, first + depth});
      U32 tiles[kGroupTiles];
      for (int i = 0; i < width; ++i) {
        const int from = lane + i * kLanes;
        const int group = view.GroupAt(kPerLane ? first : from);
        for (int tile = i; tile < kGroupTiles; tile += width) {
          const int position = first + 4 * (tile / width);
          const TileUnits<kPerLane> units(view, task, group, from, position);
          const U32 codes = CodeTile(view, task, coder, units, from, position);
          tiles[tile] = whole ? codes : Masked(view, zero, codes, from, position);
        }
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
