// A recipe: how the keys and values of every layer are stored. A method is a point in a small
// space (steps, code, group, tunes, exact sinks, exact tail), not a fork of the engine.
//
// Text form, presets and meaning: docs/recipes.md. Parse(ToString()) is the identity, and
// ToString() is canonical. Fields of a parsed Recipe are valid together; whether it fits a head
// dimension is asked separately, because a recipe is written without a model.
// Thread-safety: values.
#ifndef SHORTHAND_RECIPE_H_
#define SHORTHAND_RECIPE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shorthand/status.h"

namespace shorthand {

// Tokens in a page: the unit of quantization, layout, sharing and scheduling.
inline constexpr int kPageTokens = 128;
inline constexpr int kMaxSinkTokens = kPageTokens;

// A decimal of the grammar, exact: millionths.
struct Decimal {
  int64_t millionths = 0;
  double value() const { return static_cast<double>(millionths) / 1e6; }
  friend bool operator==(const Decimal&, const Decimal&) = default;
};

enum class Code : uint8_t {
  // exact
  kF32,
  kF16,
  kBf16,
  // 8-bit floats
  kE4m3,
  kE5m2,
  // the values of ggml's and OCP's blocks; group and rule fixed
  kQ8_0,
  kQ5_1,
  kQ5_0,
  kQ4_1,
  kQ4_0,
  kIq4Nl,
  kMxfp4,
  kNvfp4,
  // iB absmax symmetric, uB min/max with offset
  kInt,
  kUint,
  // wN water-filled channel widths
  kWater,
  // tables: normal float, Lloyd-Max, range-normalised, learned
  kNf,
  kLm,
  kRn,
  kNuq,
};

enum class Axis : uint8_t { kNone, kToken, kChannel, kGrid, kPage };

// `had` without a number is the largest power of two that divides the head dim.
inline constexpr int kNoHadamard = 0;
inline constexpr int kHadamardWhole = -1;

// How one side (K or V) of a page is stored.
struct Side {
  // Steps before coding, applied in this order.
  bool pre = false;     // K: stored before RoPE
  bool mu = false;      // K: per-page mean subtracted, q.mu added back to the scores
  bool smooth = false;  // K: lambda per channel
  bool bal = false;     // K: channel balance
  bool rot = false;     // calibrated rotation (reserved: refused)
  int hadamard = kNoHadamard;

  Code code = Code::kF16;
  int bits = 0;   // of iB uB nfB lmB rnB nuqB; 0 for every other code
  Decimal width;  // of wN

  Axis axis = Axis::kNone;  // kNone for exact and block codes
  int group = 0;            // tokN, chN; 0 is the whole head or page

  // Tunes; zero or false is "not given". `ls`, least squares, is what lm does without norm and ub:
  // its text is accepted, and the canonical text omits it.
  Decimal clip;
  bool mse = false;
  bool norm = false;
  bool ub = false;
  bool cal = false;
  bool one = false;
  Decimal out;
  Decimal hi;

  friend bool operator==(const Side&, const Side&) = default;
};

// True for f32, f16, bf16: codes that lose nothing beyond their own rounding and are never sealed
// on their own.
bool IsExact(Code code);
// True for ggml's and OCP's blocks.
bool IsBlock(Code code);

struct SidePair {
  Side k;
  Side v;
  friend bool operator==(const SidePair&, const SidePair&) = default;
};

// Layers an override applies to: @swa, @full or a list of spans of layer numbers; negative
// numbers count from the end (-1 is the last layer).
struct LayerSpan {
  int first = 0;
  int last = 0;
  friend bool operator==(const LayerSpan&, const LayerSpan&) = default;
};
enum class LayerSet : uint8_t { kSpans, kWindowed, kFull };
struct Override {
  LayerSet set = LayerSet::kSpans;
  std::vector<LayerSpan> spans;  // only for kSpans
  SidePair kv;
  friend bool operator==(const Override&, const Override&) = default;
};

struct Recipe {
  SidePair kv;
  int sink_tokens = 0;    // first S tokens exact, 0..128
  int recent_tokens = 0;  // a multiple of 128: whole pages before the one being written, exact
  std::string cal;        // hash that names a calibration; never a path
  std::vector<Override> overrides;  // a later one wins

  // Errors: kInvalidArgument with the byte where reading stopped and what would be accepted there.
  static Result<Recipe> Parse(std::string_view text);

  // The canonical text.
  std::string ToString() const;

  // What layer `layer` of `layers` uses. `windowed`: the layer has a sliding window.
  // REQUIRES: 0 <= layer < layers.
  const SidePair& ForLayer(int layer, int layers, bool windowed) const;

  int recent_pages() const { return recent_tokens / kPageTokens; }

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

struct Preset {
  std::string_view name;
  std::string_view canonical;
  std::string_view source;  // one line: where the method comes from
};
// All presets, in the order they should be listed.
const std::vector<Preset>& Presets();

// The recipe in one or two plain sentences, for people.
std::string Describe(const Recipe& recipe);

}  // namespace shorthand

#endif  // SHORTHAND_RECIPE_H_
