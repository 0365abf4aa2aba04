#include "quant/rope_pairs.h"

namespace shorthand {

int RopePartner(const LayerStatistics& layer, int channel) {
  if (channel >= layer.rope_dims) return channel;
  const int half = layer.rope_dims / 2;
  switch (layer.rope_pairs) {
    case RopePairs::kAdjacent:
      return channel ^ 1;
    case RopePairs::kHalves:
      return channel < half ? channel + half : channel - half;
    default:
      return channel;
  }
}

std::vector<double> PairSquares(const LayerStatistics& layer, std::span<const float> x) {
  std::vector<double> squares(x.size());
  for (size_t c = 0; c < x.size(); ++c) {
    const double own = x[c], partner = x[RopePartner(layer, static_cast<int>(c))];
    squares[c] = (own * own + partner * partner) / 2;
  }
  return squares;
}

}  // namespace shorthand
