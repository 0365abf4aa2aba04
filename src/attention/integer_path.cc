#include "attention/integer_path.h"

#include <cmath>

namespace shorthand {
namespace {

// Added to the levels of a key table, which are unsigned in the kernels.
constexpr int kKeyTableBias = 64;
constexpr float kMaxTableLevel = 63;

bool Uniform(const float* levels, int count) {
  for (int i = 0; i < count; ++i) {
    if (levels[i] != levels[0] + static_cast<float>(i)) return false;
  }
  return levels[0] == std::floor(levels[0]);
}

bool SmallIntegers(const float* levels, int count) {
  for (int i = 0; i < count; ++i) {
    if (levels[i] != std::floor(levels[i]) || std::fabs(levels[i]) > kMaxTableLevel) return false;
  }
  return count <= 16;
}

// Blocks whose scale has the sign of their largest value.
bool HasSignedScale(Code code) { return code == Code::kQ4_0 || code == Code::kQ5_0; }

}  // namespace

IntegerPath::IntegerPath(const SideFormat& format) {
  if (format.exact || format.axis == Axis::kPage || format.scale_type != ScaleType::kF16) return;
  const bool is_key = format.kind == SideKind::kKey;
  const float* levels = format.codec->levels;
  const int count = 1 << format.bits;
  const bool uniform = Uniform(levels, count);
  if (!uniform && !SmallIntegers(levels, count)) return;

  usable_ = true;
  signed_scales_ = !is_key && HasSignedScale(format.code);
  bits_ = format.bits;
  side_.unit = 1;
  side_.dim = format.padded_dim;
  side_.bits = format.bits;
  side_.per_channel = format.axis == Axis::kChannel;
  side_.has_offset = format.has_offset;
  const bool whole_head = !side_.per_channel && format.groups() == 1;
  side_.group = whole_head ? format.padded_dim : format.group;
  meta_count_ = format.groups() * (side_.per_channel ? format.padded_dim : kPageTokens) *
                (format.has_offset ? 2 : 1);
  meta_offset_ = format.mean ? format.padded_dim * sizeof(uint16_t) : 0;
  if (uniform) {
    // Centred on 2^(bits-1): level = (code - centre) + (centre + levels[0]).
    const int centre = count / 2;
    side_.shift = static_cast<float>(centre) + levels[0];
    // Values of 8 bits are centred by turning their top bit.
    side_.base = !is_key && bits_ == 8 ? 0 : centre;
    return;
  }
  has_table_ = true;
  side_.base = is_key ? kKeyTableBias : 0;
  for (int i = 0; i < count; ++i) {
    table_[i] = static_cast<uint8_t>(static_cast<int>(levels[i]) + side_.base);
  }
}

// The largest of 32, 64 and 128 magnitudes is on average 2.35, 2.60 and 2.83 standard deviations,
// and it lies at 2^(bits-1).
float IntegerPath::code_rms() const {
  const float share = side_.group <= 32 ? 0.213f : side_.group <= 64 ? 0.193f : 0.177f;
  return share * static_cast<float>(1 << bits_);
}

CodedSide8 IntegerPath::At(const uint8_t* lines, const float* meta, uint8_t* flips) const {
  CodedSide8 side = side_;
  side.lines = lines;
  side.meta = meta;
  side.table = has_table_ ? table_.data() : nullptr;
  if (signed_scales_) {
    const auto flip = static_cast<uint8_t>((1 << bits_) - 1);
    const int count = meta_count_;
    for (int i = 0; i < count; ++i) flips[i] = meta[i] < 0 ? flip : uint8_t{0};
    side.flips = flips;
  }
  return side;
}

}  // namespace shorthand
