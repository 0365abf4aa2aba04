// Budget: what a recipe that is chosen by layer may take, in bits or in memory.
// Thread-safety: values and pure functions.
#ifndef SHORTHAND_TUNE_BUDGET_H_
#define SHORTHAND_TUNE_BUDGET_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "shorthand/recipe.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"
#include "tune/allocation.h"

namespace shorthand {

// Of a code, mean over layers, keys and values, as the presets count them: 4bit has 4.
struct BitBudget {
  double bits = 4;
};

// What a cache of one sequence of `tokens` tokens may allocate.
struct MemoryBudget {
  uint64_t bytes = 0;
  int64_t tokens = 0;
};

using Budget = std::variant<BitBudget, MemoryBudget>;

// What a cache of one sequence of `tokens` tokens allocates. Errors: those of ResolveGroups.
Result<uint64_t> AllocatedBytes(const Shape& shape, const Recipe& recipe, int64_t tokens);

// The last of `allocations`, ascending, that keeps the budget. Errors: kInvalidArgument for bits
// that no rung has; kResourceExhausted if nothing fits into the memory, naming the least that
// would. REQUIRES: allocations of this shape, the first of them on the lowest rungs.
Result<Allocation> LargestWithin(const Shape& shape, const std::vector<Allocation>& allocations,
                                 const Budget& budget);

// "3 bits", or "64.0 MiB for 16k tokens".
std::string BudgetText(const Budget& budget);

}  // namespace shorthand

#endif  // SHORTHAND_TUNE_BUDGET_H_
