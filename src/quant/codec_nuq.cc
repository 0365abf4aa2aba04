// nuqB: levels between minimum and maximum, outliers kept apart. docs/formats/table.md
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/half.h"
#include "quant/codecs.h"
#include "quant/groups.h"
#include "quant/head_tables.h"

namespace shorthand {
namespace {

// How far every value of rows [first, 128) lies from its group's mean, in standard deviations;
// -1 elsewhere. [128][padded_dim]
std::vector<float> Deviations(const SideFormat& format, const float* x, int first, CodedSide out) {
  // Until scales and offsets are known, their places hold deviations and means.
  ForEachGroup(format, x, first, out, [](const Group& group) {
    const auto n = static_cast<float>(group.n);
    const auto value = [&](int i) { return group.x[i]; };
    const float mean = Reduce(group.order, group.n, 0.0f, value, Add) / n;
    const auto square = [&](int i) { return (group.x[i] - mean) * (group.x[i] - mean); };
    return GroupScale{std::sqrt(Reduce(group.order, group.n, 0.0f, square, Add) / n), mean};
  });
  const int stride = format.padded_dim;
  std::vector<float> deviations(static_cast<size_t>(kPageTokens) * stride, -1.0f);
  for (int t = first; t < kPageTokens; ++t) {
    for (int c = 0; c < format.dim; ++c) {
      const int at = format.scale_index(t, c);
      const float distance = std::fabs(x[t * stride + c] - out.offsets[at]);
      deviations[t * stride + c] = out.scales[at] == 0 ? 0 : distance / out.scales[at];
    }
  }
  return deviations;
}

// How far every value of rows [first, 128) lies from the middle of its channel's range, in
// half-ranges; -1 elsewhere. [128][padded_dim]
std::vector<float> DistancesFromRange(const SideFormat& format, const float* x, int first,
                                      const HeadTables& tables) {
  const int stride = format.padded_dim;
  std::vector<float> distances(static_cast<size_t>(kPageTokens) * stride, -1.0f);
  for (int t = first; t < kPageTokens; ++t) {
    for (int c = 0; c < format.dim; ++c) {
      const float middle = (tables.high[c] + tables.low[c]) / 2;
      const float half = (tables.high[c] - tables.low[c]) / 2;
      const float distance = std::fabs(x[t * stride + c] - middle);
      distances[t * stride + c] = distance == 0 ? 0 : distance / half;
    }
  }
  return distances;
}

// The places of the format.outliers values with the largest deviations, ascending; place 0, whose
// token is none of them, as often as there are too few.
void ChooseOutliers(const SideFormat& format, const float* x, int first, CodedSide out) {
  const std::vector<float> deviations = format.head_range
                                            ? DistancesFromRange(format, x, first, *out.tables)
                                            : Deviations(format, x, first, out);
  std::vector<uint16_t> places(deviations.size());
  std::iota(places.begin(), places.end(), uint16_t{0});
  const auto end = places.begin() + format.outliers;
  std::partial_sort(places.begin(), end, places.end(), [&](uint16_t a, uint16_t b) {
    return deviations[a] != deviations[b] ? deviations[a] > deviations[b] : a < b;
  });
  for (auto place = places.begin(); place != end; ++place) {
    if (deviations[*place] < 0) *place = 0;
  }
  std::sort(places.begin(), end);
  std::copy(places.begin(), end, out.outlier_places);
}

}  // namespace

void EncodeNuq(const SideFormat& format, const float* x, int first, CodedSide out) {
  if (format.outliers == 0) return EncodeRangeNormalised(format, x, first, out);
  ChooseOutliers(format, x, first, out);
  // NaN takes no part in a group's range.
  std::vector<float> others(x, x + static_cast<size_t>(kPageTokens) * format.padded_dim);
  for (int i = 0; i < format.outliers; ++i) {
    const int place = out.outlier_places[i];
    out.outlier_values[i] = RoundToFiniteF16(x[place]);
    others[place] = std::numeric_limits<float>::quiet_NaN();
  }
  EncodeRangeNormalised(format, others.data(), first, out);
  for (int i = 0; i < format.outliers; ++i) {
    if (out.outlier_places[i] >= first * format.padded_dim) out.codes[out.outlier_places[i]] = 0;
  }
}

}  // namespace shorthand
