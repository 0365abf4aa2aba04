// nfB, lmB, rnB, nuqB: tables of up to 16 levels. docs/formats/table.md
#include <array>
#include <cmath>

#include "base/half.h"
#include "quant/clip_search.h"
#include "quant/codecs.h"
#include "quant/groups.h"
#include "quant/head_tables.h"
#include "quant/levels.h"

namespace shorthand {
namespace {

// A level table with the midpoints between neighbours, at which codes change.
class Quantizer {
 public:
  Quantizer(LevelTable table, int bits) : table_(table), thresholds_((1 << bits) - 1) {
    for (int i = 0; i < thresholds_; ++i) {
      midpoints_[i] = (table_.levels[i] + table_.levels[i + 1]) / 2;
    }
  }

  float step() const { return table_.step; }
  float level(uint8_t code) const { return table_.levels[code]; }

  // Codes of (x - offset) / unit; the lower one at a midpoint. With unit 0 every value is taken
  // for zero.
  void Encode(const Group& group, float unit, float offset) const {
    for (int i = 0; i < group.n; ++i) {
      const float y = unit == 0 ? 0.0f : (group.x[i] - offset) / unit;
      int code = 0;
      for (int k = 0; k < thresholds_; ++k) code += y > midpoints_[k];
      group.codes[i] = static_cast<uint8_t>(code);
    }
  }

 private:
  LevelTable table_;
  int thresholds_;
  std::array<float, 15> midpoints_{};
};

// The scale of a group whose codes are chosen. Values that are not zero have the sign of their
// levels, so that the product with them is positive.
float FittedScale(const SideFormat& format, const Quantizer& quantizer, const Group& group,
                  float sum_of_squares) {
  std::array<float, kMaxHeadDim> levels;
  for (int i = 0; i < group.n; ++i) levels[i] = quantizer.level(group.codes[i]);
  const float level_squares = Dot(group.order, levels.data(), levels.data(), group.n);
  if (format.tunes.norm) return std::sqrt(sum_of_squares / level_squares);
  const float product = Dot(group.order, group.x, levels.data(), group.n);
  return format.tunes.ub ? sum_of_squares / product : product / level_squares;
}

}  // namespace

void EncodeNormalFloat(const SideFormat& format, const float* x, int first, CodedSide out) {
  const Quantizer quantizer(LevelTableOf(format.code, format.bits), format.bits);
  ForEachGroup(format, x, first, out, [&](const Group& group) {
    const float scale = RoundToFiniteF16(AbsMax(group.x, group.n) * quantizer.step());
    quantizer.Encode(group, scale, 0);
    return GroupScale{scale};
  });
}

void EncodeLloydMax(const SideFormat& format, const float* x, int first, CodedSide out) {
  const Quantizer quantizer(LevelTableOf(format.code, format.bits), format.bits);
  ForEachGroup(format, x, first, out, [&](const Group& group) {
    const float sum_of_squares = Dot(group.order, group.x, group.x, group.n);
    const float sigma = std::sqrt(sum_of_squares / static_cast<float>(group.n));
    quantizer.Encode(group, sigma * quantizer.step(), 0);
    if (sigma == 0) return GroupScale{};
    return GroupScale{RoundToFiniteF16(FittedScale(format, quantizer, group, sum_of_squares))};
  });
}

void EncodeRangeNormalised(const SideFormat& format, const float* x, int first, CodedSide out) {
  const HeadTables& tables = *out.tables;
  const LevelTable table = format.head_levels ? LevelTable{tables.levels.data(), tables.step}
                                              : LevelTableOf(format.code, format.bits);
  const Quantizer quantizer(table, format.bits);
  const float clip = ClipOf(format);
  ForEachGroup(format, x, first, out, [&](const Group& group) {
    const auto encode = [&](ValueRange range) {
      if (range.low > range.high) range = {0, 0};  // all values are outliers
      const float scale = RoundToFiniteF16((range.high - range.low) / 2 * quantizer.step());
      const float offset = RoundToFiniteF16((range.high + range.low) / 2);
      quantizer.Encode(group, scale, offset);
      return GroupScale{scale, offset};
    };
    if (format.head_range) return encode({tables.low[group.index], tables.high[group.index]});
    if (!format.tunes.mse) return encode(ClippedRange(group, clip));
    return EncodeLeastError(group, format.bits, format.codec->levels, ClippedRange(group, 1),
                            encode);
  });
}

}  // namespace shorthand
