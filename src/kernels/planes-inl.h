// Scores against keys whose quads of channels have widths of their own. Compiled per target, after
// that target's ops file.
//
// The widest channels, whose codes reach furthest, need a finer query than the others: every
// channel has the coarse limb of its folded query, the first quads the fine one too. Sums run on
// from one width to the next; a quad is eight token tiles, of which half go through at a time.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_PLANES_INL_H_
#define SHORTHAND_KERNELS_PLANES_INL_H_

#include "kernels/fold-inl.h"
#include "kernels/score_codes-inl.h"

namespace shorthand {
namespace {

inline constexpr int kHalfTiles = kGroupTiles / 2;
// Streams whose sums over half the tokens fit the registers.
inline constexpr int kPlaneStreams = kAccumulators >= 16 ? 4 : 1;

// How many quads need the fine limb: with the coarse one alone their rounding may make no more than
// the recipe's own error times rho's limit, the quads behind them likewise.
inline int FineQuads(const KeyPlanes& planes, const FoldedRow& row) {
  const float factor = row.max * row.max / (kOneLimb * kOneLimb);
  int quads = 0;
  for (int i = 0; i < kPlaneWidths; ++i) {
    // What is left falls with i. No branch, which differs from page to page.
    const bool fine = factor * planes.rest_squares[i] > kRhoLimitSquared * row.square_sum;
    quads += planes.quads[i] & -static_cast<int>(fine);
  }
  return quads;
}

// x [n] to both limbs; the fine one of channels from `fine` on is zero.
inline void RoundPlaneQuery(const float* x, int n, float reciprocal, int fine, int8_t* low,
                            int8_t* high) {
  const F32 factor = Set(reciprocal);
  for (int c = 0; c < n; c += kLanes) {
    const U32 rounded = Round(Mul(Load(x + c), factor));
    StoreBytes(rounded, reinterpret_cast<uint8_t*>(low + c));
    // The low limb is read as signed: what it takes away above 127 the high one gains.
    const U32 upper = ShiftRight<8>(AddBits(rounded, SetBits(0x80)));
    StoreBytes(upper, reinterpret_cast<uint8_t*>(high + c));
  }
  __builtin_memset(low + fine, 0, static_cast<size_t>(n - fine));
}

// Minus the sum of bytes [n] times centres [n], n a multiple of 16.
inline int32_t StartOfPlanes(const uint8_t* centres, const int8_t* bytes, int n) {
  const auto* from = reinterpret_cast<const uint8_t*>(bytes);
  U32 sum = SetBits(0);
  int at = 0;
  for (; at + kLine <= n; at += kLine) {
    sum = DotWide(sum, LoadLine(centres + at), LoadLine(from + at));
  }
  if (at < n) {
    alignas(kLine) uint8_t last_centres[kLine] = {}, last_bytes[kLine] = {};
    __builtin_memcpy(last_centres, centres + at, static_cast<size_t>(n - at));
    __builtin_memcpy(last_bytes, from + at, static_cast<size_t>(n - at));
    sum = DotWide(sum, LoadLine(last_centres), LoadLine(last_bytes));
  }
  return static_cast<int32_t>(0u - static_cast<uint32_t>(SumOfWords(sum)));
}

void FoldPlaneQueries(const CodedSide8& k, const float* q, int rows, FoldedQueries* out) {
  alignas(64) float x[4 * kMaxDim];
  out->limbs = 2;
  out->fine_quads = 0;
  const auto shift_at = [&](int i) { return Load(k.planes->centres + i); };
  ForFours(rows, [&](int first_row, auto block) {
    constexpr int kRows = decltype(block)::value;
    FoldedRow folded[kRows];
    ScaleRows<kRows>(k, q + first_row * k.dim, k.dim, k.meta, k.meta + k.dim, shift_at, x, folded);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const int row = first_row + r;
      const float max = folded[r].max;
      const bool zero = max < kLeastScale;
      const int fine_quads = FineQuads(*k.planes, folded[r]);
      if (fine_quads > out->fine_quads) out->fine_quads = fine_quads;
      out->scale[0][row] = zero ? 0.0f : max / kTwoLimbs;
      out->constant[0][row] = folded[r].offset_sum;
      int8_t* low = out->bytes + static_cast<size_t>(row) * kMaxLimbs * k.dim;
      RoundPlaneQuery(x + r * k.dim, k.dim, zero ? 0.0f : kTwoLimbs / max, 4 * fine_quads, low,
                      low + k.dim);
    }
  });
  // Bytes that were just stored in parts are slow to read as lines, so this comes when all are
  // there.
  for (int row = 0; row < rows; ++row) {
    for (int limb = 0; limb < kMaxLimbs; ++limb) {
      const int8_t* bytes = out->bytes + static_cast<size_t>(row * kMaxLimbs + limb) * k.dim;
      out->start[0][limb][row] = StartOfPlanes(k.planes->centre_bytes, bytes, k.dim);
    }
  }
}

// One limb of some rows over the first quads of a page, for half of its tokens.
struct PlaneJob {
  const uint8_t* lines;
  const int8_t* bytes;  // of the first row
  size_t stride;        // from row to row
  int quads;
  int32_t* sums;  // [row], kMaxLimbs * kPageSlots apart
  ReadAhead* ahead;
};

// Adds the quads of one width.
template <int kBits, int kHalf, int kStreams>
[[gnu::always_inline]] inline void AddPlane(PlaneJob* job, int quads,
                                            U32 (&sum)[kStreams][kHalfTiles]) {
  const int count = quads < job->quads ? quads : job->quads;
  const uint8_t* lines = job->lines;
  const int8_t* bytes = job->bytes;
  for (int i = 0; i < count; ++i, lines += kBits * kLine, bytes += 4) {
    U32 tiles[kGroupTiles];
    if (i % 2 == kHalf) Step(job->ahead);  // each half of the tokens passes here
    ExpandTiles<kBits>(lines, tiles);
#pragma GCC unroll 4
    for (int s = 0; s < kStreams; ++s) {
      const U32 word = LoadWord(reinterpret_cast<const uint8_t*>(bytes + s * job->stride));
#pragma GCC unroll 4
      for (int t = 0; t < kHalfTiles; ++t) {
        U32& to = sum[s][t];
        to = DotCodes<CodesOf::kKeys, kBits == 8>(to, tiles[kHalf * kHalfTiles + t], word);
      }
    }
  }
  job->lines = lines;
  job->bytes = bytes;
  job->quads -= count;
}

template <int kHalf, int kStreams>
[[gnu::noinline]] void SumPlanes(PlaneJob job, const int* quads) {
  U32 sum[kStreams][kHalfTiles];
#pragma GCC unroll 4
  for (int s = 0; s < kStreams; ++s) {
#pragma GCC unroll 4
    for (int t = 0; t < kHalfTiles; ++t) sum[s][t] = SetBits(0);
  }
  static_assert(kPlaneWidths == 6);
  AddPlane<8, kHalf>(&job, quads[0], sum);
  AddPlane<6, kHalf>(&job, quads[1], sum);
  AddPlane<5, kHalf>(&job, quads[2], sum);
  AddPlane<4, kHalf>(&job, quads[3], sum);
  AddPlane<3, kHalf>(&job, quads[4], sum);
  AddPlane<2, kHalf>(&job, quads[5], sum);
#pragma GCC unroll 4
  for (int s = 0; s < kStreams; ++s) {
    int32_t* to = job.sums + s * kMaxLimbs * kPageSlots + kHalf * kHalfTiles * kLanes;
#pragma GCC unroll 4
    for (int t = 0; t < kHalfTiles; ++t) {
      StoreLine(sum[s][t], reinterpret_cast<uint8_t*>(to + t * kLanes));
    }
  }
}

// One limb of all rows.
template <int kHalf>
inline void SumPlaneRows(PlaneJob job, int rows, const int* quads) {
  for (int left = rows; left > 0;) {
    const int streams = left < kPlaneStreams ? left : kPlaneStreams;
    if (streams == 4) {
      SumPlanes<kHalf, kPlaneStreams>(job, quads);
    } else if (streams == 3) {
      SumPlanes<kHalf, kPlaneStreams == 4 ? 3 : 1>(job, quads);
    } else if (streams == 2) {
      SumPlanes<kHalf, kPlaneStreams == 4 ? 2 : 1>(job, quads);
    } else {
      SumPlanes<kHalf, 1>(job, quads);
    }
    left -= streams;
    job.bytes += streams * job.stride;
    job.sums += streams * kMaxLimbs * kPageSlots;
    job.ahead = nullptr;
  }
}

void ScorePlanes(const CodedSide8& k, const FoldedQueries& q, int rows, int first_tile,
                 int end_tile, float* scores) {
  alignas(64) int32_t sums[kVectorRows * kMaxLimbs * kPageSlots];
  const size_t stride = static_cast<size_t>(kMaxLimbs) * k.dim;
  const int* quads = k.planes->quads;
  const PlaneJob fine = {k.lines, q.bytes, stride, q.fine_quads, sums, nullptr};
  const PlaneJob coarse = {k.lines, q.bytes + k.dim, stride, k.dim / 4, sums + kPageSlots, k.ahead};
  if (first_tile < kHalfTiles) {
    SumPlaneRows<0>(coarse, rows, quads);
    SumPlaneRows<0>(fine, rows, quads);
  }
  if (end_tile > kHalfTiles) {
    SumPlaneRows<1>(coarse, rows, quads);
    SumPlaneRows<1>(fine, rows, quads);
  }
  FinishChannelScores<2>(k, q, rows, {first_tile / 2 * 2, (end_tile + 1) / 2 * 2}, sums, scores);
}

void FoldQuery(const CodedSide8& k, const float* q, float code_rms, int rows, FoldedQueries* out) {
  if (k.planes != nullptr) return FoldPlaneQueries(k, q, rows, out);
  FoldPlainQuery(k, q, code_rms, rows, out);
}

void ScoreCodes(const CodedSide8& k, const FoldedQueries& q, int rows, int first_tile, int end_tile,
                float* scores) {
  if (k.planes != nullptr) return ScorePlanes(k, q, rows, first_tile, end_tile, scores);
  ScorePlainCodes(k, q, rows, first_tile, end_tile, scores);
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_PLANES_INL_H_
