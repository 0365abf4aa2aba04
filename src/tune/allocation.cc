#include "tune/allocation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tune/rungs.h"

namespace shorthand {
namespace {

constexpr int kSinkTokens = 4;

// One side of one layer on its way up.
struct Climber {
  int layer;
  int LayerRungs::* side;
  const std::vector<Rung>* rungs;
  const std::vector<double>* damage;
  double values;  // of a token
  int rung = 0;

  // Where the next bits prevent most, and how much for each bit of a token; nowhere at the top.
  struct Next {
    int rung = 0;
    double gain = -1;
  };
  Next Best() const {
    Next best;
    for (int to = rung + 1; to < static_cast<int>(rungs->size()); ++to) {
      const double gain = ((*damage)[rung] - (*damage)[to]) / Bits(to);
      if (gain > best.gain) best = {to, gain};
    }
    return best;
  }

  // From the present rung to another.
  double Bits(int to) const { return values * ((*rungs)[to].bits - (*rungs)[rung].bits); }
};

std::vector<Climber> ClimbersOf(const Shape& shape, const Damage& damage) {
  std::vector<Climber> climbers;
  for (int l = 0; l < static_cast<int>(shape.layers.size()); ++l) {
    if (damage.k[l].empty()) continue;
    const double heads = shape.layers[l].kv_heads;
    climbers.push_back(
        {l, &LayerRungs::k, &KeyRungs(), &damage.k[l], heads * shape.layers[l].k_dim});
    climbers.push_back(
        {l, &LayerRungs::v, &ValueRungs(), &damage.v[l], heads * shape.layers[l].v_dim});
  }
  return climbers;
}

}  // namespace

std::vector<Allocation> AllocationsByBits(const Shape& shape, const Damage& damage) {
  std::vector<Climber> climbers = ClimbersOf(shape, damage);
  Allocation now;
  now.layers.resize(shape.layers.size());
  double values = 0, bits = 0;
  for (const Climber& climber : climbers) {
    values += climber.values;
    bits += climber.values * (*climber.rungs)[0].bits;
    now.kl += (*climber.damage)[0];
  }
  now.bits = values > 0 ? bits / values : 0;
  std::vector<Allocation> allocations = {now};
  while (true) {
    Climber* chosen = nullptr;
    Climber::Next step;
    for (Climber& climber : climbers) {
      const Climber::Next next = climber.Best();
      if (next.rung > 0 && next.gain > step.gain) step = next, chosen = &climber;
    }
    if (chosen == nullptr) return allocations;
    bits += chosen->Bits(step.rung);
    now.kl -= (*chosen->damage)[chosen->rung] - (*chosen->damage)[step.rung];
    now.bits = bits / values;
    now.layers[chosen->layer].*chosen->side = chosen->rung = step.rung;
    allocations.push_back(now);
  }
}

std::vector<Allocation> AllocationsAlike(const Damage& damage) {
  std::vector<Allocation> allocations;
  LayerRungs alike;
  for (; alike.k < static_cast<int>(KeyRungs().size()); ++alike.k) {
    const double bits = KeyRungs()[alike.k].bits;
    while (alike.v + 1 < static_cast<int>(ValueRungs().size()) &&
           ValueRungs()[alike.v + 1].bits <= bits) {
      ++alike.v;
    }
    Allocation& allocation = allocations.emplace_back();
    allocation.bits = (bits + ValueRungs()[alike.v].bits) / 2;
    for (size_t l = 0; l < damage.k.size(); ++l) {
      allocation.layers.push_back(alike);
      if (!damage.k[l].empty()) allocation.kl += damage.k[l][alike.k] + damage.v[l][alike.v];
    }
  }
  return allocations;
}

Recipe RecipeOf(const Allocation& allocation) {
  std::map<std::pair<int, int>, std::vector<int>> layers_of;  // by rungs
  for (int l = 0; l < static_cast<int>(allocation.layers.size()); ++l) {
    layers_of[{allocation.layers[l].k, allocation.layers[l].v}].push_back(l);
  }
  const auto most = std::max_element(
      layers_of.begin(), layers_of.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const auto sides = [](const std::pair<int, int>& rungs) {
    return SidePair{KeyRungs()[rungs.first].side, ValueRungs()[rungs.second].side};
  };
  Recipe recipe;
  recipe.kv = sides(most->first);
  recipe.sink_tokens = kSinkTokens;
  recipe.recent_tokens = allocation.bits < kBitsWithoutRecent ? kPageTokens : 0;
  for (auto it = layers_of.begin(); it != layers_of.end(); ++it) {
    if (it == most) continue;
    Override other = {.set = LayerSet::kSpans, .spans = {}, .kv = sides(it->first)};
    for (const int layer : it->second) {
      if (!other.spans.empty() && other.spans.back().last == layer - 1) {
        other.spans.back().last = layer;
      } else {
        other.spans.push_back({layer, layer});
      }
    }
    recipe.overrides.push_back(std::move(other));
  }
  return recipe;
}

}  // namespace shorthand
