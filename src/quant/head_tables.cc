#include "quant/head_tables.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/half.h"
#include "quant/groups.h"
#include "quant/learn_levels.h"
#include "quant/levels.h"
#include "quant/promote.h"
#include "quant/rope_pairs.h"
#include "quant/water_fill.h"

namespace shorthand {
namespace {

// Spreads and magnitudes below these count as these, so that no balance is infinite or zero.
constexpr float kLeastSpread = 1e-5f;
constexpr float kLeastMagnitude = 1e-4f;

// The head's keys as a side finds them.
const KeyRange& KeysOf(const SideFormat& format, const HeadStatistics& head) {
  return format.pre ? head.keys_before_rope : head.keys;
}

void SetMean(const SideFormat& format, const HeadStatistics& head, HeadTables* tables) {
  tables->mean.assign(format.padded_dim, 0.0f);
  const std::vector<float>& mean = KeysOf(format, head).mean;
  std::transform(mean.begin(), mean.end(), tables->mean.begin(), RoundToFiniteF16);
}

// The largest magnitudes that the text's keys have in a channel, less the head's mean.
std::vector<float> LargestKeys(const SideFormat& format, const HeadStatistics& head,
                               const HeadTables& tables) {
  const KeyRange& keys = KeysOf(format, head);
  std::vector<float> largest;
  for (int c = 0; c < format.dim; ++c) {
    const float mean = format.head_mean ? tables.mean[c] : 0;
    largest.push_back(std::max(std::fabs(keys.min[c] - mean), std::fabs(keys.max[c] - mean)));
  }
  return largest;
}

// The root of a channel's largest magnitude, the same for the channels that RoPE rotates with each
// other.
std::vector<float> SmoothFactors(const SideFormat& format, const LayerStatistics& layer, int head,
                                 const HeadTables& tables) {
  const std::vector<float> largest = LargestKeys(format, layer.heads[head], tables);
  std::vector<float> factors;
  for (int c = 0; c < format.dim; ++c) {
    const float m = std::max(largest[c], largest[RopePartner(layer, c)]);
    factors.push_back(m < kLeastMagnitude ? 1 : std::sqrt(m));
  }
  return factors;
}

std::vector<float> BalanceFactors(const HeadStatistics& head) {
  std::vector<float> factors;
  for (size_t c = 0; c < head.k_spread.size(); ++c) {
    const float ratio =
        std::max(head.k_spread[c], kLeastSpread) / std::max(head.q_rms[c], kLeastMagnitude);
    factors.push_back(std::sqrt(ratio));
  }
  return factors;
}

void SetBalance(std::vector<float> factors, int padded_dim, HeadTables* tables) {
  factors.resize(padded_dim, 1.0f);
  for (const float factor : factors) tables->inverse_balance.push_back(1 / factor);
  tables->balance = std::move(factors);
}

// No value that the text showed can be larger in the space of the codes: a Hadamard transform makes
// nothing larger than the norm of its block.
float LargestCoded(const SideFormat& format, const HeadStatistics& head, const HeadTables& tables) {
  std::vector<float> largest(format.dim, head.v_max);
  if (format.kind == SideKind::kKey) largest = LargestKeys(format, head, tables);
  for (int c = 0; format.balance && c < format.dim; ++c) largest[c] *= tables.inverse_balance[c];
  if (format.hadamard == 0) return *std::max_element(largest.begin(), largest.end());
  double most = 0;
  for (auto block = largest.begin(); block != largest.end(); block += format.hadamard) {
    most = std::max(most, std::inner_product(block, block + format.hadamard, block, 0.0));
  }
  return static_cast<float>(std::sqrt(most));
}

void SetPageScale(const SideFormat& format, const HeadStatistics& head, HeadTables* tables) {
  const float largest = std::max(LargestCoded(format, head, *tables), kLeastMagnitude);
  tables->page_scale = largest / LargestFloat8(format.code);
}

// (s q)^2 of every channel of the space of codes, s and q averaged over RoPE's pairs. A Hadamard
// transform spreads the channels of a block evenly; a balance cancels out.
std::vector<double> ImportanceOf(const SideFormat& format, const LayerStatistics& layer,
                                 const HeadStatistics& head) {
  std::vector<double> importance = PairSquares(layer, head.k_spread);
  const std::vector<double> query = PairSquares(layer, head.q_rms);
  for (size_t c = 0; c < query.size(); ++c) importance[c] *= query[c];
  for (int c = 0; format.hadamard > 0 && c < format.dim; c += format.hadamard) {
    const auto block = importance.begin() + c;
    const double mean = std::accumulate(block, block + format.hadamard, 0.0) / format.hadamard;
    std::fill_n(block, format.hadamard, mean);
  }
  importance.resize(format.padded_dim, 0.0);
  return importance;
}

// The widths of quads whose importance is given, falling.
std::vector<uint8_t> WidthsOf(const SideFormat& format, const std::vector<double>& quads) {
  if (format.promoted > 0) return PromotedWidths(format);
  std::vector<uint8_t> widths = FillWidths(quads, format.plane_lines);
  // Of equal quads the later ones may have got the last bits.
  std::sort(widths.begin(), widths.end(), std::greater<>());
  return widths;
}

// The order puts the channels that matter most first; padding comes last.
void SetPlanes(const SideFormat& format, const LayerStatistics& layer, const HeadStatistics& head,
               HeadTables* tables) {
  const std::vector<double> importance = ImportanceOf(format, layer, head);
  tables->order.resize(format.padded_dim);
  std::iota(tables->order.begin(), tables->order.end(), uint16_t{0});
  std::stable_sort(tables->order.begin(), tables->order.begin() + format.dim,
                   [&](uint16_t a, uint16_t b) { return importance[a] > importance[b]; });
  std::vector<double> quads(format.padded_dim / 4, 0.0);
  for (int place = 0; place < format.padded_dim; ++place) {
    quads[place / 4] += importance[tables->order[place]] / 4;
  }
  tables->widths = WidthsOf(format, quads);
  for (int place = 0; place < format.padded_dim; ++place) {
    tables->centre_bytes.push_back(static_cast<uint8_t>(1 << (tables->widths[place / 4] - 1)));
    tables->centres.push_back(tables->centre_bytes.back());
  }
}

// As integers, so that kernels can use them as signed bytes.
void SetLevels(const std::vector<float>& learned, HeadTables* tables) {
  constexpr float kMostLevel = 63;
  const float largest = std::max(std::fabs(learned.front()), std::fabs(learned.back()));
  for (const float level : learned) {
    tables->levels.push_back(static_cast<float>(RoundToInt(kMostLevel * level / largest)));
  }
  tables->step = largest / kMostLevel;
}

void SetRanges(const SideFormat& format, const HeadStatistics& head, HeadTables* tables) {
  tables->low = KeysOf(format, head).low;
  tables->high = KeysOf(format, head).high;
  for (int c = 0; format.balance && c < format.dim; ++c) {
    tables->low[c] *= tables->inverse_balance[c];
    tables->high[c] *= tables->inverse_balance[c];
  }
  tables->low.resize(format.padded_dim, 0.0f);
  tables->high.resize(format.padded_dim, 0.0f);
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

HeadTables TablesOf(const SideFormat& format, const LayerStatistics& layer, int head) {
  HeadTables tables;
  if (format.exact) return tables;
  const HeadStatistics& statistics = layer.heads[head];
  if (format.head_mean) SetMean(format, statistics, &tables);
  if (format.balance) {
    SetBalance(format.tunes.smooth ? SmoothFactors(format, layer, head, tables)
                                   : BalanceFactors(statistics),
               format.padded_dim, &tables);
  }
  if (format.scale_type == ScaleType::kPage && format.tunes.cal) {
    SetPageScale(format, statistics, &tables);
  }
  if (format.head_levels) {
    const bool keys = format.kind == SideKind::kKey;
    SetLevels((keys ? layer.k_levels : layer.v_levels)[format.bits - 2], &tables);
  }
  if (format.head_range) SetRanges(format, statistics, &tables);
  if (format.planes() && !format.promotes_by_page()) SetPlanes(format, layer, statistics, &tables);
  return tables;
}

const float* LevelsOf(const SideFormat& format, const HeadTables& tables) {
  return format.head_levels ? tables.levels.data() : format.codec->levels;
}

float GivenScale(const SideFormat& format, const HeadTables& tables) {
  return format.tunes.one ? 1.0f : tables.page_scale;
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
    head.v_max = 4;
    KeyRange& keys = head.keys;
    keys.mean.assign(layer.k_dim, 0.0f);
    for (const float spread : head.k_spread) {
      keys.min.push_back(-4 * spread);
      keys.max.push_back(4 * spread);
    }
    keys.low = keys.min;
    keys.high = keys.max;
    head.keys_before_rope = keys;
    LayerStatistics statistics;
    statistics.heads.assign(layer.kv_owner >= 0 ? 0 : layer.kv_heads, head);
    statistics.k_levels = statistics.v_levels = LevelLearner().AllLevels();
    calibration.layers.push_back(std::move(statistics));
  }
  return calibration;
}

}  // namespace shorthand
