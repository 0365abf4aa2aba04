#include "quant/footprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shorthand {
namespace {

constexpr size_t kExtentTargetBytes = 64 * 1024;

// Floor division for a positive divisor, never below zero.
int64_t PagesBefore(int64_t tokens) { return tokens <= 0 ? 0 : tokens / kPageTokens; }

// The first entry of an uncut sequence whose exact rows, or any rows at all, are still held.
int64_t FirstExact(const LayerGroup& group, int64_t tokens) {
  return PagesBefore(tokens - group.recent_pages * kPageTokens - kSlackTokens);
}
int64_t FirstInWindow(const LayerGroup& group, int64_t tokens) {
  return group.window == 0 ? 0 : PagesBefore(tokens - kSlackTokens + 1 - group.window);
}

int64_t TokensInView(const LayerGroup& group, int64_t tokens) {
  return group.window == 0 ? tokens : std::min<int64_t>(tokens, group.window);
}

// Bits of one token of one KV head, times 128: exact sides hold their elements, others a page's
// metadata and codes.
uint64_t LogicalPageBits(const LayerGroup& group, const LayerFormat& layer) {
  auto side_bits = [&](const SideFormat& sealed, const SideFormat& exact) -> uint64_t {
    if (group.never_sealed || sealed.exact) {
      return static_cast<uint64_t>(kPageTokens) * exact.dim * exact.bits;
    }
    return 8 * (sealed.meta_bytes() + sealed.codes_bytes());
  };
  return side_bits(layer.k, layer.exact_k) + side_bits(layer.v, layer.exact_v);
}

Result<SideFormat> ResolveValueSide(const Side& side, int dim) {
  if (dim > 0) return ResolveSide(side, SideKind::kValue, dim);
  SideFormat none;  // V is a part of K
  none.kind = SideKind::kValue;
  none.exact = true;
  return none;
}

Result<LayerFormat> ResolveLayer(const LayerShape& shape, int index, const SidePair& kv) {
  auto k = ResolveSide(kv.k, SideKind::kKey, shape.k_dim);
  if (!k.ok()) {
    return Status(k.status().code(),
                  fmt::format("keys of layer {}: {}", index, k.status().message()));
  }
  auto v = ResolveValueSide(kv.v, shape.v_dim);
  if (!v.ok()) {
    return Status(v.status().code(),
                  fmt::format("values of layer {}: {}", index, v.status().message()));
  }
  LayerFormat layer;
  layer.layer = index;
  layer.kv_heads = shape.kv_heads;
  layer.k = *k;
  if (layer.k.pre) layer.k.rope = shape.rope;
  layer.v = *v;
  layer.exact_k = ExactFormatOf(*k);
  layer.exact_v = ExactFormatOf(*v);
  layer.exact = LayoutOf(layer.exact_k, layer.exact_v);
  layer.k_tables.resize(shape.kv_heads);
  layer.v_tables.resize(shape.kv_heads);
  return layer;
}

// A sealed page of entry e is first seen from entry e + recent_pages + 1.
bool WindowReachesSealed(int window, int recent_pages) {
  return window == 0 || window > recent_pages * kPageTokens + 1;
}

bool SameLife(const LayerGroup& a, const LayerGroup& b) {
  return a.window == b.window && a.never_sealed == b.never_sealed;
}

}  // namespace

Result<std::vector<LayerGroup>> ResolveGroups(const Shape& shape, const Recipe& recipe) {
  std::vector<LayerGroup> groups;
  const int layers = static_cast<int>(shape.layers.size());
  for (int i = 0; i < layers; ++i) {
    const LayerShape& layer_shape = shape.layers[i];
    if (layer_shape.kv_heads == 0 || layer_shape.kv_owner >= 0) continue;
    const SidePair& kv = recipe.ForLayer(i, layers, layer_shape.window > 0);
    auto layer = ResolveLayer(layer_shape, i, kv);
    if (!layer.ok()) return layer.status();

    LayerGroup group;
    group.window = layer_shape.window;
    group.sink_tokens = layer_shape.window == 0 ? recipe.sink_tokens : 0;
    group.recent_pages = recipe.recent_pages();
    group.never_sealed = (layer->k.exact && layer->v.exact) ||
                         !WindowReachesSealed(group.window, group.recent_pages);
    if (!group.never_sealed) layer->sealed = LayoutOf(layer->k, layer->v);

    auto it = std::find_if(groups.begin(), groups.end(),
                           [&](const LayerGroup& g) { return SameLife(g, group); });
    if (it == groups.end()) it = groups.insert(groups.end(), group);
    it->layers.push_back(*std::move(layer));
  }
  if (groups.empty()) {
    return InvalidArgument(fmt::format("{} has no layer that keeps keys and values",
                                       shape.name.empty() ? std::string("the model") : shape.name));
  }
  return groups;
}

Status UseCalibration(const Shape& shape, const Calibration* calibration, Recipe* recipe,
                      std::vector<LayerGroup>* groups) {
  if (!NeedsCalibration(*recipe)) return OkStatus();
  if (calibration == nullptr) {
    return FailedPrecondition(
        fmt::format("{} needs statistics of the model's keys, values and queries; pass a "
                    "calibration of the model",
                    recipe->ToString()));
  }
  const std::string hash = calibration->Hash();
  *recipe = WithCalibration(std::move(*recipe), hash);
  if (recipe->cal != hash) {
    return FailedPrecondition(
        fmt::format("the recipe names calibration {}, but {} was given", recipe->cal, hash));
  }
  if (Status status = calibration->CheckFits(shape); !status.ok()) return status;
  for (LayerGroup& group : *groups) {
    for (LayerFormat& layer : group.layers) {
      const LayerStatistics& statistics = calibration->layers[layer.layer];
      for (int head = 0; head < layer.kv_heads; ++head) {
        layer.k_tables[head] = TablesOf(layer.k, statistics, head);
        layer.v_tables[head] = TablesOf(layer.v, statistics, head);
      }
    }
  }
  return OkStatus();
}

bool StillInWindow(const LayerGroup& group, int64_t end, int64_t tokens) {
  return group.window == 0 || tokens - kSlackTokens - (end - 1) < group.window;
}

bool ExactStillNeeded(const LayerGroup& group, int64_t end, int64_t tokens) {
  if (group.never_sealed) return StillInWindow(group, end, tokens);
  if (group.sink_tokens == kPageTokens && end <= kPageTokens) return true;
  return tokens < end + group.recent_pages * kPageTokens + kSlackTokens;
}

int ExtentPages(size_t page_bytes) {
  return static_cast<int>((kExtentTargetBytes + page_bytes - 1) / page_bytes);
}

// The cache line behind the pages staggers extents, so that pages whose size is a power of two do
// not all fall on the same cache sets.
size_t ExtentBytes(size_t page_bytes, size_t descriptor_bytes) {
  return ExtentPages(page_bytes) * (page_bytes + descriptor_bytes) + kLineBytes;
}

size_t SinkBytes(const LayerGroup& group, const LayerFormat& layer) {
  const size_t rows = (group.sink_tokens + 15) / 16 * 16;
  const size_t row_bits = static_cast<size_t>(layer.exact_k.padded_dim) * layer.exact_k.bits +
                          static_cast<size_t>(layer.exact_v.padded_dim) * layer.exact_v.bits;
  return rows * row_bits / 8;
}

PageCounts PagesHeld(const LayerGroup& group, int64_t tokens) {
  const int64_t touched = (tokens + kPageTokens - 1) / kPageTokens;
  const int64_t complete = tokens / kPageTokens;
  const int64_t in_window = FirstInWindow(group, tokens);
  PageCounts held;
  if (group.never_sealed) {
    held.exact = touched - in_window;
    return held;
  }
  const int64_t first_exact = std::max(FirstExact(group, tokens), in_window);
  const bool first_page_exact = group.sink_tokens == kPageTokens && complete > 0;
  held.exact = touched - first_exact + (first_page_exact && first_exact > 0 ? 1 : 0);
  held.sealed = complete - in_window - (first_page_exact ? 1 : 0);
  held.sinks = group.sink_tokens > 0 && !first_page_exact && complete > 0 ? 1 : 0;
  return held;
}

PageCounts PagesAtPeak(const LayerGroup& group, int64_t tokens, int64_t users) {
  PageCounts peak;
  if (users == 0) return peak;
  // Pages are taken only by the tokens that open or complete one.
  auto visit = [&](int64_t t) {
    const PageCounts before = PagesHeld(group, t - 1);
    const PageCounts after = PagesHeld(group, t);
    const bool opens = (t - 1) % kPageTokens == 0;
    const bool completes = t % kPageTokens == 0 && !group.never_sealed &&
                           !(group.sink_tokens == kPageTokens && t == kPageTokens);
    auto raise = [&](int64_t& most, int64_t b, int64_t a, bool takes) {
      most = std::max(most, b + (takes ? 1 : 0) + (users - 1) * std::max(a, b));
    };
    raise(peak.exact, before.exact, after.exact, opens);
    raise(peak.sealed, before.sealed, after.sealed, completes);
  };
  for (int64_t t = 1; t <= tokens; t += kPageTokens) visit(t);
  for (int64_t t = kPageTokens; t <= tokens; t += kPageTokens) visit(t);
  peak.sinks = users * PagesHeld(group, tokens).sinks;
  return peak;
}

uint64_t LogicalBytes(const std::vector<LayerGroup>& groups, int64_t tokens) {
  uint64_t bits_by_page = 0;
  for (const LayerGroup& group : groups) {
    for (const LayerFormat& layer : group.layers) {
      bits_by_page += TokensInView(group, tokens) * layer.kv_heads * LogicalPageBits(group, layer);
    }
  }
  constexpr uint64_t kBitsPerByte = 8 * kPageTokens;
  return (bits_by_page + kBitsPerByte - 1) / kBitsPerByte;
}

uint64_t F16Bytes(const std::vector<LayerGroup>& groups, int64_t tokens) {
  uint64_t bytes = 0;
  for (const LayerGroup& group : groups) {
    for (const LayerFormat& layer : group.layers) {
      bytes += static_cast<uint64_t>(TokensInView(group, tokens)) * layer.kv_heads *
               (layer.k.dim + layer.v.dim) * 2;
    }
  }
  return bytes;
}

Footprint FootprintOf(const std::vector<LayerGroup>& groups, int64_t tokens, int64_t users) {
  Footprint footprint;
  footprint.logical_bytes = LogicalBytes(groups, tokens) * users;
  footprint.f16_bytes = F16Bytes(groups, tokens) * users;
  for (const LayerGroup& group : groups) {
    const PageCounts held = PagesHeld(group, tokens);
    const PageCounts peak = PagesAtPeak(group, tokens, users);
    auto count = [&](size_t page_bytes, size_t descriptor_bytes, int64_t pages, int64_t most,
                     int heads) {
      if (page_bytes == 0) return;
      footprint.stored_bytes += users * pages * heads * (page_bytes + descriptor_bytes);
      const int64_t extents = (most + ExtentPages(page_bytes) - 1) / ExtentPages(page_bytes);
      footprint.allocated_bytes += extents * heads * ExtentBytes(page_bytes, descriptor_bytes);
    };
    for (const LayerFormat& layer : group.layers) {
      count(layer.exact.bytes, 0, held.exact, peak.exact, layer.kv_heads);
      count(layer.sealed.bytes, sizeof(PageDescriptor), held.sealed, peak.sealed, layer.kv_heads);
      count(SinkBytes(group, layer), 0, held.sinks, peak.sinks, layer.kv_heads);
    }
  }
  if (footprint.f16_bytes > 0) {
    const double f16 = static_cast<double>(footprint.f16_bytes);
    footprint.bits = 16 * static_cast<double>(footprint.logical_bytes) / f16;
    footprint.true_bits = 16 * static_cast<double>(footprint.stored_bytes) / f16;
  }
  return footprint;
}

}  // namespace shorthand
