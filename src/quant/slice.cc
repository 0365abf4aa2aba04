#include "quant/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <memory>

#include "quant/page.h"

namespace shorthand {
namespace {

using Bytes = std::unique_ptr<uint8_t, void (*)(void*)>;

Bytes Aligned(size_t bytes) {
  return {static_cast<uint8_t*>(
              std::aligned_alloc(kLineBytes, (bytes + kLineBytes - 1) / kLineBytes * kLineBytes)),
          std::free};
}

// One page of one side, used again for the next.
class PageOfOneSide {
 public:
  PageOfOneSide(const SideFormat& format, const HeadTables& tables)
      : format_(format),
        tables_(tables),
        part_{.meta_offset = 0,
              .meta_bytes = format.meta_bytes(),
              .codes_offset = format.meta_bytes(),
              .codes_bytes = format.codes_bytes()},
        page_(Aligned(part_.meta_bytes + part_.codes_bytes)),
        scratch_(Aligned(SealScratchBytes(format))),
        rows_(static_cast<size_t>(kPageTokens) * format.dim) {}

  // rows [count][dim], at most a page of them, the first at `position`.
  void PassThrough(float* rows, int count, int64_t position) {
    const int first = kPageTokens - count;
    float* at = rows_.data() + static_cast<size_t>(first) * format_.dim;
    const size_t values = static_cast<size_t>(count) * format_.dim;
    std::copy(rows, rows + values, at);
    PageDescriptor descriptor;
    descriptor.first_position = position - first;
    SealSide(format_, tables_, rows_.data(), first, part_, page_.get(), &descriptor,
             scratch_.get());
    UnsealSide(format_, tables_, part_, page_.get(), descriptor, rows_.data());
    std::copy(at, at + values, rows);
  }

 private:
  const SideFormat& format_;
  const HeadTables& tables_;
  const SidePart part_;
  const Bytes page_, scratch_;
  std::vector<float> rows_;  // [128][dim]
};

double RelativeError(std::span<const float> x, std::span<const float> read) {
  double error = 0, size = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = double{x[i]} - read[i];
    error += difference * difference;
    size += double{x[i]} * x[i];
  }
  return size > 0 ? std::sqrt(error / size) : 0;
}

int ScaleBits(const SideFormat& format) {
  switch (format.scale_type) {
    case ScaleType::kPage:
      return 32;
    case ScaleType::kF16:
      return format.has_offset ? 32 : 16;
    case ScaleType::kE8m0:
    case ScaleType::kUe4m3:
      return 8;
  }
  return 0;
}

Status CheckSlice(const Side& side, std::span<const float> x, int channels) {
  if (NeedsCalibration(side)) {
    return FailedPrecondition(
        "a slice has no calibration; bal, wN and cal take one of the whole head");
  }
  if (side.pre) return FailedPrecondition("a slice does not know its positions; pre takes them");
  if (channels < 1 || channels > kMaxHeadDim || x.empty() || x.size() % channels != 0) {
    return InvalidArgument(
        fmt::format("a slice of {} values in rows of {} channels; it takes at least one row of 1 "
                    "to {} channels",
                    x.size(), channels, kMaxHeadDim));
  }
  const auto wrong =
      std::find_if(x.begin(), x.end(), [](float value) { return !std::isfinite(value); });
  if (wrong == x.end()) return OkStatus();
  const auto at = wrong - x.begin();
  return InvalidArgument(
      fmt::format("token {}, channel {} of the slice is not finite", at / channels, at % channels));
}

}  // namespace

std::vector<float> ReadBack(const SideFormat& format, const HeadTables& tables,
                            std::span<const float> rows, int64_t first, int64_t end) {
  std::vector<float> result(rows.begin(), rows.end());
  if (format.exact) return result;
  PageOfOneSide page(format, tables);
  for (int64_t at = first; at < end;) {
    const int64_t next = std::min((at / kPageTokens + 1) * kPageTokens, end);
    page.PassThrough(result.data() + at * format.dim, static_cast<int>(next - at), at);
    at = next;
  }
  return result;
}

Result<Slice> QuantizeSlice(const Side& side, SideKind kind, std::span<const float> x, int channels,
                            const ExactTokens& exact) {
  if (Status status = CheckSlice(side, x, channels); !status.ok()) return status;
  const auto format = ResolveSide(side, kind, channels);
  if (!format.ok()) return format.status();
  const auto tokens = static_cast<int64_t>(x.size()) / channels;
  const int64_t first = std::clamp<int64_t>(exact.sinks, 0, tokens);
  const int64_t end = std::clamp(tokens - exact.recent, first, tokens);
  Slice slice = {.read = ReadBack(*format, {}, x, first, end), .code_bits = format->bits};
  slice.relative_error = RelativeError(x, slice.read);
  if (format->exact) return slice;
  slice.scale_bits = ScaleBits(*format);
  slice.group_channels = format->axis == Axis::kToken     ? format->group
                         : format->axis == Axis::kChannel ? 1
                                                          : channels;
  if (format->axis != Axis::kToken) {
    const int64_t most = format->axis == Axis::kChannel ? format->group : kPageTokens;
    slice.group_tokens = std::clamp<int64_t>(end - first, 1, most);
  }
  return slice;
}

}  // namespace shorthand
