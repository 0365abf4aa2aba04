// What the integer kernels of attention read and keep: sealed sides whose levels are small
// integers, folded queries and folded weights.
//
// Scores are computed on the codes: the scales of channels are multiplied into the query, which is
// rounded to one or two bytes a channel ("limbs"), the scales of tokens multiply the finished
// score. Values likewise: the scales of tokens are multiplied into the softmax weights, which are
// rounded to one or two bytes with the residue carried to the next tile of tokens. Weights are
// unsigned: where a scale is negative its codes are flipped instead. docs/numerics.md derives it.
//
// Bounds: a key code is below 256 and a limb within +-127 (+-128 the low one), a weight limb below
// 256 and a value level within +-128, so a word of 32 bits holds the sum of 65000 channels or
// tokens. Only <cstdint> and read_ahead.h are included here: target files may include this
// header. Thread-safety: plain data.
#ifndef SHORTHAND_KERNELS_CODES_H_
#define SHORTHAND_KERNELS_CODES_H_

#include <cstdint>

#include "kernels/read_ahead.h"

namespace shorthand {

// Rows that share one pass over a page.
inline constexpr int kMaxPassRows = 16;
inline constexpr int kMaxLimbs = 2;
// Folds or token groups of a page: one, or four of 32 tokens.
inline constexpr int kMaxTokenGroups = 4;
inline constexpr int kMaxChannelGroups = 32;

// Keys whose quads of channels have widths of their own: how many quads have 8, 6, 5, 4, 3, 2 bits,
// in this order.
inline constexpr int kPlaneWidths = 6;
struct KeyPlanes {
  int quads[kPlaneWidths];
  // Of the channels from the i-th width on: sum of the mean squares of centred codes.
  float rest_squares[kPlaneWidths];
  // [dim] 2^(bits - 1): levels are centred by it.
  const float* centres;
  const uint8_t* centre_bytes;
};

// A sealed side as the integer kernels read it: value = scale * unit * level + offset with
//   level = code - base, or table[code] - base
struct CodedSide8 {
  const uint8_t* lines;
  const float* meta;     // the page's scales and offsets, widened, in the page's order
  const uint8_t* table;  // [16]; null: the code itself
  float unit;
  int base;     // subtracted from code or table entry: makes levels centred
  float shift;  // centring moved the offset: offset + shift * scale * unit is meant
  int dim;      // padded
  int bits;     // 2 3 4 5 6 8
  bool per_channel;
  int group;  // channels (per token) or tokens (per channel: 32 or 128) that share a scale
  bool has_offset;
  bool wide = false;  // table entries beyond 127 (keys), or 64 in magnitude (values)
  // Values per token: [groups][128], 2^bits - 1 (wide tables: 255) where a scale is negative, else
  // 0. Null: no scale is. Wide tables have them always, narrow ones never.
  const uint8_t* flips = nullptr;
  const KeyPlanes* planes = nullptr;  // null: every code has `bits` bits
  ReadAhead* ahead = nullptr;
};

// The folded queries of the rows of a pass for one page.
struct FoldedQueries {
  int limbs;       // 1, or 2 if any row needs it
  int8_t* bytes;   // [folds][row][kMaxLimbs, low first][dim]; rows that need one limb have it low
  int fine_quads;  // of planes: behind them all low limbs are 0; for other keys unused
  float scale[kMaxTokenGroups][kMaxPassRows];     // of the integer score
  float constant[kMaxTokenGroups][kMaxPassRows];  // per channel: added to the score
  float sum[kMaxChannelGroups][kMaxPassRows];  // per token: of the exact query over a channel group
  // What the integer sums start from: -base * sum of the bytes, per fold or channel group.
  int32_t start[kMaxChannelGroups][kMaxLimbs][kMaxPassRows];
};

// The folded weights of the rows of a pass for one page.
struct FoldedWeights {
  int limbs;       // 2 for values of 5 bits and more, else 1
  uint8_t* bytes;  // [channel group][row][kMaxLimbs, low first][128]
  float scale[kMaxChannelGroups][kMaxPassRows];
  float offset[kMaxChannelGroups][kMaxPassRows];  // per token: added to every channel of the group
  float total[kMaxTokenGroups]
             [kMaxPassRows];  // per channel: sum of the exact weights of a token group
  int32_t start[kMaxChannelGroups][kMaxTokenGroups][kMaxLimbs][kMaxPassRows];
};

}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_CODES_H_
