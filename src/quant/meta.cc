#include "quant/meta.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace shorthand {
namespace {

constexpr int kPairTokens = 32;  // a pair of K's token tiles

int WidthOf(const SideFormat& format) {
  if (format.axis == Axis::kPage) return 1;
  return format.axis == Axis::kChannel ? format.padded_dim : kPageTokens;
}

// Calls run(part, index, count) for runs of scales (part 0) and offsets (part 1) in the order in
// which they are stored; `index` counts in the shape of CodedSide.
template <typename Run>
void ForEachRun(const SideFormat& format, Run run) {
  if (format.scale_type == ScaleType::kPage) return;
  const int width = WidthOf(format);
  const bool paired = format.kind == SideKind::kKey && format.axis == Axis::kToken;
  const int count = paired ? kPairTokens : width;
  for (int start = 0; start < width; start += count) {
    for (int g = 0; g < format.groups(); ++g) {
      for (int part = 0; part < (format.has_offset ? 2 : 1); ++part) {
        run(part, g * width + start, count);
      }
    }
  }
}

uint8_t* WriteWords(const uint16_t* words, int count, uint8_t* to) {
  if (count > 0) std::memcpy(to, words, 2 * count);
  return to + 2 * count;
}

const uint8_t* ReadWords(const uint8_t* from, int count, uint16_t* words) {
  if (words != nullptr) std::memcpy(words, from, 2 * count);
  return from + 2 * count;
}

uint8_t* WriteF16(const float* values, int count, uint8_t* to) {
  for (int i = 0; i < count; ++i) {
    const uint16_t h = F32ToF16(values[i]);
    std::memcpy(to + 2 * i, &h, 2);
  }
  return to + 2 * count;
}

const uint8_t* ReadF16(const uint8_t* from, int count, float* values) {
  for (int i = 0; values != nullptr && i < count; ++i) {
    uint16_t h;
    std::memcpy(&h, from + 2 * i, 2);
    values[i] = F16ToF32(h);
  }
  return from + 2 * count;
}

// One-byte scales count doubled e2m1 levels: the float is half of what the byte says.
uint8_t ScaleByte(ScaleType type, float scale) {
  if (type == ScaleType::kUe4m3) return F32ToE4m3(2 * scale);
  return scale == 0 ? 0 : static_cast<uint8_t>(std::ilogb(scale) + 128);
}

float ScaleOfByte(ScaleType type, uint8_t byte) {
  if (type == ScaleType::kUe4m3) return E4m3ToF32(byte & 0x7f) / 2;
  return std::ldexp(1.0f, byte - 128);
}

}  // namespace

const float* ScalesOfBytes(ScaleType type) {
  const auto table = [](ScaleType of) {
    std::array<float, 256> scales;
    for (int byte = 0; byte < 256; ++byte) {
      scales[byte] = ScaleOfByte(of, static_cast<uint8_t>(byte));
    }
    return scales;
  };
  static const std::array<float, 256> e8m0 = table(ScaleType::kE8m0);
  static const std::array<float, 256> ue4m3 = table(ScaleType::kUe4m3);
  return type == ScaleType::kE8m0 ? e8m0.data() : ue4m3.data();
}

int ScaleCount(const SideFormat& format) { return format.groups() * WidthOf(format); }

void WriteMeta(const SideFormat& format, const MetaParts& parts, uint8_t* meta,
               PageDescriptor* descriptor) {
  uint8_t* to = meta;
  if (format.mean) to = WriteF16(parts.mean, format.padded_dim, to);
  to = WriteF16(parts.smooth, format.smooth_factors(), to);
  to = WriteWords(parts.promoted, format.named_channels(), to);
  to = WriteF16(parts.factors, format.factors(), to);
  ForEachRun(format, [&](int part, int index, int count) {
    const float* from = (part == 0 ? parts.scales : parts.offsets) + index;
    if (format.scale_type == ScaleType::kF16) {
      to = WriteF16(from, count, to);
    } else {
      for (int i = 0; i < count; ++i) *to++ = ScaleByte(format.scale_type, from[i]);
    }
  });
  to = WriteWords(parts.outlier_places, format.outliers, to);
  to = WriteF16(parts.outlier_values, format.outliers, to);
  std::fill(to, meta + format.meta_bytes(), uint8_t{0});
  const float page_scale = format.scale_type == ScaleType::kPage ? parts.scales[0] : 0.0f;
  (format.kind == SideKind::kKey ? descriptor->k_page_scale : descriptor->v_page_scale) =
      page_scale;
}

void ReadMeta(const SideFormat& format, const uint8_t* meta, const PageDescriptor& descriptor,
              const MetaParts& parts) {
  const uint8_t* from = meta;
  if (format.mean) from = ReadF16(from, format.padded_dim, parts.mean);
  from = ReadF16(from, format.smooth_factors(), parts.smooth);
  from = ReadWords(from, format.named_channels(), parts.promoted);
  from = ReadF16(from, format.factors(), parts.factors);
  if (format.scale_type == ScaleType::kPage && parts.scales != nullptr) {
    parts.scales[0] =
        format.kind == SideKind::kKey ? descriptor.k_page_scale : descriptor.v_page_scale;
  }
  ForEachRun(format, [&](int which, int index, int count) {
    float* to = which == 0 ? parts.scales : parts.offsets;
    if (to != nullptr) to += index;
    if (format.scale_type == ScaleType::kF16) {
      from = ReadF16(from, count, to);
      return;
    }
    const float* scale_of = ScalesOfBytes(format.scale_type);
    for (int i = 0; to != nullptr && i < count; ++i) to[i] = scale_of[from[i]];
    from += count;
  });
  from = ReadWords(from, format.outliers, parts.outlier_places);
  ReadF16(from, format.outliers, parts.outlier_values);
}

void ReadMeta(const SideFormat& format, const SidePart& part, const uint8_t* page,
              const PageDescriptor& descriptor, float* scales, float* offsets, float* mean) {
  ReadMeta(format, page + part.meta_offset, descriptor,
           {.mean = mean, .scales = scales, .offsets = offsets});
}

}  // namespace shorthand
