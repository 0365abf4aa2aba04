// Weighted sums of up to 8 rows over the codes of one page of values. Lane = channel. Compiled per
// target, after that target's ops file.
//
// Integer dot products of folded weights and levels over the tokens of a scale group, then one
// multiply-add of floats for each output and group.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_ACCUMULATE_CODES_INL_H_
#define SHORTHAND_KERNELS_ACCUMULATE_CODES_INL_H_

#include "kernels/code_tiles-inl.h"

namespace shorthand {
namespace {

// What stays the same over the blocks of one call.
struct CodeRange {
  const CodedSide8& v;
  const FoldedWeights& w;
  const float* shrink;  // [rows]
  int rows;
  int first, end;  // tokens that any row sees
  float* out;      // [rows][dim]
};

// One block of rows over kWidth channel tiles: two that alternate, or the unpaired last one.
template <int kBits, int kLimbs, int kRows, int kWidth, typename Codes>
struct AccumulatePair {
  const CodeRange& range;
  const Codes& codes;
  int first_row, channel, group;
  F32 out[kRows][kWidth];

  // Sums over the tokens of one token group; `lines` stands at its codes.
  inline void AddTokens(const uint8_t* lines, int token_group, int first, int tokens) {
    const FoldedWeights& w = range.w;
    CodeSums<kLimbs, kRows> sums;
    sums.Begin([&](int l, int r) { return w.start[group][token_group][l][first_row + r]; });
    const size_t limb_stride = static_cast<size_t>(range.rows) * kPageSlots;
    const uint8_t* bytes =
        w.bytes + group * kMaxLimbs * limb_stride + static_cast<size_t>(first_row) * kPageSlots;
    constexpr int kStep = 4 * kGroupTiles / kWidth;  // tokens of eight tiles
    for (int t = first; t < first + tokens; t += kStep, lines += kBits * kLine) {
      if (t + kStep <= range.first || t >= range.end) continue;
      U32 tiles[kGroupTiles];
      ExpandTiles<kBits>(lines, tiles);
#pragma GCC unroll 8
      for (int quad = 0; quad < kGroupTiles / kWidth; ++quad) {
        U32 levels[kWidth];
#pragma GCC unroll 8
        for (int i = 0; i < kWidth; ++i) levels[i] = codes.Value(tiles[quad * kWidth + i]);
#pragma GCC unroll 8
        for (int l = 0; l < kLimbs; ++l) {
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) {
            const U32 word = LoadWord(bytes + l * limb_stride + r * kPageSlots + t + 4 * quad);
            U32(&sum)[2] = sums.sum[quad % sums.kSets][l][r];
#pragma GCC unroll 8
            for (int i = 0; i < kWidth; ++i) sum[i] = DotCodes<kBits>(sum[i], word, levels[i]);
          }
        }
      }
    }
    AddSums(sums, token_group);
  }

  inline void AddSums(CodeSums<kLimbs, kRows>& sums, int token_group) {
    const CodedSide8& v = range.v;
#pragma GCC unroll 8
    for (int i = 0; i < kWidth; ++i) {
      F32 scale = Set(1.0f), offset = Set(0.0f);
      if (v.per_channel) {
        const float* meta =
            v.meta + token_group * v.dim * (v.has_offset ? 2 : 1) + channel + i * kLanes;
        scale = Load(meta);
        offset = Mul(scale, Set(v.shift * v.unit));
        if (v.has_offset) offset = Add(offset, Load(meta + v.dim));
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const F32 sum = Mul(sums.Finish(r, i), Set(range.w.scale[group][first_row + r]));
        if (v.per_channel) {
          const F32 total = Set(range.w.total[token_group][first_row + r]);
          out[r][i] = Fma(sum, scale, Fma(total, offset, out[r][i]));
        } else {
          out[r][i] = Add(sum, Add(out[r][i], Set(range.w.offset[group][first_row + r])));
        }
      }
    }
  }

  inline void Run(const uint8_t* lines) {
    const CodedSide8& v = range.v;
    float* to = range.out + static_cast<size_t>(first_row) * v.dim + channel;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int i = 0; i < kWidth; ++i) {
        out[r][i] = Mul(Load(to + r * v.dim + i * kLanes), Set(range.shrink[first_row + r]));
      }
    }
    const int tokens = v.per_channel ? v.group : kPageSlots;
    const int group_lines = tokens / 4 * kWidth / kGroupTiles * kBits;
    for (int t = 0; t * tokens < kPageSlots; ++t) {
      AddTokens(lines + t * group_lines * kLine, t, t * tokens, tokens);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int i = 0; i < kWidth; ++i) Store(out[r][i], to + r * v.dim + i * kLanes);
    }
  }
};

template <int kBits, int kLimbs, int kRows, int kWidth, typename Codes>
inline void AccumulateCodesBlock(const CodeRange& range, const Codes& codes, int first_row,
                                 int channel) {
  const CodedSide8& v = range.v;
  const int group = v.per_channel ? 0 : channel / v.group;
  AccumulatePair<kBits, kLimbs, kRows, kWidth, Codes> block{range,   codes, first_row,
                                                            channel, group, {}};
  // A channel tile is 32 tiles of codes, 4 * kBits lines; pairs alternate but lie together.
  block.Run(v.lines + static_cast<size_t>(channel / kLanes) * 4 * kBits * kLine);
}

// Values of 6 bits and more are weighted by two limbs, others by one.
void AccumulateCodes(const CodedSide8& v, const FoldedWeights& w, const float* shrink, int first,
                     int end, int rows, float* out) {
  const CodeRange range{v, w, shrink, rows, first, end, out};
  WithCodes(v, [&](auto bits, const auto& codes) {
    constexpr int kBits = decltype(bits)::value;
    constexpr int kLimbs = kBits >= 6 ? 2 : 1;
    const int paired = v.dim / (2 * kLanes) * 2 * kLanes;
    ForCodeRows<kLimbs>(rows, [&](int row, auto block) {
      constexpr int kRows = decltype(block)::value;
      for (int channel = 0; channel < paired; channel += 2 * kLanes) {
        AccumulateCodesBlock<kBits, kLimbs, kRows, 2>(range, codes, row, channel);
      }
    });
    if (paired == v.dim) return;
    for (int row = 0; row < rows; ++row) {
      AccumulateCodesBlock<kBits, kLimbs, 1, 1>(range, codes, row, paired);
    }
  });
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_ACCUMULATE_CODES_INL_H_
