#include "quant/page.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/half.h"
#include "quant/grid.h"
#include "quant/hadamard.h"
#include "quant/levels.h"
#include "quant/meta.h"
#include "quant/promote.h"
#include "quant/rotation.h"

namespace shorthand {
namespace {

size_t RoundUpToLine(size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

SidePart PartAt(const SideFormat& format, size_t offset) {
  SidePart part;
  part.meta_offset = offset;
  part.meta_bytes = format.meta_bytes();
  part.codes_offset = offset + part.meta_bytes;
  part.codes_bytes = format.codes_bytes();
  return part;
}

size_t EndOf(const SidePart& part) { return RoundUpToLine(part.codes_offset + part.codes_bytes); }

// The working memory of a seal, cut out of one buffer; every piece is a multiple of 64 bytes.
struct Workspace {
  float* x;  // [128][padded_dim]
  MetaParts meta;
  uint8_t* codes;  // [128][padded_dim]
};

size_t FloatsBytes(int count) { return RoundUpToLine(count * sizeof(float)); }

Workspace CutScratch(const SideFormat& format, void* scratch) {
  auto* at = static_cast<uint8_t*>(scratch);
  const auto take = [&at](int count) {
    auto* piece = reinterpret_cast<float*>(at);
    at += FloatsBytes(count);
    return piece;
  };
  Workspace work;
  work.x = take(kPageTokens * format.padded_dim);
  work.meta.mean = take(format.padded_dim);
  work.meta.smooth = take(format.smooth_factors());
  work.meta.promoted = reinterpret_cast<uint16_t*>(take(format.named_channels()));
  work.meta.factors = take(format.factors());
  work.meta.scales = take(ScaleCount(format));
  work.meta.offsets = take(ScaleCount(format));
  work.meta.outlier_places = reinterpret_cast<uint16_t*>(take(format.outliers));
  work.meta.outlier_values = take(format.outliers);
  work.codes = at;
  return work;
}

// Means of the columns of x [128][stride] over rows first..127, row by row, as stored.
void PageMean(const float* x, int stride, int dim, int first, float* mean) {
  if (first == kPageTokens) return;
  for (int t = first; t < kPageTokens; ++t) {
    for (int c = 0; c < dim; ++c) mean[c] += x[t * stride + c];
  }
  const auto count = static_cast<float>(kPageTokens - first);
  for (int c = 0; c < dim; ++c) mean[c] = RoundToFiniteF16(mean[c] / count);
}

// The factors of `smooth` for x [128][padded_dim] less the mean, over rows first..127, as stored.
void SmoothFactors(const SideFormat& format, const float* x, int first, const float* mean,
                   float* factors) {
  const int half = format.smooth_factors();
  std::fill_n(factors, half, 0.0f);
  for (int t = first; t < kPageTokens; ++t) {
    const float* row = x + t * format.padded_dim;
    for (int c = 0; c < format.dim; ++c) {
      factors[c % half] = std::max(factors[c % half], std::fabs(row[c] - mean[c]));
    }
  }
  for (int c = 0; c < half; ++c) {
    factors[c] = factors[c] == 0 ? 1 : RoundToF16(std::sqrt(factors[c]));
  }
}

// Model space -> the space in which codes are chosen, but for the order.
void ApplySteps(const SideFormat& format, const HeadTables& tables, const float* x, int first,
                int64_t first_position, const Workspace& work) {
  const int half = format.dim / 2;
  float* mean = work.meta.mean;  // zeros so far
  float* smooth = work.meta.smooth;
  for (int t = first; t < kPageTokens; ++t) {
    std::copy_n(x + t * format.dim, format.dim, work.x + t * format.padded_dim);
  }
  if (format.pre) {
    const Rotation rotation(format.rope, first_position);
    for (int t = first; t < kPageTokens; ++t) rotation.Undo(t, work.x + t * format.padded_dim);
  }
  if (format.head_mean) std::copy_n(tables.mean.begin(), format.dim, mean);
  if (format.mean) PageMean(work.x, format.padded_dim, format.dim, first, mean);
  if (format.smooth) SmoothFactors(format, work.x, first, mean, smooth);
  for (int t = first; t < kPageTokens; ++t) {
    float* row = work.x + t * format.padded_dim;
    for (int c = 0; c < format.dim; ++c) row[c] -= mean[c];
    if (format.smooth) {
      for (int c = 0; c < format.dim; ++c) row[c] /= smooth[c % half];
    }
    if (format.balance) {
      for (int c = 0; c < format.dim; ++c) row[c] *= tables.inverse_balance[c];
    }
    if (format.hadamard != kNoHadamard) Hadamard(row, format.dim, format.hadamard);
  }
  if (format.grid) BalanceGrid(format, first, work.x, work.meta.factors);
}

// Channels to their places, in rows [first, 128) of x.
void Reorder(const SideFormat& format, const std::vector<uint16_t>& order, int first, float* x) {
  if (order.empty()) return;
  std::vector<float> row(format.padded_dim);
  for (int t = first; t < kPageTokens; ++t) {
    float* places = x + t * format.padded_dim;
    std::copy_n(places, format.padded_dim, row.begin());
    for (int place = 0; place < format.padded_dim; ++place) places[place] = row[order[place]];
  }
}

// The order and widths of a page's channels: the head's, or where the page promotes channels its
// own, which `of_page` then holds.
const HeadTables& PlanesOf(const SideFormat& format, const HeadTables& tables,
                           const uint16_t* promoted, HeadTables* of_page) {
  if (!format.promotes_by_page()) return tables;
  *of_page = PromotedPlanes(format, promoted);
  return *of_page;
}

void Pack(const SideFormat& format, const HeadTables& planes, const uint8_t* codes,
          uint8_t* lines) {
  if (format.planes()) {
    std::fill_n(lines, format.codes_bytes(), uint8_t{0});  // the last line may stay empty
    return PackPlanes(format.padded_dim, planes.widths.data(), codes, lines);
  }
  PackCodes(format.kind, format.padded_dim, format.bits, codes, lines);
}

void Unpack(const SideFormat& format, const HeadTables& planes, const uint8_t* lines,
            uint8_t* codes) {
  if (format.planes()) return UnpackPlanes(format.padded_dim, planes.widths.data(), lines, codes);
  UnpackCodes(format.kind, format.padded_dim, format.bits, lines, codes);
}

}  // namespace

PageLayout LayoutOf(const SideFormat& k, const SideFormat& v) {
  PageLayout layout;
  layout.k = PartAt(k, 0);
  layout.v = PartAt(v, EndOf(layout.k));
  layout.bytes = EndOf(layout.v);
  return layout;
}

SideFormat ExactFormatOf(const SideFormat& side) {
  SideFormat format;
  format.kind = side.kind;
  format.exact = true;
  const bool kept = side.code == Code::kF32 || side.code == Code::kBf16;
  format.code = kept ? side.code : Code::kF16;
  format.bits = format.code == Code::kF32 ? 32 : 16;
  format.dim = side.dim;
  format.padded_dim = side.padded_dim;
  format.tunes.code = format.code;
  return format;
}

size_t SealScratchBytes(const SideFormat& format) {
  const int slots = kPageTokens * format.padded_dim;
  return FloatsBytes(slots) + FloatsBytes(format.padded_dim) +
         FloatsBytes(format.smooth_factors()) + FloatsBytes(format.named_channels()) +
         FloatsBytes(format.factors()) + 2 * FloatsBytes(ScaleCount(format)) +
         2 * FloatsBytes(format.outliers) + slots;
}

void SealSide(const SideFormat& format, const HeadTables& tables, const float* x, int first,
              const SidePart& part, uint8_t* page, PageDescriptor* descriptor, void* scratch) {
  const Workspace work = CutScratch(format, scratch);
  const MetaParts& meta = work.meta;
  std::fill(work.x, reinterpret_cast<float*>(work.codes), 0.0f);
  std::fill_n(work.codes, kPageTokens * format.padded_dim,
              ZeroCode(LevelsOf(format, tables), format.bits));
  ApplySteps(format, tables, x, first, descriptor->first_position, work);
  if (format.promotes_by_page()) ChoosePromoted(format, work.x, first, meta.promoted);
  HeadTables of_page;
  const HeadTables& planes = PlanesOf(format, tables, meta.promoted, &of_page);
  Reorder(format, planes.order, first, work.x);
  format.codec->encode(format, work.x, first,
                       {work.codes, meta.scales, meta.offsets, &descriptor->clipped_values,
                        meta.outlier_places, meta.outlier_values, planes.widths.data(), &tables});
  WriteMeta(format, meta, page + part.meta_offset, descriptor);
  Pack(format, planes, work.codes, page + part.codes_offset);
  descriptor->first_token = static_cast<uint32_t>(first);
}

void UnsealSide(const SideFormat& format, const HeadTables& tables, const SidePart& part,
                const uint8_t* page, const PageDescriptor& descriptor, float* x) {
  const int stride = format.padded_dim;
  std::vector<uint8_t> codes(kPageTokens * stride);
  std::vector<float> scales(ScaleCount(format)), offsets(ScaleCount(format)), mean(stride);
  std::vector<float> smooth(format.smooth_factors()), factors(format.factors());
  std::vector<uint16_t> promoted(format.named_channels()), outlier_places(format.outliers);
  std::vector<float> outlier_values(format.outliers);
  ReadMeta(format, page + part.meta_offset, descriptor,
           {mean.data(), smooth.data(), promoted.data(), factors.data(), scales.data(),
            offsets.data(), outlier_places.data(), outlier_values.data()});
  if (format.head_mean) mean = tables.mean;
  HeadTables of_page;
  const HeadTables& planes = PlanesOf(format, tables, promoted.data(), &of_page);
  const float* levels = LevelsOf(format, tables);
  Unpack(format, planes, page + part.codes_offset, codes.data());
  int outlier = 0;
  for (int t = 0; t < kPageTokens; ++t) {
    float* row = x + t * format.dim;
    for (int c = 0; c < format.dim; ++c) {
      const int at = format.scale_index(t, c);
      const int channel = planes.order.empty() ? c : planes.order[c];
      row[channel] = std::fma(scales[at], levels[codes[t * stride + c]], offsets[at]);
      if (format.grid) row[channel] *= factors[format.axis == Axis::kChannel ? t : c];
    }
    for (; outlier < format.outliers && outlier_places[outlier] / stride == t; ++outlier) {
      row[outlier_places[outlier] % stride] = outlier_values[outlier];
    }
    if (format.hadamard != kNoHadamard) Hadamard(row, format.dim, format.hadamard);
    if (format.balance) {
      for (int c = 0; c < format.dim; ++c) row[c] *= tables.balance[c];
    }
    if (format.smooth) {
      for (int c = 0; c < format.dim; ++c) row[c] *= smooth[c % (format.dim / 2)];
    }
    for (int c = 0; c < format.dim; ++c) row[c] += mean[c];
  }
  if (format.pre) {
    const Rotation rotation(format.rope, descriptor.first_position);
    for (int t = 0; t < kPageTokens; ++t) rotation.Apply(t, x + t * format.dim);
  }
}

}  // namespace shorthand
