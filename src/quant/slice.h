// Slices: rows of one head as they are read back once they are coded.
//
// ReadBack takes a whole head through its pages, QuantizeSlice any tile of tokens and channels by
// itself, as if it were all there is. Both seal and unseal with the page's own code, so that a tile
// of 128 tokens and all channels reads as its page does.
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_SLICE_H_
#define SHORTHAND_QUANT_SLICE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "quant/format.h"
#include "quant/head_tables.h"
#include "shorthand/recipe.h"
#include "shorthand/status.h"

namespace shorthand {

// rows [tokens][format.dim] with tokens [first, end) coded in pages of 128 tokens from row 0, the
// others as they are. A page of which only some rows are coded has its scales from those; where it
// ends early, groups of 32 tokens are counted from its last coded row backwards.
// REQUIRES: 0 <= first, end <= tokens, coded rows finite; the rows begin at position 0.
std::vector<float> ReadBack(const SideFormat& format, const HeadTables& tables,
                            std::span<const float> rows, int64_t first, int64_t end);

// Tokens of a slice that stay exact.
struct ExactTokens {
  int64_t sinks = 0;   // at its start
  int64_t recent = 0;  // at its end
};

// 0: all there are.
struct GroupShape {
  int64_t tokens = 1;
  int64_t channels = 1;
};

struct Slice {
  std::vector<float> read;    // [tokens][channels]
  double relative_error = 0;  // sqrt(sum of (x - read)^2 / sum of x^2), exact tokens included
  // Of coded tokens: how many values share a scale, and what scale and offset take.
  int64_t group_tokens = 1;
  int64_t group_channels = 1;
  GroupShape full_group = {};  // in complete pages
  // Where groups begin, then where the last one ends. Coded tokens alone are in a group; no edges:
  // there are no scales.
  std::vector<int64_t> token_edges = {}, channel_edges = {};
  int code_bits = 0;   // of a value
  int scale_bits = 0;  // of a group
};

// x [tokens][channels], a multiple of 8 channels. A slice has no calibration and does not know its
// positions. Errors: kFailedPrecondition for sides that need a calibration or are coded before
// RoPE; kInvalidArgument for an empty slice, one of more channels than a head may have, values that
// are not finite; those of ResolveSide for `channels`.
Result<Slice> QuantizeSlice(const Side& side, SideKind kind, std::span<const float> x, int channels,
                            const ExactTokens& exact);

// As QuantizeSlice, with groups wider than any that caches have for integers, to compare with: uB
// with one scale and one offset for a page of the slice. REQUIRES: uB takes `bits`.
Result<Slice> QuantizeByPage(int bits, std::span<const float> x, int channels,
                             const ExactTokens& exact);
// Likewise, for a whole layer, layer [tokens][heads * D], of which the slice is a part.
Result<Slice> QuantizeByLayer(int bits, std::span<const float> x, int channels,
                              const ExactTokens& exact, std::span<const float> layer,
                              int64_t layer_channels);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_SLICE_H_
