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

// The token tiles of a call, whole pairs.
struct TokenTiles {
  int first, end;
};

// Scores [rows][128] of the sums [rows][limbs][128] over all channels of keys with scales per
// channel.
template <int kLimbs>
inline void FinishChannelScores(const CodedSide8& k, const FoldedQueries& q, int rows,
                                TokenTiles tiles, const int32_t* sums, float* scores) {
  const int fold_tiles = k.group / kLanes;
  for (int r = 0; r < rows; ++r) {
    const int32_t* row_sums = sums + r * kLimbs * kPageSlots;
    float* row_scores = scores + r * kPageSlots;
    for (int tile = tiles.first; tile < tiles.end;) {
      const int fold = tile / fold_tiles;
      const int end = (fold + 1) * fold_tiles < tiles.end ? (fold + 1) * fold_tiles : tiles.end;
      const F32 scale = Set(q.scale[fold][r]), constant = Set(q.constant[fold][r]);
      U32 start[kLimbs];
      LoadStarts(q.start[fold], r, start);
      for (; tile < end; ++tile) {
        const F32 sum = JoinLimbs<kLimbs>(row_sums + tile * kLanes, kPageSlots, start);
        Store(Fma(sum, scale, constant), row_scores + tile * kLanes);
      }
    }
  }
}

// Adds to scores [rows][128] the sums over one channel group of keys with scales per token.
template <int kLimbs>
inline void AddTokenScores(const CodedSide8& k, const FoldedQueries& q, int rows, int group,
                           TokenTiles tiles, const int32_t* sums, float* scores) {
  const int groups = (k.dim + k.group - 1) / k.group;
  const bool has_offset = k.has_offset;
  const F32 shift = Set(k.shift * k.unit);
  for (int tile = tiles.first; tile < tiles.end; ++tile) {
    const float* meta = k.meta + (tile / 2 * groups + group) * 2 * kLanes * (has_offset ? 2 : 1) +
                        tile % 2 * kLanes;
    const F32 scale = Load(meta);
    const F32 offset = CentredOffset(scale, shift, has_offset ? meta + 2 * kLanes : nullptr);
    for (int r = 0; r < rows; ++r) {
      U32 start[kLimbs];
      LoadStarts(q.start[group], r, start);
      float* to = scores + r * kPageSlots + tile * kLanes;
      const F32 sum =
          JoinLimbs<kLimbs>(sums + r * kLimbs * kPageSlots + tile * kLanes, kPageSlots, start);
      const F32 added = Fma(Mul(sum, Set(q.scale[0][r])), scale, Mul(offset, Set(q.sum[group][r])));
      Store(group == 0 ? added : Add(Load(to), added), to);
    }
  }
}

template <int kLimbs>
inline void FinishScores(const CodedSide8& k, const FoldedQueries& q, int rows, int group,
                         TokenTiles tiles, const int32_t* sums, float* scores) {
  if (k.per_channel) {
    FinishChannelScores<kLimbs>(k, q, rows, tiles, sums, scores);
  } else {
    AddTokenScores<kLimbs>(k, q, rows, group, tiles, sums, scores);
  }
}

// The sums of all streams over one channel group, from channel `first` on, for all pairs of tiles.
template <int kBits, typename Codes>
inline void SumChannels(const CodedSide8& k, const Codes& codes, const FoldedQueries& q, int rows,
                        int first, int channels, TokenTiles tiles, int32_t* sums) {
  const size_t stride = static_cast<size_t>(k.dim) * (kMaxLimbs / q.limbs);
  for (int tile = tiles.first; tile < tiles.end; tile += 2) {
    const int fold = k.per_channel ? tile * kLanes / k.group : 0;
    const int8_t* bytes = q.bytes + static_cast<size_t>(fold) * rows * kMaxLimbs * k.dim + first;
    // A quad of channels of a pair of tiles is two tiles of codes.
    const int codes_before = (tile / 2 * k.dim + first) / 4 * 2;
    SumStreams<CodesOf::kKeys, kBits, 2>({k.lines + codes_before / kGroupTiles * kBits * kLine,
                                          reinterpret_cast<const uint8_t*>(bytes), stride, channels,
                                          sums + tile * kLanes, kPageSlots, 0, k.ahead},
                                         rows * q.limbs, codes);
  }
}

inline void ScorePlainCodes(const CodedSide8& k, const FoldedQueries& q, int rows, int first_tile,
                            int end_tile, float* scores) {
  alignas(64) int32_t sums[kVectorRows * kMaxLimbs * kPageSlots];
  const TokenTiles tiles{first_tile / 2 * 2, (end_tile + 1) / 2 * 2};
  const int group_channels = k.per_channel ? k.dim : k.group;
  WithCodes<CodesOf::kKeys>(k, [&](auto bits, const auto& codes) {
    for (int first = 0, group = 0; first < k.dim; first += group_channels, ++group) {
      const int channels = group_channels < k.dim - first ? group_channels : k.dim - first;
      SumChannels<decltype(bits)::value>(k, codes, q, rows, first, channels, tiles, sums);
      WithLimbs(q.limbs, [&](auto limbs) {
        FinishScores<decltype(limbs)::value>(k, q, rows, group, tiles, sums, scores);
      });
    }
  });
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SCORE_CODES_INL_H_
