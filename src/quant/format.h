// Formats: how one side (K or V) of a page is coded, resolved for a head dimension.
//
// A side of a page is a matrix of 128 tokens by D channels. Steps (page mean, Hadamard) bring it
// into the space in which it is coded; a codec then chooses for every group a scale, perhaps an
// offset, and for every value a code of `bits` bits. Whatever the codec, reading is
//     value = scale[group] * level[code] + offset[group]
// with one fused multiply-add in f32, so kernels know levels, scales and offsets and no codec.
// The registry has one row per format; codec files provide `encode`. Adding a format: files, row,
// document, golden bytes.
//
// Thread-safety: everything here is immutable after construction or a pure function.
#ifndef SHORTHAND_QUANT_FORMAT_H_
#define SHORTHAND_QUANT_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "shorthand/recipe.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

enum class SideKind : uint8_t { kKey, kValue };

// Widest channel count a page can have, after padding.
inline constexpr int kMaxHeadDim = 1024;

// How the scales of a side are stored in its meta bytes.
enum class ScaleType : uint8_t {
  kF16,    // f16
  kE8m0,   // a power of two, one byte (mxfp4)
  kUe4m3,  // unsigned e4m3, one byte (nvfp4)
  kPage,   // one f32 in the page's descriptor, no meta bytes
};

struct Codec;
struct HeadTables;

// One side of a page, resolved: everything sizes, codecs and kernels need.
struct SideFormat {
  const Codec* codec = nullptr;  // null iff `exact`
  SideKind kind = SideKind::kKey;
  bool exact = false;  // f32 f16 bf16: elements are stored as they are
  Code code = Code::kF16;
  int bits = 16;        // of a code; 32 for f32
  int dim = 0;          // D of the model
  int padded_dim = 0;   // D rounded up to a multiple of 16; the rest is zero
  bool pre = false;     // K: stored as before RoPE
  Rope rope;            // what `pre` takes back
  bool mean = false;    // K: the page mean is subtracted and stored in front of the meta
  bool smooth = false;  // K: channels are divided by a factor that the page stores
  // Head tables (head_tables.h) have what `cal` makes constant.
  bool head_mean = false;    // K: the head's mean is subtracted
  bool balance = false;      // K: channels are divided by the head's balance
  bool head_range = false;   // K: minimum and maximum of a channel are the head's
  bool head_levels = false;  // levels are the layer's
  int hadamard = 0;          // block length, 0: none. Divides dim.
  Axis axis = Axis::kNone;
  int group = 0;      // channels (kToken) or tokens (kChannel) that share a scale
  bool grid = false;  // a factor for each token (kChannel) or channel (kToken), too
  bool has_offset = false;
  // wN and hiX: lines of codes of a page, the sum of the widths of all quads of channels. 0: all
  // channels have `bits`.
  int plane_lines = 0;
  int promoted = 0;  // hiX: channels that get twice the bits
  int outliers = 0;  // outX: values of each page that are stored apart
  ScaleType scale_type = ScaleType::kF16;
  Side tunes;  // clip, norm, one, ... as written

  // Channels have widths of their own: codes lie as PackPlanes puts them.
  bool planes() const { return plane_lines > 0; }
  // hiX without `cal`: every page has its own promoted channels and names them.
  bool promotes_by_page() const { return promoted > 0 && !tunes.cal; }
  int named_channels() const { return promotes_by_page() ? promoted : 0; }
  // Codes are not in the space of the model, but for a mean.
  bool transformed() const { return balance || hadamard > 0 || planes(); }
  // Whether kernels can read it: values that are scale * level + offset, widths that are the same
  // for all pages, with one scale a channel. Other sides are read by UnsealSide alone.
  bool plain() const {
    const bool kernels_know_widths = promoted == 0 || (tunes.cal && group == kPageTokens);
    return !pre && !smooth && !grid && outliers == 0 && kernels_know_widths;
  }
  // Factors of `smooth`, as stored: one for the channels c and c + dim / 2.
  int smooth_factors() const { return smooth ? dim / 2 : 0; }
  // Factors of a grid, as stored.
  int factors() const { return !grid ? 0 : axis == Axis::kChannel ? kPageTokens : padded_dim; }
  // Where the scale of a token's channel stands in CodedSide.
  int scale_index(int token, int channel) const {
    if (axis == Axis::kToken) return channel / group * kPageTokens + token;
    return axis == Axis::kChannel ? token / group * padded_dim + channel : 0;
  }
  // Scale groups along the grouped axis: dim / group for kToken, 128 / group for kChannel, else 1.
  int groups() const;
  size_t meta_bytes() const;   // every part of MetaParts (meta.h), padded to 64
  size_t codes_bytes() const;  // 16 * padded_dim * bits, or that of the planes
};

// Resolves `side` for a head of `dim` channels.
// Errors: kInvalidArgument if it does not fit the head dim (naming the nearest group that does),
// kUnimplemented, by name, for steps, codes and tunes that this build does not have.
Result<SideFormat> ResolveSide(const Side& side, SideKind kind, int dim);

// The codes and scales of one side of one page, before they are laid out. Row t, channel c.
struct CodedSide {
  // [128][padded_dim] codes, each below 2^bits. Padding channels and skipped tokens hold the code
  // whose level is nearest zero.
  uint8_t* codes = nullptr;
  // kToken: [groups][128]; kChannel: [groups][padded_dim]; kPage: [1]. Already rounded to what
  // will be stored.
  float* scales = nullptr;
  float* offsets = nullptr;     // same shape; unused unless has_offset
  uint32_t* clipped = nullptr;  // raised by the values that saturated although the scale was given
  uint16_t* outlier_places = nullptr;  // [format.outliers] token * padded_dim + channel, ascending
  float* outlier_values = nullptr;     // [format.outliers] as stored
  const uint8_t* widths = nullptr;     // of planes: [padded_dim / 4] bits of each quad of channels
  const HeadTables* tables = nullptr;  // the head's
};

// Encodes rows [first, 128) of x [128][padded_dim]; rows before `first` (exact sinks) take no part
// in any statistic. Reductions over channels run in 16 strided lanes combined by a fixed tree
// (reduce.h), reductions over tokens in token order, so that vector code can
// produce the same bytes.
// REQUIRES: codes hold the level nearest zero, scales and offsets zero; `clipped` is not null.
using EncodeFn = void (*)(const SideFormat& format, const float* x, int first, CodedSide out);

struct Codec {
  uint16_t id;            // stable, stored in snapshots; never reused
  std::string_view name;  // "u4", "lm3", "q4_0", ...
  Code code;
  int bits;
  int fixed_group;  // block codes: 32 or 16; else 0
  bool has_offset;
  ScaleType scale_type;
  EncodeFn encode;
  const float* levels;  // [2^bits], ascending in value or in the order of the code's definition;
                        // LevelsOf (head_tables.h) knows which ones a side has
  std::string_view document;  // docs/formats/<document>.md
};

std::span<const Codec> Registry();
// Null if there is none. `bits` as in Side: 0 for codes that have only one width.
const Codec* FindCodec(Code code, int bits);
const Codec* FindCodec(std::string_view name);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_FORMAT_H_
