#include "tune/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "plan/units.h"
#include "quant/footprint.h"
#include "tune/rungs.h"

namespace shorthand {
namespace {

Result<Allocation> Largest(const std::vector<Allocation>& allocations, const BitBudget& budget) {
  const double least = KeyRungs().front().bits, most = KeyRungs().back().bits;
  if (!(budget.bits >= least && budget.bits <= most)) {
    return InvalidArgument(
        fmt::format("{} bits; recipes are chosen for {} to {}", budget.bits, least, most));
  }
  const auto after = std::upper_bound(
      allocations.begin(), allocations.end(), budget.bits,
      [](double bits, const Allocation& allocation) { return bits < allocation.bits; });
  return *std::prev(after);
}

Result<Allocation> Largest(const Shape& shape, const std::vector<Allocation>& allocations,
                           const MemoryBudget& budget) {
  uint64_t least = UINT64_MAX;
  for (auto it = allocations.rbegin(); it != allocations.rend(); ++it) {
    const auto bytes = AllocatedBytes(shape, RecipeOf(*it), budget.tokens);
    if (!bytes.ok()) return bytes.status();
    if (*bytes <= budget.bytes) return *it;
    least = std::min(least, *bytes);
  }
  return ResourceExhausted(
      fmt::format("{}: the smallest recipe needs {}", BudgetText(budget), FormatSize(least)));
}

}  // namespace

Result<uint64_t> AllocatedBytes(const Shape& shape, const Recipe& recipe, int64_t tokens) {
  const auto groups = ResolveGroups(shape, recipe);
  if (!groups.ok()) return groups.status();
  return FootprintOf(*groups, tokens, 1).allocated_bytes;
}

Result<Allocation> LargestWithin(const Shape& shape, const std::vector<Allocation>& allocations,
                                 const Budget& budget) {
  if (const auto* bits = std::get_if<BitBudget>(&budget)) return Largest(allocations, *bits);
  return Largest(shape, allocations, std::get<MemoryBudget>(budget));
}

std::string BudgetText(const Budget& budget) {
  if (const auto* bits = std::get_if<BitBudget>(&budget)) return fmt::format("{} bits", bits->bits);
  const auto& memory = std::get<MemoryBudget>(budget);
  return fmt::format("{} for {} tokens", FormatSize(memory.bytes), FormatTokens(memory.tokens));
}

}  // namespace shorthand
