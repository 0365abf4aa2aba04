#include "quant/promote.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace shorthand {

void ChoosePromoted(const SideFormat& format, const float* x, int first, uint16_t* promoted) {
  std::vector<float> loudness(format.dim);
  for (int t = first; t < kPageTokens; ++t) {
    const float* row = x + static_cast<size_t>(t) * format.padded_dim;
    for (int c = 0; c < format.dim; ++c) loudness[c] += std::fabs(row[c]);
  }
  std::vector<uint16_t> channels(format.dim);
  std::iota(channels.begin(), channels.end(), uint16_t{0});
  std::stable_sort(channels.begin(), channels.end(),
                   [&](uint16_t a, uint16_t b) { return loudness[a] > loudness[b]; });
  std::copy_n(channels.begin(), format.promoted, promoted);
  std::sort(promoted, promoted + format.promoted);
}

std::vector<uint8_t> PromotedWidths(const SideFormat& format) {
  std::vector<uint8_t> widths(format.padded_dim / 4, static_cast<uint8_t>(format.bits));
  std::fill_n(widths.begin(), format.promoted / 4, static_cast<uint8_t>(2 * format.bits));
  return widths;
}

HeadTables PromotedPlanes(const SideFormat& format, const uint16_t* promoted) {
  HeadTables tables;
  tables.order.assign(promoted, promoted + format.promoted);
  for (int c = 0; c < format.padded_dim; ++c) {
    if (std::binary_search(promoted, promoted + format.promoted, c)) continue;
    tables.order.push_back(static_cast<uint16_t>(c));
  }
  tables.widths = PromotedWidths(format);
  return tables;
}

}  // namespace shorthand
