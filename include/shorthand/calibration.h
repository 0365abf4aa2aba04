// Calibration: what a text showed about the keys, values and queries of a model, layer by layer and
// head by head. Formats that are static but fitted to a model are made from it: channel balance
// (`bal`), channel widths (`wN`), and what the tune `cal` asks for; so is the choice of a format
// for each layer (`auto`).
//
// Its text form is JSON, versioned and complete, and names itself: two calibrations with the same
// numbers have the same hash. docs/formats/calibration.md has the fields.
// Thread-safety: values.
#ifndef SHORTHAND_CALIBRATION_H_
#define SHORTHAND_CALIBRATION_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

// Where the keys of a head lie, channel by channel. Every vector [k_dim].
struct KeyRange {
  std::vector<float> mean;
  std::vector<float> min, max;
  std::vector<float> low, high;  // percentiles 0.5 and 99.5
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

// Of one KV head, every vector [k_dim]. Keys and queries are those that attention multiplies, RoPE
// applied, unless it says otherwise; queries are those of all heads that share the KV head.
struct HeadStatistics {
  std::vector<float> k_spread;  // standard deviation within a page of 128 tokens, over the pages
  std::vector<float> q_rms;     // root mean square
  KeyRange keys;
  KeyRange keys_before_rope;
  float v_max = 0;  // largest magnitude of values
  friend bool operator==(const HeadStatistics&, const HeadStatistics&) = default;
};

inline constexpr std::array<double, 4> kKeyNoiseBits = {2, 2.5, 3, 4};
inline constexpr std::array<double, 3> kValueNoiseBits = {2, 3, 4};

// Levels learned for 2, 3 and 4 bits: [bits - 2][2^bits], ascending, in half-ranges from the
// middle.
using LearnedLevels = std::array<std::vector<float>, 3>;

struct LayerStatistics {
  RopePairs rope_pairs = RopePairs::kNone;
  int rope_dims = 0;  // channels that are rotated
  LearnedLevels k_levels, v_levels;
  std::vector<HeadStatistics> heads;  // [kv_heads]; empty where the layer keeps no keys
  // What keys as `wN` and values as `had:lmN/tok:ub` add to the output of the layer's attention,
  // over its size, squared; for N of kKeyNoiseBits and kValueNoiseBits. Empty if the text had fewer
  // than two pages.
  std::vector<float> k_noise, v_noise;
  friend bool operator==(const LayerStatistics&, const LayerStatistics&) = default;
};

struct Calibration {
  std::string model;   // its name
  std::string source;  // of the text
  int64_t tokens = 0;  // of the text
  std::vector<LayerStatistics> layers;

  // The text form. Numbers are rounded to five digits, which Parse gives back.
  std::string ToText() const;
  // Errors: kDataLoss for text that is no calibration, cut off, or holds numbers that are not
  // finite, negative or out of order where they cannot be; kUnimplemented for one of another
  // version.
  static Result<Calibration> Parse(std::string_view text);

  // 16 hexadecimal digits over ToText().
  std::string Hash() const;

  // Errors: kInvalidArgument if the calibration was made for another shape, saying where.
  Status CheckFits(const Shape& shape) const;

  friend bool operator==(const Calibration&, const Calibration&) = default;
};

}  // namespace shorthand

#endif  // SHORTHAND_CALIBRATION_H_
