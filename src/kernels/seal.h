// What the sealing kernel is told about one side of a page: a format, reduced to plain numbers.
//
// The rules are those of docs/formats/uniform.md, planes.md, table.md, ggml.md and fp8.md, the
// bytes those of the codecs in src/quant. Only <cstddef> and <cstdint> are included here: target
// files may include this header. Thread-safety: plain data.
#ifndef SHORTHAND_KERNELS_SEAL_H_
#define SHORTHAND_KERNELS_SEAL_H_

#include <cstddef>
#include <cstdint>

namespace shorthand {

// How a group's scale and offset follow from its values.
enum class SealRule : uint8_t {
  kUnsigned,         // uB: least and largest value
  kWater,            // wN: least and largest value, then fitted to the codes of few bits
  kSigned,           // iB: largest magnitude
  kNormalFloat,      // nfB: largest magnitude
  kLloydMax,         // lmB: root mean square, then fitted to the chosen levels
  kRangeNormalised,  // rnB, nuqB: middle and half of the range
  kBlockMinimum,     // q4_1 q5_1: least and largest value
  kBlockCentred,     // q4_0 q5_0: the value with the largest magnitude
  kBlockSigned,      // q8_0: largest magnitude
  kE4m3,             // largest magnitude of the page
  kE5m2,
};

// What the scale of kLloydMax keeps.
enum class SealFit : uint8_t {
  kLeastSquares,  // the least squared error
  kNorm,          // the group's norm
  kUnbiased,      // its product with itself
};

// What does not stand in a page's bytes: of kE4m3 and kE5m2, else zeros.
struct SealResult {
  float page_scale;
  uint32_t clipped;  // values beyond the largest code although the scale was given
};

struct SealJob {
  SealRule rule;
  bool key;          // else value
  bool per_channel;  // scales; else per token
  bool mean;         // keys: the page mean is subtracted
  bool smooth;       // keys: channels are divided by the root of their largest magnitude
  SealFit fit;       // of kLloydMax
  float page_scale;  // kE4m3, kE5m2: the scale; 0: the page's own
  int dim;
  int padded_dim;       // a multiple of 16
  int bits;             // 2 3 4 5 6 8; tables up to 4
  int group;            // channels (a multiple of 16, or all) or tokens that share a scale
  int hadamard;         // block length, 0: none
  int first_token;      // tokens before it take no part
  float clip;           // of kUnsigned, kSigned, kRangeNormalised
  const float* ratios;  // of the same: parts of the range that are tried for the least error
  int ratio_count;      // 0: none is
  float step;           // of tables: one level, in what the rule normalises by
  const float* levels;  // [2^bits] of tables, ascending
  const float* means;   // keys: [padded_dim] that are subtracted first; null: none
  // Keys in channels with widths of their own, docs/formats/planes.md; else null and 0.
  const uint16_t* order;  // [padded_dim] the channel at each place
  const uint8_t* widths;  // [padded_dim / 4] bits of each quad of places
  int plane_lines;        // of codes, in a page
  // The loudest channels of the page, which get twice the bits: it finds order and widths itself.
  int promoted;
  // kWater: [9] the part of the range that codes of so many bits span before scales are fitted to
  // them; 1: they are not. How often that is done.
  const float* first_ratios;
  int fit_rounds;
  const float* factors;  // keys: [padded_dim] that multiply the channels; null: none
  uint8_t zero_code;     // what padding channels and skipped tokens hold
};

// Scales of a side; with one for the page as many as tokens, all the same.
constexpr int SealScaleCount(const SealJob& job) {
  return job.per_channel ? 128 / job.group * job.padded_dim : job.dim / job.group * 128;
}

constexpr bool HasPageScale(const SealJob& job) {
  return job.rule == SealRule::kE4m3 || job.rule == SealRule::kE5m2;
}
constexpr bool HasOffset(const SealJob& job) {
  return job.rule == SealRule::kUnsigned || job.rule == SealRule::kWater ||
         job.rule == SealRule::kRangeNormalised || job.rule == SealRule::kBlockMinimum;
}

// Tokens or channels, whichever have scales, that are sealed at a time: their values stay in the
// nearest cache.
inline constexpr int kSealChunk = 32;

// Scales per token need no other tokens, scales per channel no other channels, unless channels are
// transformed. A page's scale needs everything.
constexpr bool SealsAtOnce(const SealJob& job) {
  return HasPageScale(job) || (job.per_channel && job.hadamard > 1);
}

// What of a side is in the working memory at a time, in tiles of 16 lanes: tokens of keys, channels
// of values.
struct SealWindow {
  int lanes, positions;
};
constexpr SealWindow SealWindowOf(const SealJob& job) {
  SealWindow window = {job.key ? 128 : job.padded_dim, job.key ? job.padded_dim : 128};
  if (SealsAtOnce(job)) return window;
  int& chunked = job.key != job.per_channel ? window.lanes : window.positions;
  if (chunked > kSealChunk) chunked = kSealChunk;
  return window;
}

// Floats from one lane tile of the working memory to the next: a line more than the tile holds, so
// that the tiles do not fall on the same lines of a cache.
constexpr size_t SealTileFloats(int positions) { return (size_t{1} + positions) * 16; }

constexpr size_t SealWindowFloats(const SealJob& job) {
  const SealWindow window = SealWindowOf(job);
  return window.lanes / 16 * SealTileFloats(window.positions);
}

// Floats of working memory: the values, the levels chosen for them, six numbers a scale, six a
// channel.
constexpr size_t SealScratchFloats(const SealJob& job) {
  return 2 * SealWindowFloats(job) + 6 * static_cast<size_t>(SealScaleCount(job)) +
         6 * static_cast<size_t>(job.padded_dim);
}

}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SEAL_H_
