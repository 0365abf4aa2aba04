#include "slice_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "svg.h"

namespace shorthand {
namespace {

constexpr double kMargin = 16, kTop = 84;  // of the sheet; above the first panel
constexpr double kGap = 28;                // between panels
constexpr const char* kFrame = "#222222";

struct Rgb {
  int r, g, b;
};
constexpr Rgb kPositive = {33, 102, 172}, kNegative = {178, 24, 43}, kError = {179, 88, 6};
// Neighbouring groups have different tints.
constexpr Rgb kTints[] = {{66, 105, 208}, {60, 169, 81}, {164, 99, 242}};

// White at 0, the colour at 1.
std::string Shade(const Rgb& color, double share) {
  const double s = std::clamp(share, 0.0, 1.0);
  const auto mix = [&](int c) { return static_cast<int>(std::lround(255 + (c - 255) * s)); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(color.r), mix(color.g), mix(color.b));
}

struct Cell2 {
  int64_t token = 0, channel = 0;
};

// Tokens and channels that share a scale; none: those that are exact.
struct Group {
  int64_t token = 0, channel = 0, tokens = 0, channels = 0;
  int64_t tint = 0;
};

// Which of the stretches between edges has `at`; -1: none.
int64_t Stretch(const std::vector<int64_t>& edges, int64_t at) {
  const auto end = std::upper_bound(edges.begin(), edges.end(), at);
  return end == edges.end() ? -1 : end - edges.begin() - 1;
}

class Sheet {
 public:
  Sheet(const ModelSlice& slice, double cell)
      : slice_(slice),
        tokens_(slice.tokens.count()),
        channels_(slice.channels.count()),
        cell_(cell) {
    const int64_t first = std::min(slice.exact.sinks, tokens_);
    const int64_t end = std::max(tokens_ - slice.exact.recent, first);
    // Where nothing is coded any number will do: no error is drawn.
    if (first < end) first_coded_ = first, end_coded_ = end;
  }

  double PanelWidth() const { return cell_ * static_cast<double>(channels_); }
  double PanelHeight() const { return cell_ * static_cast<double>(tokens_); }

  // The largest number that is coded.
  Cell2 Outlier() const {
    const auto largest = std::max_element(
        slice_.x.begin() + first_coded_ * channels_, slice_.x.begin() + end_coded_ * channels_,
        [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    const int64_t at = largest - slice_.x.begin();
    return {at / channels_, at % channels_};
  }

  static Group GroupOf(const Slice& coded, const Cell2& of) {
    const std::vector<int64_t>&down = coded.token_edges, &across = coded.channel_edges;
    const int64_t t = Stretch(down, of.token), c = Stretch(across, of.channel);
    if (t < 0 || c < 0) return {};
    return {down[t], across[c], down[t + 1] - down[t], across[c + 1] - across[c], t + c};
  }

  template <typename Color>
  std::string Panel(double x, double y, const Color& color) const {
    std::string body;
    for (int64_t t = 0; t < tokens_; ++t) {
      for (int64_t c = 0; c < channels_; ++c) {
        body += SvgRect(x + cell_ * static_cast<double>(c), y + cell_ * static_cast<double>(t),
                        cell_ - 0.5, cell_ - 0.5, color(Cell2{t, c}));
      }
    }
    return body + SvgFrame(x, y, PanelWidth(), PanelHeight(), "#999999");
  }

  std::string Frame(double x, double y, const Group& group) const {
    if (group.tokens == 0) return "";
    return SvgFrame(x + cell_ * static_cast<double>(group.channel),
                    y + cell_ * static_cast<double>(group.token),
                    cell_ * static_cast<double>(group.channels),
                    cell_ * static_cast<double>(group.tokens), kFrame);
  }

  std::string Star(double x, double y, const Cell2& at) const {
    return SvgText(x + cell_ * (static_cast<double>(at.channel) + 0.5),
                   y + cell_ * (static_cast<double>(at.token) + 0.5) + 4, "middle", "\u2605");
  }

  size_t Index(const Cell2& at) const { return at.token * channels_ + at.channel; }

 private:
  const ModelSlice& slice_;
  int64_t tokens_, channels_;
  double cell_;
  int64_t first_coded_ = 0, end_coded_ = tokens_;
};

std::string Subtitle(const ModelSlice& slice, const std::string& rest) {
  return SvgText(kMargin, 44, "start",
                 fmt::format("Layer {}, head {}: tokens {} to {} down, channels {} to {} of {} "
                             "across. {}",
                             slice.layer, slice.head, slice.tokens.first, slice.tokens.last,
                             slice.channels.first, slice.channels.last, slice.dim, rest));
}

const char* Name(const ModelSlice& slice) {
  return slice.kind == SideKind::kKey ? "keys" : "values";
}

}  // namespace

std::string SlicePicture(const std::string& model, const ModelSlice& slice) {
  const Sheet sheet(slice, 12);
  double largest = 1e-30, worst = 1e-30;
  for (const float x : slice.x) largest = std::max(largest, std::fabs(double{x}));
  for (const CodedSlice& coded : slice.codes) {
    for (size_t i = 0; i < slice.x.size(); ++i) {
      worst = std::max(worst, std::fabs(double{slice.x[i]} - coded.slice.read[i]));
    }
  }
  const double step = std::max(sheet.PanelWidth(), 170.0) + kGap;
  std::string body = Subtitle(slice, "Framed: one scale.");
  body += SvgText(kMargin, kTop - 10, "start", fmt::format("{} as they are", Name(slice)));
  body += sheet.Panel(kMargin, kTop, [&](const Cell2& at) {
    const double x = slice.x[sheet.Index(at)];
    return Shade(x < 0 ? kNegative : kPositive, std::sqrt(std::fabs(x) / largest));
  });
  body += SvgText(kMargin, kTop + sheet.PanelHeight() + 18, "start", "blue positive, red negative");
  double x = kMargin + step;
  for (const CodedSlice& coded : slice.codes) {
    body +=
        SvgText(x, kTop - 10, "start",
                fmt::format("error of {}: {:.1f} %", coded.code, 100 * coded.slice.relative_error));
    body += sheet.Panel(x, kTop, [&](const Cell2& at) {
      const size_t i = sheet.Index(at);
      return Shade(kError, std::sqrt(std::fabs(double{slice.x[i]} - coded.slice.read[i]) / worst));
    });
    body += sheet.Frame(x, kTop, Sheet::GroupOf(coded.slice, sheet.Outlier()));
    body += SvgText(x, kTop + sheet.PanelHeight() + 18, "start",
                    fmt::format("whole head: {:.1f} %", 100 * coded.head_error));
    x += step;
  }
  return SvgDocument(std::max(x - kGap + kMargin, 560.0), kTop + sheet.PanelHeight() + 34,
                     fmt::format("{}: {} of one attention head", model, Name(slice)), body);
}

std::string GroupingPicture(const std::string& model, const ModelSlice& slice) {
  const Sheet sheet(slice, 7);
  const Cell2 outlier = sheet.Outlier();
  const double step = std::max(sheet.PanelHeight(), 84.0) + kGap;
  const double text_x = kMargin + sheet.PanelWidth() + kGap;
  std::string body = Subtitle(slice, "");
  body += SvgText(kMargin, 62, "start",
                  "\u2605: the largest number; what is dark shares its scale. Neighbouring groups "
                  "have different tints.");
  double y = kTop;
  for (const CodedSlice& coded : slice.codes) {
    const Slice& of = coded.slice;
    const Group lit = Sheet::GroupOf(of, outlier);
    body += sheet.Panel(kMargin, y, [&](const Cell2& at) {
      const Group group = Sheet::GroupOf(of, at);
      if (group.tokens == 0) return Shade(kTints[0], 0);
      const bool is_lit = group.token == lit.token && group.channel == lit.channel;
      return Shade(kTints[group.tint % std::size(kTints)], is_lit ? 0.9 : 0.2);
    });
    body += sheet.Star(kMargin, y, outlier);
    const int64_t shared = lit.tokens * lit.channels;
    const auto in_group = static_cast<double>(of.group_tokens * of.group_channels);
    const std::string lines[] = {
        coded.code, fmt::format("{} numbers share the scale of the largest", shared),
        fmt::format("scale and offset: {:.3g} bits for each number", of.scale_bits / in_group),
        fmt::format("relative error {:.1f} %", 100 * of.relative_error),
        fmt::format("whole head {:.1f} %", 100 * coded.head_error)};
    for (size_t i = 0; i < std::size(lines); ++i) {
      body += SvgText(text_x, y + 12 + 17 * static_cast<double>(i), "start", lines[i]);
    }
    y += step;
  }
  return SvgDocument(text_x + 280, y, fmt::format("{}: which {} share a scale", model, Name(slice)),
                     body);
}

}  // namespace shorthand
