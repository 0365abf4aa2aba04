#include "quant/water_fill.h"

#include <array>
#include <cstddef>
#include <iterator>
#include <queue>
#include <utility>

namespace shorthand {
namespace {

constexpr int kWidths = static_cast<int>(std::size(kQuadWidths));

// water_fill_test measures them.
constexpr std::array<double, kWidths> kGaussianErrors = {.115,   .0334,   .0101,
                                                         .00236, .000571, .0000349};

// What one bit of the step from the n-th width to the next takes away.
double GainOfStep(int n) {
  return (kGaussianErrors[n] - kGaussianErrors[n + 1]) / (kQuadWidths[n + 1] - kQuadWidths[n]);
}

}  // namespace

double GaussianError(int bits) {
  int n = 0;
  while (kQuadWidths[n] != bits) ++n;
  return kGaussianErrors[n];
}

// Gains per bit fall from step to step, so that the largest first is best.
std::vector<uint8_t> FillWidths(std::span<const double> importance, int total) {
  std::vector<int> step(importance.size(), 0);
  int left = total - kQuadWidths[0] * static_cast<int>(importance.size());
  // Largest gain first, then the earlier quad.
  using Offer = std::pair<double, ptrdiff_t>;
  std::priority_queue<Offer> offers;
  const auto offer = [&](size_t quad) {
    if (step[quad] + 1 == kWidths) return;
    offers.emplace(importance[quad] * GainOfStep(step[quad]), -static_cast<ptrdiff_t>(quad));
  };
  for (size_t quad = 0; quad < importance.size(); ++quad) offer(quad);
  while (left > 0 && !offers.empty()) {
    const auto quad = static_cast<size_t>(-offers.top().second);
    offers.pop();
    const int bits = kQuadWidths[step[quad] + 1] - kQuadWidths[step[quad]];
    if (bits > left) continue;
    left -= bits;
    ++step[quad];
    offer(quad);
  }
  std::vector<uint8_t> widths;
  for (const int n : step) widths.push_back(static_cast<uint8_t>(kQuadWidths[n]));
  return widths;
}

}  // namespace shorthand
