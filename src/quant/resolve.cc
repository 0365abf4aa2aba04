// From a side's recipe to its format: what fits a head, and what this build has.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "quant/format.h"
#include "quant/hadamard.h"
#include "quant/recipe_names.h"

namespace shorthand {
namespace {

constexpr int kMinHeadDim = 8;
constexpr int kLaneChannels = 16;

int RoundUp(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

// So many per cent of n, rounded up.
int ShareOf(int n, Decimal percent) {
  constexpr int64_t kWhole = 100'000'000;  // millionths
  return static_cast<int>((n * percent.millionths + kWhole - 1) / kWhole);
}

Status CheckDim(int dim) {
  if (dim >= kMinHeadDim && dim <= kMaxHeadDim && dim % 8 == 0) return OkStatus();
  return InvalidArgument(fmt::format(
      "A head of {} channels is not supported; head dims are multiples of 8 from {} to {}.", dim,
      kMinHeadDim, kMaxHeadDim));
}

Status Missing(std::string_view what) {
  return Unimplemented(fmt::format("'{}' is not supported by this build.", what));
}

// What the grammar knows and this build does not.
Status CheckSupported(const Side& side) {
  if (side.rot) return Missing("rot");
  if (side.cal && !UsesCal(side)) {
    return InvalidArgument(fmt::format(
        "'cal' was given for '{}', which takes nothing from a calibration.", CodeText(side)));
  }
  return OkStatus();
}

Status ResolveSteps(const Side& side, SideKind kind, SideFormat* format) {
  if (side.mu && kind == SideKind::kValue) {
    return InvalidArgument("'mu' was given for values; only keys have a page mean to subtract.");
  }
  if (side.mu && (side.axis == Axis::kChannel || side.axis == Axis::kGrid)) {
    return InvalidArgument(
        "'mu' was given with channel groups, whose offsets already are the mean.");
  }
  if (side.bal && kind == SideKind::kValue) {
    return InvalidArgument("'bal' was given for values; only keys have a balance.");
  }
  if (side.smooth && (kind == SideKind::kValue || side.bal)) {
    return InvalidArgument(
        "'smooth' was given for values or together with 'bal'; keys take one of "
        "the two.");
  }
  if (side.pre && (kind == SideKind::kValue || side.hadamard != kNoHadamard)) {
    return InvalidArgument(
        "'pre' was given for values or together with 'had'; keys before RoPE take "
        "no rotation.");
  }
  format->pre = side.pre;
  format->mean = side.mu && !side.cal;
  format->head_mean = side.mu && side.cal;
  format->smooth = side.smooth && !side.cal;
  format->balance = side.bal || (side.smooth && side.cal);
  const int largest = LargestPowerOfTwoDividing(format->dim);
  const int block = side.hadamard == kHadamardWhole ? largest : side.hadamard;
  const bool power_of_two = block > 0 && (block & (block - 1)) == 0;
  if (block != kNoHadamard && (!power_of_two || block > largest)) {
    return InvalidArgument(fmt::format(
        "'had{}' does not fit a head of {} channels; the largest power of two that divides it is "
        "{}.",
        block, format->dim, largest));
  }
  format->hadamard = block;
  return OkStatus();
}

// The permitted group (the whole head, 64 or 32 channels) nearest to `group` that divides `dim`.
std::string NearestTokenGroup(int dim, int group) {
  int best = dim;
  for (int candidate : {64, 32}) {
    if (dim % candidate == 0 && std::abs(candidate - group) <= std::abs(best - group)) {
      best = candidate;
    }
  }
  return best == dim ? "/tok" : fmt::format("/tok{}", best);
}

Status ResolveTokenGroup(const Side& side, SideFormat* format) {
  format->group = side.group == 0 ? format->dim : side.group;
  if (format->group > 0 && format->dim % format->group == 0) return OkStatus();
  return InvalidArgument(fmt::format(
      "Groups of {} channels do not divide a head of {}; the nearest group that does is '{}'.",
      side.group, format->dim, NearestTokenGroup(format->dim, side.group)));
}

Status ResolveChannelGroup(const Side& side, SideFormat* format) {
  format->group = side.group == 0 ? kPageTokens : side.group;
  if (format->group > 0 && kPageTokens % format->group == 0) return OkStatus();
  return InvalidArgument(
      fmt::format("Groups of {} tokens do not divide a page of {}; '/ch' and '/ch32' do.",
                  side.group, kPageTokens));
}

Status ResolveBlock(const Side& side, SideFormat* format) {
  const Codec& codec = *format->codec;
  if (side.axis != Axis::kNone) {
    return InvalidArgument(
        fmt::format("'{}' has groups of its own; it takes no group.", codec.name));
  }
  if (format->dim % codec.fixed_group != 0) {
    return InvalidArgument(fmt::format(
        "'{}' has blocks of {} channels, which do not divide a head of {}; use a code with '/tok'.",
        codec.name, codec.fixed_group, format->dim));
  }
  format->axis = Axis::kToken;
  format->group = codec.fixed_group;
  return OkStatus();
}

Status ResolveGroup(const Side& side, SideFormat* format) {
  const Codec& codec = *format->codec;
  if (codec.fixed_group != 0) return ResolveBlock(side, format);
  format->axis = side.axis;
  if (side.axis == Axis::kGrid && codec.scale_type == ScaleType::kF16) {
    format->grid = true;
    format->axis = format->kind == SideKind::kKey ? Axis::kChannel : Axis::kToken;
    format->group = format->kind == SideKind::kKey ? kPageTokens : format->dim;
    return OkStatus();
  }
  const bool page = codec.scale_type == ScaleType::kPage;
  if (page != (side.axis == Axis::kPage) || side.axis == Axis::kNone) {
    return InvalidArgument(fmt::format("'{}' takes the group {}.", codec.name,
                                       page ? "'/page'"
                                            : "'/tok', '/tok32', '/tok64', '/ch', '/ch32' or "
                                              "'/grid'"));
  }
  if (side.axis == Axis::kToken) return ResolveTokenGroup(side, format);
  if (side.axis == Axis::kChannel) return ResolveChannelGroup(side, format);
  return OkStatus();
}

// Whole lines: a quad of channels in b bits takes b of them.
Result<SideFormat> ResolvePlanes(const Side& side, SideFormat format) {
  if (format.kind == SideKind::kValue) {
    return InvalidArgument("'wN' was given for values; only keys have widths by channel.");
  }
  if (side.axis != Axis::kChannel || side.group != 0) {
    return InvalidArgument("'wN' takes the group '/ch'.");
  }
  const int64_t quads = format.padded_dim / 4;
  format.plane_lines = static_cast<int>(side.width.millionths * quads / 1'000'000);
  return format;
}

Status ResolvePromoted(const Side& side, SideFormat* format) {
  const bool fits = format->kind == SideKind::kKey && side.code == Code::kUint &&
                    side.axis == Axis::kChannel && 2 * side.bits <= 8;
  if (!fits) {
    return InvalidArgument(
        "'hi' was given where channels have no width; keys in u2, u3 and u4 with "
        "'/ch' or '/ch32' take it.");
  }
  format->promoted = RoundUp(ShareOf(format->dim, side.hi), 4);
  format->plane_lines = (format->padded_dim + format->promoted) / 4 * format->bits;
  return OkStatus();
}

Status ResolveOutliers(const Side& side, SideFormat* format) {
  constexpr int kMaxDim = 512;  // places are 16-bit words
  if (side.code != Code::kNuq || format->grid) {
    return InvalidArgument(
        "'out' was given where no outliers are kept; nuqB with '/tok', '/tok32', "
        "'/tok64', '/ch' or '/ch32' takes it.");
  }
  if (format->padded_dim > kMaxDim) {
    return InvalidArgument(fmt::format("'out' takes heads of up to {} channels; this one has {}.",
                                       kMaxDim, format->dim));
  }
  format->outliers = ShareOf(kPageTokens * format->dim, side.out);
  return OkStatus();
}

// What of nuqB comes from a calibration. Where channels are mixed, their ranges are not known.
void ResolveLearned(const Side& side, SideFormat* format) {
  format->head_levels = side.code == Code::kNuq && side.cal;
  format->head_range = format->head_levels && format->kind == SideKind::kKey &&
                       format->axis == Axis::kChannel && !format->grid && format->hadamard == 0;
}

Result<SideFormat> ResolveExact(const Side& side, SideFormat format) {
  if (side.mu || side.hadamard != kNoHadamard || side.axis != Axis::kNone) {
    return InvalidArgument(
        fmt::format("'{}' is stored as it is; it takes no steps and no group.", CodeText(side)));
  }
  format.exact = true;
  format.bits = side.code == Code::kF32 ? 32 : 16;
  return format;
}

}  // namespace

Result<SideFormat> ResolveSide(const Side& side, SideKind kind, int dim) {
  if (Status status = CheckDim(dim); !status.ok()) return status;
  if (Status status = CheckSupported(side); !status.ok()) return status;
  SideFormat format;
  format.kind = kind;
  format.code = side.code;
  format.dim = dim;
  format.padded_dim = RoundUp(dim, kLaneChannels);
  format.tunes = side;
  if (IsExact(side.code)) return ResolveExact(side, format);

  format.codec = FindCodec(side.code, side.bits);
  if (format.codec == nullptr) {
    return InvalidArgument(fmt::format("There is no code '{}'.", CodeText(side)));
  }
  format.bits = format.codec->bits;
  format.has_offset = format.codec->has_offset;
  format.scale_type = format.codec->scale_type;
  if (Status status = ResolveSteps(side, kind, &format); !status.ok()) return status;
  if (Status status = ResolveGroup(side, &format); !status.ok()) return status;
  ResolveLearned(side, &format);
  if (side.code == Code::kWater) return ResolvePlanes(side, format);
  if (side.hi != Decimal{}) {
    if (Status status = ResolvePromoted(side, &format); !status.ok()) return status;
  }
  if (side.out != Decimal{}) {
    if (Status status = ResolveOutliers(side, &format); !status.ok()) return status;
  }
  return format;
}

int SideFormat::groups() const {
  if (axis == Axis::kToken) return dim / group;
  if (axis == Axis::kChannel) return kPageTokens / group;
  return 1;
}

size_t SideFormat::meta_bytes() const {
  if (exact) return 0;
  const size_t width = axis == Axis::kChannel ? padded_dim : kPageTokens;
  const size_t scale_bytes = scale_type == ScaleType::kPage  ? 0
                             : scale_type == ScaleType::kF16 ? sizeof(uint16_t)
                                                             : 1;
  const size_t scales = groups() * width * scale_bytes * (has_offset ? 2 : 1);
  const size_t words =
      (mean ? padded_dim : 0) + smooth_factors() + named_channels() + factors() + 2 * outliers;
  const size_t bytes = words * sizeof(uint16_t) + scales;
  return (bytes + 63) / 64 * 64;
}

size_t SideFormat::codes_bytes() const {
  if (planes()) return static_cast<size_t>(plane_lines) * 64;
  return static_cast<size_t>(kPageTokens / 8) * padded_dim * bits;
}

}  // namespace shorthand
