#include "quant/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/aligned_vector.h"
#include "quant/codecs.h"
#include "quant/levels.h"
#include "quant/page.h"

namespace shorthand {
namespace {

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
        page_(MakeAlignedArray<uint8_t>(part_.meta_bytes + part_.codes_bytes)),
        scratch_(MakeAlignedArray<uint8_t>(SealScratchBytes(format))),
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
  const AlignedArray<uint8_t> page_, scratch_;
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

Status CheckRows(std::span<const float> x, int channels) {
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

Status CheckSlice(const Side& side, std::span<const float> x, int channels) {
  if (NeedsCalibration(side)) {
    return FailedPrecondition(
        "a slice has no calibration; bal, wN and cal take one of the whole head");
  }
  if (side.pre) return FailedPrecondition("a slice does not know its positions; pre takes them");
  return CheckRows(x, channels);
}

// Tokens [first, end).
struct CodedTokens {
  int64_t first;
  int64_t end;
};

CodedTokens CodedOf(int64_t tokens, const ExactTokens& exact) {
  const int64_t first = std::clamp<int64_t>(exact.sinks, 0, tokens);
  return {first, std::clamp(tokens - exact.recent, first, tokens)};
}

int64_t EndOfPage(int64_t token, int64_t end) {
  return std::min((token / kPageTokens + 1) * kPageTokens, end);
}

// Groups of tokens are counted from the last row of a page backwards; 0: one group is all.
std::vector<int64_t> TokenEdges(const CodedTokens& coded, int64_t group) {
  std::vector<int64_t> edges = {coded.first};
  if (group == 0 && coded.first < coded.end) return {coded.first, coded.end};
  for (int64_t at = coded.first; at < coded.end;) {
    const int64_t next = EndOfPage(at, coded.end);
    const int64_t rest = (next - at) % group;
    for (at += rest == 0 ? group : rest; at <= next; at += group) edges.push_back(at);
    at = next;
  }
  return edges;
}

std::vector<int64_t> ChannelEdges(int64_t channels, int64_t group) {
  std::vector<int64_t> edges = {0};
  while (edges.back() < channels) edges.push_back(std::min(edges.back() + group, channels));
  return edges;
}

GroupShape FullGroup(const Side& side, const SideFormat& format) {
  const bool whole = side.axis != Axis::kNone && side.group == 0;
  if (format.axis == Axis::kToken) return {1, whole ? 0 : format.group};
  if (format.axis == Axis::kChannel) return {format.group, 1};
  return {kPageTokens, 0};
}

void SetGroups(const CodedTokens& coded, int64_t channels, const GroupShape& full, Slice* slice) {
  const int64_t tokens = std::max<int64_t>(coded.end - coded.first, 1);
  slice->full_group = full;
  slice->group_tokens = full.tokens == 0 ? tokens : std::min(full.tokens, tokens);
  slice->group_channels = full.channels == 0 ? channels : full.channels;
  slice->channel_edges = ChannelEdges(channels, slice->group_channels);
  slice->token_edges = TokenEdges(coded, full.tokens);
}

Group GroupOf(std::span<const float> x, uint8_t* codes) {
  return {x.data(), static_cast<int>(x.size()), Order::kSequential, codes, 0};
}

ValueRange RangeOf(std::span<const float> x) { return ClippedRange(GroupOf(x, nullptr), 1); }

// x in uB under one scale and offset.
void PassThroughUnsigned(int bits, ValueRange range, std::span<float> x) {
  std::vector<uint8_t> codes(x.size());
  const GroupScale of = EncodeUnsignedGroup(GroupOf(x, codes.data()), bits, range);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::fma(of.scale, UnsignedLevels()[codes[i]], of.offset);
  }
}

Slice UnsignedSlice(int bits, std::span<const float> x) {
  constexpr int kScaleAndOffsetBits = 32;
  return {.read = {x.begin(), x.end()}, .code_bits = bits, .scale_bits = kScaleAndOffsetBits};
}

}  // namespace

std::vector<float> ReadBack(const SideFormat& format, const HeadTables& tables,
                            std::span<const float> rows, int64_t first, int64_t end) {
  std::vector<float> result(rows.begin(), rows.end());
  if (format.exact) return result;
  PageOfOneSide page(format, tables);
  for (int64_t at = first; at < end;) {
    const int64_t next = EndOfPage(at, end);
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
  const CodedTokens coded = CodedOf(static_cast<int64_t>(x.size()) / channels, exact);
  Slice slice = {.read = ReadBack(*format, {}, x, coded.first, coded.end),
                 .code_bits = format->bits};
  slice.relative_error = RelativeError(x, slice.read);
  if (format->exact) return slice;
  slice.scale_bits = ScaleBits(*format);
  SetGroups(coded, channels, FullGroup(side, *format), &slice);
  return slice;
}

Result<Slice> QuantizeByPage(int bits, std::span<const float> x, int channels,
                             const ExactTokens& exact) {
  if (Status status = CheckRows(x, channels); !status.ok()) return status;
  const CodedTokens coded = CodedOf(static_cast<int64_t>(x.size()) / channels, exact);
  Slice slice = UnsignedSlice(bits, x);
  for (int64_t at = coded.first; at < coded.end;) {
    const int64_t next = EndOfPage(at, coded.end);
    const auto page = std::span(slice.read).subspan(at * channels, (next - at) * channels);
    PassThroughUnsigned(bits, RangeOf(page), page);
    at = next;
  }
  slice.relative_error = RelativeError(x, slice.read);
  SetGroups(coded, channels, {kPageTokens, 0}, &slice);
  return slice;
}

Result<Slice> QuantizeByLayer(int bits, std::span<const float> x, int channels,
                              const ExactTokens& exact, std::span<const float> layer,
                              int64_t layer_channels) {
  if (Status status = CheckRows(x, channels); !status.ok()) return status;
  const CodedTokens coded = CodedOf(static_cast<int64_t>(x.size()) / channels, exact);
  const auto layer_tokens = static_cast<int64_t>(layer.size()) / layer_channels;
  const CodedTokens in_layer = CodedOf(layer_tokens, exact);
  Slice slice = UnsignedSlice(bits, x);
  SetGroups(coded, channels, {0, 0}, &slice);
  if (coded.first < coded.end) {
    const auto rows = [](auto values, const CodedTokens& of, int64_t width) {
      return values.subspan(of.first * width, (of.end - of.first) * width);
    };
    PassThroughUnsigned(bits, RangeOf(rows(layer, in_layer, layer_channels)),
                        rows(std::span(slice.read), coded, channels));
  }
  slice.relative_error = RelativeError(x, slice.read);
  // The group reaches past the slice.
  slice.group_tokens = std::max<int64_t>(in_layer.end - in_layer.first, 1);
  slice.group_channels = layer_channels;
  return slice;
}

}  // namespace shorthand
