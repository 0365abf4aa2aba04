// The kernel table: the inner loops of attention over one page, compiled once per target from the
// same source, with the same float operations in the same order on every target, so that all
// targets produce the same bits.
//
// Vectors are logically 16 wide everywhere. Sums over 16 lanes are combined by one fixed tree
// (lane i + lane i+8, then +4, +2, +1). Every multiply-add is fused.
// Only <cstdint>, <cstddef>, codes.h, read_ahead.h and seal.h are included here: target files may
// include this header.
//
// Thread-safety: tables are immutable; kernels touch only their arguments.
#ifndef SHORTHAND_KERNELS_KERNELS_H_
#define SHORTHAND_KERNELS_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/codes.h"
#include "kernels/read_ahead.h"
#include "kernels/seal.h"

namespace shorthand {

// Rows of a pass over a page where sums are kept in vector registers; kMaxPassRows (codes.h) where
// tiles are multiplied.
inline constexpr int kVectorRows = 8;

enum class Element : uint8_t { kF32, kF16, kBf16 };

// The state of one row's running softmax over pages of one V space. Base-2 throughout.
struct RowState {
  float max;  // of scores * log2(e); -inf: nothing seen
  float sum;  // of 2^(score - max)
};

// What one row sees of a page.
struct RowView {
  int first, end;  // tokens
  float bias;      // added to each scaled score
};

struct ScoreParams {
  float scale;    // of the dot product
  float softcap;  // 0: none
  ReadAhead* ahead = nullptr;
};

// Codes that are floats of 8 bits.
enum class Minifloat : uint8_t { kNone, kE4m3, kE5m2 };

// A sealed side with its metadata already widened to f32.
struct UnpackJob {
  const uint8_t* lines;
  const float* levels;   // [2^bits]; not read if there is a minifloat
  const float* scales;   // token axis [groups][128], channel axis [groups][dim], page [1]
  const float* offsets;  // same shape, or null
  int dim;               // padded: a multiple of 16
  int bits;              // 2 3 4 5 6 8
  int group;             // channels (token axis) or tokens (channel axis) that share a scale
  int axis;              // 0 token, 1 channel, 2 page
  int first_token = 0;   // multiples of 32
  int end_token = 128;
  Minifloat minifloat = Minifloat::kNone;
  ReadAhead* ahead = nullptr;
};

// The integer path (codes.h) for passes of many rows: bytes of a page's codes are made once, and
// tiles of them multiplied by the folded queries or weights of up to kMaxPassRows rows.
struct TileKernels {
  // Bytes [lane tiles][positions / 4][64], 128 * dim of them, on a line.
  void (*expand_k)(const CodedSide8& k, uint8_t* bytes);
  void (*expand_v)(const CodedSide8& v, uint8_t* bytes);
  // As KernelTable::score_codes and accumulate_codes, the latter over all tokens: those that no row
  // sees have weights of 0. Rows are 1 to kMaxPassRows.
  void (*score)(const CodedSide8& k, const uint8_t* bytes, const FoldedQueries& q, int rows,
                int first_tile, int end_tile, float* scores);
  void (*accumulate)(const CodedSide8& v, const uint8_t* bytes, const FoldedWeights& w,
                     const float* shrink, int rows, float* out);
};

struct KernelTable {
  const char* name;

  // scores[r][t] = sum over c = 0..dim-1, in that order, of q[r][c] * k[c][t], from 0.
  //   q       [rows][dim]; 1 <= rows <= kMaxPassRows
  //   k       [8][dim][16] elements of type `element`, 64-byte aligned
  //   scores  [rows][128]; tiles outside [first_tile, end_tile) are left alone
  void (*score)(Element element, const void* k, const float* q, int dim, int rows, int first_tile,
                int end_tile, float* scores);

  // One page's step of the running softmax of `rows` rows. For each row and its tokens in
  // [first, end):
  //   s = scale * score + bias; s = softcap * tanh(s / softcap) if any; weight = 2^(s*log2e - max)
  // with the new maximum; outside, weight = 0. shrink = 2^(old max - new max), the factor by which
  // earlier sums and outputs shrink (1 if nothing was seen before).
  //   scores  [rows][128], replaced by the weights; states, shrink [rows]
  // REQUIRES: 0 <= first, end <= 128; a row with first >= end sees nothing.
  void (*softmax)(const ScoreParams& params, const RowView* views, int rows, float* scores,
                  RowState* states, float* shrink);

  // The states and outputs [rows][dim] of rows over a run of pages, joined with those of the pages
  // behind: each shrinks to the larger maximum, then they add up. dim is a multiple of 16.
  void (*join)(const RowState* later_states, const float* later_out, int rows, int dim,
               RowState* states, float* out);

  // out[r][c] = out[r][c] * shrink[r] + sum over t = first..end-1, in that order, of
  // weights[r][t] * v[t][c].
  //   v  [128][dim] elements of type `element`; weights [rows][128]; out [rows][dim]
  void (*accumulate)(Element element, const void* v, const float* weights, const float* shrink,
                     int first, int end, int dim, int rows, float* out);

  // value = fma(scale, level[code], offset) of the job's tokens.
  void (*unpack_k)(const UnpackJob& job, float* k);  // -> [tiles][dim][16]
  void (*unpack_v)(const UnpackJob& job, float* v);  // -> [tokens][dim]

  // Walsh-Hadamard over blocks of `block` (a power of two) of x [n]: butterflies at distance 1, 2,
  // 4, ..., then a multiplication by 1/sqrt(block).
  void (*hadamard)(float* x, int n, int block);

  // The integer path (codes.h). Metadata to f32, n a multiple of 16; then in this order:
  void (*widen)(const void* halves, int n, float* x);
  // q [rows][dim] into folded queries. `code_rms`: of the centred levels, in steps between levels;
  // it decides about the second limb.
  void (*fold_query)(const CodedSide8& k, const float* q, float code_rms, int rows,
                     FoldedQueries* folded);
  // scores [rows][128] of the token tiles [first_tile, end_tile) and perhaps a neighbour of them:
  // q.k, but for a page mean. Here and in accumulate_codes rows are at most kVectorRows.
  void (*score_codes)(const CodedSide8& k, const FoldedQueries& q, int rows, int first_tile,
                      int end_tile, float* scores);
  // weights [rows][128], zero where nothing is seen; folded->limbs is set.
  void (*fold_weights)(const CodedSide8& v, const float* weights, int rows, FoldedWeights* folded);
  // As accumulate, [first, end) being the tokens that any row sees.
  void (*accumulate_codes)(const CodedSide8& v, const FoldedWeights& w, const float* shrink,
                           int first, int end, int rows, float* out);

  // Token rows first .. first+rows-1 of an exact page or of sinks, from f32 rows of `dim` values
  // that lie `stride` apart; false if a value is not finite once rounded to `element`.
  //   keys [tiles][dim][16], values [.][dim], dim padded to a multiple of 16 with zeros
  bool (*write_keys)(Element element, const float* k, size_t stride, int rows, int dim, int first,
                     void* keys);
  bool (*write_values)(Element element, const float* v, size_t stride, int rows, int dim, int first,
                       void* values);

  // Seals one side (seal.h): exact f16 elements, [8][dim][16] or [128][dim], to its parts of a
  // page; the result belongs into the page's descriptor. `scratch`: SealScratchFloats(job).
  SealResult (*seal)(const SealJob& job, const void* exact, uint8_t* meta, uint8_t* codes,
                     float* scratch);

  // 2^x for every lane of x [n], n a multiple of 16: the one exp2 of the project, for tests.
  void (*exp2)(float* x, int n);

  const TileKernels* tiles;  // null: this target has none

  // The most rows of a pass over a page.
  int max_rows() const { return tiles == nullptr ? kVectorRows : kMaxPassRows; }
};

// The tables compiled into this library, best first; each says whether this CPU can run it.
struct TargetEntry {
  const KernelTable* table;
  bool supported;
};
const TargetEntry* CompiledTargets(int* count);

// The table in use: the best supported one, or the one that SHORTHAND_TARGET names. Chosen once.
// Null if SHORTHAND_TARGET names one that is not compiled in or that this CPU cannot run.
const KernelTable* ActiveKernels();
// In words: why this one.
const char* ActiveKernelsReason();

}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_KERNELS_H_
