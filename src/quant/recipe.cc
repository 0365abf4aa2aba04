#include "shorthand/recipe.h"

#include "quant/recipe_names.h"

namespace shorthand {
namespace {

bool Covers(const Override& override, int layer, int layers, bool windowed) {
  if (override.set == LayerSet::kWindowed) return windowed;
  if (override.set == LayerSet::kFull) return !windowed;
  for (const LayerSpan& span : override.spans) {
    const int first = span.first < 0 ? span.first + layers : span.first;
    const int last = span.last < 0 ? span.last + layers : span.last;
    if (first <= layer && layer <= last) return true;
  }
  return false;
}

}  // namespace

bool IsExact(Code code) { return code == Code::kF32 || code == Code::kF16 || code == Code::kBf16; }

bool IsBlock(Code code) { return code >= Code::kQ8_0 && code <= Code::kNvfp4; }

bool IsFloat8(Code code) { return code == Code::kE4m3 || code == Code::kE5m2; }

bool UsesCal(const Side& side) {
  const bool page_scale = IsFloat8(side.code) && side.axis == Axis::kPage;
  return page_scale || side.code == Code::kNuq || side.mu || side.smooth || side.hi != Decimal{};
}

const SidePair& Recipe::ForLayer(int layer, int layers, bool windowed) const {
  for (auto it = overrides.rbegin(); it != overrides.rend(); ++it) {
    if (Covers(*it, layer, layers, windowed)) return it->kv;
  }
  return kv;
}

}  // namespace shorthand
