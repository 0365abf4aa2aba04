// Every registry row, in every group it can have: the error of a round trip stays within a bound
// that follows from the format's rule, and finite input never makes anything else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/half.h"
#include "quant/every_side.h"
#include "quant/levels.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

constexpr int kDims[] = {8, 64, 80, 96, 128, 256};

std::vector<std::string> TextsOf(const Codec& codec) {
  if (codec.code == Code::kWater) return {"w2.5/ch", "w4/ch", "w8/ch"};
  std::vector<std::string> texts = EverySide(codec);
  for (const std::string& text : KeySides(codec)) texts.push_back(text);
  // Ranges of a calibration clip; hiX takes its channels alone from there.
  const auto clips = [&](const std::string& text) {
    return text.find(":cal") != std::string::npos && codec.code != Code::kUint &&
           text.find("/tok") == std::string::npos;
  };
  std::erase_if(texts, [&](const std::string& text) {
    // One clips; rotated: see below; grids and smoothing are measured elsewhere.
    return text.starts_with("had:") || text.starts_with("smooth:") || text.starts_with("pre:") ||
           text.ends_with(":one") || clips(text) || text.ends_with("/grid");
  });
  return texts;
}

// Extremes of the group of every value [128][dim].
struct Range {
  double low = 1e30, high = -1e30;
  double absolute() const { return std::max(std::fabs(low), std::fabs(high)); }
};

std::vector<Range> RangesOf(const SideFormat& format, const std::vector<float>& x) {
  const auto group_of = [&](int t, int c) {
    if (format.axis == Axis::kToken) return t * format.groups() + c / format.group;
    if (format.axis == Axis::kChannel) return c * format.groups() + t / format.group;
    return 0;
  };
  std::vector<Range> groups(static_cast<size_t>(format.groups()) *
                            std::max(kPageTokens, format.dim));
  std::vector<Range> ranges;
  for (int t = 0; t < kPageTokens; ++t) {
    for (int c = 0; c < format.dim; ++c) {
      Range& range = groups[group_of(t, c)];
      range.low = std::min(range.low, static_cast<double>(x[t * format.dim + c]));
      range.high = std::max(range.high, static_cast<double>(x[t * format.dim + c]));
    }
  }
  for (int t = 0; t < kPageTokens; ++t) {
    for (int c = 0; c < format.dim; ++c) ranges.push_back(groups[group_of(t, c)]);
  }
  return ranges;
}

// Widest gap between neighbouring levels, and the level furthest from zero.
struct Spread {
  double gap = 0;
  double top = 0;
};

Spread SpreadOf(const Codec& codec) {
  std::vector<float> levels(codec.levels, codec.levels + (1 << codec.bits));
  std::erase_if(levels, [](float level) { return !std::isfinite(level); });
  std::sort(levels.begin(), levels.end());
  Spread spread;
  for (size_t i = 1; i < levels.size(); ++i) {
    spread.gap = std::max(spread.gap, static_cast<double>(levels[i] - levels[i - 1]));
  }
  spread.top = std::max(std::fabs(levels.front()), std::fabs(levels.back()));
  return spread;
}

// Half a step of the format in a group of this range, before any rounding of scale and offset.
// Those add up to 2^-11 of the largest value each, or half an f16 subnormal times a level.
double Bound(const SideFormat& format, const Spread& spread, const Range& range, double value) {
  const double width = range.high - range.low, absolute = range.absolute();
  const double rounding = absolute * 0x1p-9 + (spread.top + 2) * 0x1p-24;
  // Half of the half-range is the most that is cut off, and where the outermost levels lie.
  if (format.tunes.mse) {
    const bool table = format.code == Code::kRn;
    const double reach = table ? spread.top * LevelTableOf(Code::kRn, format.bits).step : 1;
    return (format.code == Code::kInt ? absolute : width / 2) * (1 - reach / 2) + rounding;
  }
  switch (format.code) {
    case Code::kUint:
    case Code::kQ4_1:
    case Code::kQ5_1:
      return width / spread.top / 2 + rounding;
    case Code::kWater:  // clipped to half its range at most
      return width / 2 + rounding;
    case Code::kInt:
      return absolute / (spread.top - 1) / 2 + rounding;
    case Code::kQ8_0:
      return absolute / 127 / 2 + rounding;
    case Code::kQ4_0:
    case Code::kQ5_0:  // the largest magnitude of the other sign may lie one step beyond the top
      return absolute / spread.top + rounding;
    case Code::kNf:
      return absolute / spread.top * spread.gap / 2 + rounding;
    case Code::kIq4Nl:  // least squares may move the scale; never beyond a level's worth
      return absolute * .25 + rounding;
    case Code::kNuq:
      return width / 2 / spread.top * spread.gap / 2 + rounding;
    case Code::kRn: {  // inside half a gap, outside what the outermost level leaves
      const double step = LevelTableOf(Code::kRn, format.bits).step;
      const double half = width / 2;
      return std::max(spread.gap / 2 * step, 1 - spread.top * step) * half + rounding;
    }
    case Code::kLm:  // least squares never lengthens a group, and codes keep their sign
      return absolute * (format.tunes.norm || format.tunes.ub ? 1.25 : 1) + rounding * 2;
    case Code::kE4m3:
      return std::max(std::fabs(value) / 16, absolute / 448 * 0x1p-10) * 1.001 + 1e-37;
    case Code::kE5m2:
      return std::max(std::fabs(value) / 8, absolute / 57344 * 0x1p-17) * 1.001 + 1e-37;
    case Code::kMxfp4:  // up to 8 in units in which the top level is 6: a quarter is lost
      return absolute * .26 + 0x1p-120;
    case Code::kNvfp4:  // saturates at 2688; the scale's step is 2^-9 at least
      return std::max(absolute / 6 * 1.07, absolute - 2688.0) + 6 * 0x1p-9 + absolute * 0x1p-3;
    default:
      return 0;
  }
}

void CheckRoundTrip(const SideFormat& format, const std::vector<float>& x, const char* what) {
  const std::vector<float> read = SealedSide(format, x).Unsealed();
  const std::vector<Range> ranges = RangesOf(format, x);
  const Spread spread = SpreadOf(*format.codec);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(std::isfinite(read[i])) << what << " at " << i;
    ASSERT_LE(std::fabs(static_cast<double>(read[i]) - x[i]),
              Bound(format, spread, ranges[i], x[i]))
        << what << " at " << i << ": " << x[i] << " reads as " << read[i];
  }
}

class RegistryTest : public ::testing::TestWithParam<const Codec*> {
 protected:
  // Calls check(format) for every group and dim; sides alternate (page_test.cc compares them).
  template <typename Check>
  void ForEachFormat(Check check) {
    SideKind kind = SideKind::kKey;
    for (const std::string& text : TextsOf(*GetParam())) {
      for (int dim : kDims) {
        kind = kind == SideKind::kKey ? SideKind::kValue : SideKind::kKey;
        const Result<SideFormat> format = TryResolveText(text, kind, dim);
        if (!format.ok()) continue;  // resolve_test.cc knows which these are
        SCOPED_TRACE(text + " " + std::to_string(dim));
        check(*format);
        if (HasFatalFailure()) return;
      }
    }
  }
};

TEST_P(RegistryTest, ErrorOfGaussianPagesIsBounded) {
  ForEachFormat([](const SideFormat& format) {
    CheckRoundTrip(format, Normals(format.dim, format.dim, 1, 0), "normal");
    CheckRoundTrip(format, Normals(format.dim, format.dim, 3, -2), "shifted");
    CheckRoundTrip(format, Normals(format.dim, format.dim, 300, 0), "large");
  });
}

TEST_P(RegistryTest, SpecialPagesAreBounded) {
  ForEachFormat([](const SideFormat& format) {
    std::vector<float> x(static_cast<size_t>(kPageTokens) * format.dim, 0.75f);
    CheckRoundTrip(format, x, "constant");
    std::fill(x.begin(), x.end(), -3.0f);
    CheckRoundTrip(format, x, "negative constant");
    x = Normals(format.dim, format.dim, 1, 0);
    x[x.size() / 2] = 500;
    CheckRoundTrip(format, x, "one outlier");
    for (size_t i = 0; i < x.size(); ++i) x[i] = i % 3 == 0 ? 65504.0f : -65504.0f;
    CheckRoundTrip(format, x, "largest");
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) * 0x1p-24f;
    CheckRoundTrip(format, x, "denormal");
    std::fill(x.begin(), x.end(), -0x1p-24f);
    CheckRoundTrip(format, x, "least");
  });
}

TEST_P(RegistryTest, ZerosReadAsZeros) {
  ForEachFormat([](const SideFormat& format) {
    const std::vector<float> x(static_cast<size_t>(kPageTokens) * format.dim);
    for (float v : SealedSide(format, x).Unsealed()) ASSERT_EQ(v, 0);
  });
}

// Rotation can take values beyond the f16 range; nothing may become infinite or NaN by it.
TEST_P(RegistryTest, RotatedExtremesStayFinite) {
  ForEachFormat([](const SideFormat& plain) {
    SideFormat format = plain;
    format.hadamard = plain.dim & -plain.dim;
    format.mean = plain.kind == SideKind::kKey && plain.axis != Axis::kChannel;
    std::vector<float> x(static_cast<size_t>(kPageTokens) * plain.dim, 65504.0f);
    for (float v : SealedSide(format, x).Unsealed()) ASSERT_TRUE(std::isfinite(v));
    for (size_t i = 0; i < x.size(); i += 2) x[i] = -65504.0f;
    for (float v : SealedSide(format, x).Unsealed()) ASSERT_TRUE(std::isfinite(v));
  });
}

TEST_P(RegistryTest, HasADocument) {
  const char* root = std::getenv("SHORTHAND_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "SHORTHAND_SOURCE_DIR names the source tree.";
  const std::string path =
      std::string(root) + "/docs/formats/" + std::string(GetParam()->document) + ".md";
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
}

std::vector<const Codec*> Rows() {
  std::vector<const Codec*> rows;
  for (const Codec& codec : Registry()) rows.push_back(&codec);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Rows, RegistryTest, ::testing::ValuesIn(Rows()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
}  // namespace shorthand
