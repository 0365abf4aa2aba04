#include "quant/head_tables.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "quant/water_fill.h"

namespace shorthand {
namespace {

// Spreads and magnitudes below these count as these, so that no balance is infinite or zero.
constexpr float kLeastSpread = 1e-5f;
constexpr float kLeastMagnitude = 1e-4f;

// The channel that RoPE rotates with `channel`; itself if it is not rotated.
int Partner(const LayerStatistics& layer, int channel) {
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

// Squares of the numbers, averaged over RoPE's pairs: rotation carries variance from one channel of
// a pair to the other.
std::vector<double> PairSquares(const LayerStatistics& layer, std::span<const float> x) {
  std::vector<double> squares(x.size());
  for (size_t c = 0; c < x.size(); ++c) {
    const double own = x[c], partner = x[Partner(layer, static_cast<int>(c))];
    squares[c] = (own * own + partner * partner) / 2;
  }
  return squares;
}

void SetBalance(const HeadStatistics& head, int padded_dim, HeadTables* tables) {
  tables->balance.assign(padded_dim, 1.0f);
  tables->inverse_balance.assign(padded_dim, 1.0f);
  for (size_t c = 0; c < head.k_spread.size(); ++c) {
    const float ratio =
        std::max(head.k_spread[c], kLeastSpread) / std::max(head.q_rms[c], kLeastMagnitude);
    tables->balance[c] = std::sqrt(ratio);
    tables->inverse_balance[c] = 1 / tables->balance[c];
  }
}

// The order puts the channels that matter most first; padding comes last.
void SetWidths(const SideFormat& format, const LayerStatistics& layer, const HeadStatistics& head,
               HeadTables* tables) {
  const std::vector<double> spread = PairSquares(layer, head.k_spread);
  const std::vector<double> query = PairSquares(layer, head.q_rms);
  std::vector<double> importance(format.padded_dim, 0.0);
  for (size_t c = 0; c < spread.size(); ++c) importance[c] = spread[c] * query[c];
  tables->order.resize(format.padded_dim);
  std::iota(tables->order.begin(), tables->order.end(), uint16_t{0});
  std::stable_sort(tables->order.begin(), tables->order.begin() + format.dim,
                   [&](uint16_t a, uint16_t b) { return importance[a] > importance[b]; });
  std::vector<double> quads(format.padded_dim / 4, 0.0);
  for (int place = 0; place < format.padded_dim; ++place) {
    quads[place / 4] += importance[tables->order[place]] / 4;
  }
  tables->widths = FillWidths(quads, format.plane_lines);
  // Of equal quads the later ones may have got the last bits.
  std::sort(tables->widths.begin(), tables->widths.end(), std::greater<>());
  for (int place = 0; place < format.padded_dim; ++place) {
    tables->centres.push_back(static_cast<float>(1 << (tables->widths[place / 4] - 1)));
  }
}

}  // namespace

bool NeedsCalibration(const Side& side) {
  return side.bal || side.cal || side.code == Code::kWater;
}

bool NeedsCalibration(const Recipe& recipe) {
  const auto needs = [](const SidePair& kv) {
    return NeedsCalibration(kv.k) || NeedsCalibration(kv.v);
  };
  return needs(recipe.kv) || std::any_of(recipe.overrides.begin(), recipe.overrides.end(),
                                         [&](const Override& o) { return needs(o.kv); });
}

Recipe WithCalibration(Recipe recipe, const std::string& hash) {
  if (recipe.cal.empty() && NeedsCalibration(recipe)) recipe.cal = hash;
  return recipe;
}

HeadTables KeyTables(const SideFormat& format, const LayerStatistics& layer, int head) {
  HeadTables tables;
  if (format.balance) SetBalance(layer.heads[head], format.padded_dim, &tables);
  if (format.code == Code::kWater) SetWidths(format, layer, layer.heads[head], &tables);
  return tables;
}

Calibration NeutralCalibration(const Shape& shape) {
  Calibration calibration = {.model = shape.name, .source = "none", .tokens = 0, .layers = {}};
  for (const LayerShape& layer : shape.layers) {
    HeadStatistics head;
    for (int c = 0; c < layer.k_dim; ++c) {
      const float place = static_cast<float>(c) / static_cast<float>(layer.k_dim);
      head.k_spread.push_back(std::exp2(-5 * place));
    }
    head.q_rms = head.k_spread;
    LayerStatistics statistics;
    statistics.heads.assign(layer.kv_owner >= 0 ? 0 : layer.kv_heads, head);
    calibration.layers.push_back(std::move(statistics));
  }
  return calibration;
}

}  // namespace shorthand
