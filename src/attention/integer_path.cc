#include "attention/integer_path.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "quant/meta.h"
#include "quant/water_fill.h"

namespace shorthand {
namespace {

// Levels of tables up to which products may be summed in pairs, and those that fit a byte.
constexpr float kMaxNarrowLevel = 63;
constexpr float kMaxWideLevel = 127;

bool Uniform(const float* levels, int count) {
  for (int i = 0; i < count; ++i) {
    if (levels[i] != levels[0] + static_cast<float>(i)) return false;
  }
  return levels[0] == std::floor(levels[0]);
}

// The largest magnitude of a table of integers; infinity if one is none.
float LargestInteger(const float* levels, int count) {
  float largest = 0;
  for (int i = 0; i < count; ++i) {
    if (levels[i] != std::floor(levels[i])) return std::numeric_limits<float>::infinity();
    largest = std::max(largest, std::fabs(levels[i]));
  }
  return largest;
}

// Blocks whose scale has the sign of their largest value.
bool HasSignedScale(Code code) {
  return code == Code::kQ4_0 || code == Code::kQ5_0 || code == Code::kIq4Nl;
}

}  // namespace

// Ranges of 2 and 3 bits are narrowed to steps of about 1 and .59 standard deviations; codes lie
// half a step beside their centre.
KeyPlanes PlanesOf(const HeadTables& tables) {
  static_assert(std::size(kQuadWidths) == kPlaneWidths);
  constexpr float kCodeRms[kPlaneWidths] = {45.3f, 11.3f, 5.7f, 2.9f, 1.75f, 1.1f};
  KeyPlanes planes = {};
  for (int i = 0; i < kPlaneWidths; ++i) {
    const int bits = kQuadWidths[kPlaneWidths - 1 - i];
    for (const uint8_t width : tables.widths) planes.quads[i] += width == bits;
    for (int n = 0; n <= i; ++n) {
      planes.rest_squares[n] += static_cast<float>(4 * planes.quads[i]) * kCodeRms[i] * kCodeRms[i];
    }
  }
  planes.centres = tables.centres.data();
  planes.centre_bytes = tables.centre_bytes.data();
  return planes;
}

IntegerPath::IntegerPath(const SideFormat& format, const HeadTables& tables) {
  if (format.exact || !format.plain() || format.axis == Axis::kPage) return;
  const bool is_key = format.kind == SideKind::kKey;
  const float* levels = LevelsOf(format, tables);
  const int count = 1 << format.bits;
  const bool uniform = Uniform(levels, count);
  const float largest = LargestInteger(levels, count);
  if (!uniform && (count > 16 || largest > kMaxWideLevel)) return;
  side_.per_channel = format.axis == Axis::kChannel;
  const bool whole_head = !side_.per_channel && format.groups() == 1;
  // A pair of tiles of values shares its weights.
  if (!is_key && !whole_head && format.group % 32 != 0) return;
  if (!side_.per_channel && format.groups() > kMaxChannelGroups) return;

  usable_ = true;
  signed_scales_ = !is_key && HasSignedScale(format.code);
  if (format.scale_type != ScaleType::kF16) byte_scales_ = ScalesOfBytes(format.scale_type);
  bits_ = format.bits;
  side_.unit = 1;
  side_.dim = format.padded_dim;
  side_.bits = format.bits;
  side_.has_offset = format.has_offset;
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
  side_.wide = largest > kMaxNarrowLevel;
  // Keys are unsigned in the kernels.
  side_.base = !is_key ? 0 : side_.wide ? 128 : 64;
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

void IntegerPath::Open(const KernelTable& kernels, const KeyPlanes* planes, const uint8_t* meta,
                       const uint8_t* lines, float* widened, uint8_t* flips,
                       CodedSide8* side) const {
  const int count = meta_count_;
  meta += meta_offset_;
  if (byte_scales_ == nullptr) {
    kernels.widen(meta, count, widened);
  } else {
    for (int i = 0; i < count; ++i) widened[i] = byte_scales_[meta[i]];
  }
  *side = side_;
  side->lines = lines;
  side->meta = widened;
  side->planes = planes;
  side->table = has_table_ ? table_.data() : nullptr;
  if (!signed_scales_) return;
  const auto flip = static_cast<uint8_t>(side_.wide ? 255 : (1 << bits_) - 1);
  for (int i = 0; i < count; ++i) flips[i] = widened[i] < 0 ? flip : uint8_t{0};
  side->flips = flips;
}

}  // namespace shorthand
