// Scores of up to 8 rows against the codes of one page of keys. Lane = token. Compiled per target,
// after that target's ops file.
//
// Integer dot products of codes and folded queries over the channels of a scale group, then one
// multiply-add of floats for each score and group.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_SCORE_CODES_INL_H_
#define SHORTHAND_KERNELS_SCORE_CODES_INL_H_

#include "kernels/code_tiles-inl.h"

namespace shorthand {
namespace {

// One block of rows over one pair of token tiles.
template <int kBits, int kLimbs, int kRows, typename Codes>
struct ScorePair {
  const CodedSide8& k;
  const FoldedQueries& q;
  const Codes& codes;
  int rows, first_row, pair, fold;
  const uint8_t* lines;
  F32 score[kRows][2];

  // Sums over channels [first, first + channels), which advance `lines`.
  inline void AddChannels(int first, int channels, int start_at) {
    CodeSums<kLimbs, kRows> sums;
    sums.Begin([&](int l, int r) { return q.start[start_at][l][first_row + r]; });
    const size_t limb_stride = static_cast<size_t>(rows) * k.dim;
    const int8_t* bytes =
        q.bytes + fold * kMaxLimbs * limb_stride + static_cast<size_t>(first_row) * k.dim + first;
    for (int c = 0; c < channels; c += 2 * kGroupTiles) {
      U32 tiles[kGroupTiles];
      ExpandTiles<kBits>(lines, tiles);
      lines += kBits * kLine;
#pragma GCC unroll 8
      for (int quad = 0; quad < kGroupTiles / 2; ++quad) {
        const U32 even = codes.Key(tiles[2 * quad]);
        const U32 odd = codes.Key(tiles[2 * quad + 1]);
#pragma GCC unroll 8
        for (int l = 0; l < kLimbs; ++l) {
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) {
            const U32 word = LoadWord(bytes + l * limb_stride + r * k.dim + c + 4 * quad);
            U32(&sum)[2] = sums.sum[quad % sums.kSets][l][r];
            sum[0] = DotCodes<kBits>(sum[0], even, word);
            sum[1] = DotCodes<kBits>(sum[1], odd, word);
          }
        }
      }
    }
    AddScores(sums, start_at);
  }

  inline void AddScores(CodeSums<kLimbs, kRows>& sums, int group) {
#pragma GCC unroll 8
    for (int tile = 0; tile < 2; ++tile) {
      if (k.per_channel) {
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          score[r][tile] = Fma(sums.Finish(r, tile), Set(q.scale[fold][first_row + r]),
                               Set(q.constant[fold][first_row + r]));
        }
        continue;
      }
      const int groups = (k.dim + k.group - 1) / k.group;
      const float* meta =
          k.meta + (pair * groups + group) * 2 * kLanes * (k.has_offset ? 2 : 1) + tile * kLanes;
      const F32 scale = Load(meta);
      F32 offset = Mul(scale, Set(k.shift * k.unit));
      if (k.has_offset) offset = Add(offset, Load(meta + 2 * kLanes));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const F32 dot = Mul(sums.Finish(r, tile), Set(q.scale[0][first_row + r]));
        const F32 added = Mul(offset, Set(q.sum[group][first_row + r]));
        score[r][tile] = Add(score[r][tile], Fma(dot, scale, added));
      }
    }
  }
};

template <int kBits, int kLimbs, int kRows, typename Codes>
inline void ScoreCodesBlock(const CodedSide8& k, const FoldedQueries& q, const Codes& codes,
                            int rows, int first_row, int first_tile, int end_tile, float* scores) {
  const int pair_lines = k.dim * kBits / 16;  // dim / 2 tiles of 64 codes
  for (int pair = first_tile / 2; pair < (end_tile + 1) / 2; ++pair) {
    const int fold = k.per_channel ? pair * 2 * kLanes / k.group : 0;
    ScorePair<kBits, kLimbs, kRows, Codes> block{
        k, q, codes, rows, first_row, pair, fold, k.lines + pair * pair_lines * kLine, {}};
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) block.score[r][0] = block.score[r][1] = Set(0.0f);
    if (k.per_channel) {
      block.AddChannels(0, k.dim, fold);
    } else {
      for (int g = 0; g * k.group < k.dim; ++g) {
        const int left = k.dim - g * k.group;
        block.AddChannels(g * k.group, k.group < left ? k.group : left, g);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      float* to = scores + (first_row + r) * kPageSlots + pair * 2 * kLanes;
      Store(block.score[r][0], to);
      Store(block.score[r][1], to + kLanes);
    }
  }
}

template <int kLimbs>
inline void ScoreCodesLimbs(const CodedSide8& k, const FoldedQueries& q, int rows, int first_tile,
                            int end_tile, float* scores) {
  WithCodes(k, [&](auto bits, const auto& codes) {
    ForCodeRows<kLimbs>(rows, [&](int row, auto block) {
      ScoreCodesBlock<decltype(bits)::value, kLimbs, decltype(block)::value>(
          k, q, codes, rows, row, first_tile, end_tile, scores);
    });
  });
}

void ScoreCodes(const CodedSide8& k, const FoldedQueries& q, int rows, int first_tile, int end_tile,
                float* scores) {
  if (q.limbs == 1) {
    ScoreCodesLimbs<1>(k, q, rows, first_tile, end_tile, scores);
  } else {
    ScoreCodesLimbs<2>(k, q, rows, first_tile, end_tile, scores);
  }
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SCORE_CODES_INL_H_
