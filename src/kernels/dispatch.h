// How the kernel table in use is chosen.
// Thread-safety: pure functions.
#ifndef SHORTHAND_KERNELS_DISPATCH_H_
#define SHORTHAND_KERNELS_DISPATCH_H_

#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace shorthand {

struct TargetChoice {
  const KernelTable* table = nullptr;  // null: the wanted one cannot be used
  std::string reason;                  // one sentence
};

// The first supported entry, or the one named `wanted` (null or empty: no wish).
// REQUIRES: `entries` is ordered best first and its last entry is supported.
TargetChoice ChooseTarget(std::span<const TargetEntry> entries, const char* wanted);

// The compiled-in targets that this CPU can run, best first; scalar is the last.
std::vector<const KernelTable*> RunnableTargets();

}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_DISPATCH_H_
