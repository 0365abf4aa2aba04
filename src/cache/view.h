// The view function: which representation of an entry a query sees.
//
// A function of the entry's index, the query's and the recipe only. Prefill, decode, sealing and
// the reference all ask here, so chunking, forks and restores cannot change what a query sees.
// Thread-safety: pure function.
#ifndef SHORTHAND_CACHE_VIEW_H_
#define SHORTHAND_CACHE_VIEW_H_

#include <cstdint>

#include "quant/footprint.h"

namespace shorthand {

enum class View : uint8_t { kExact, kSealed };

// What a query in entry `query_entry` sees of entry `entry`.
// REQUIRES: 0 <= entry <= query_entry.
inline View ViewOf(const LayerGroup& group, int64_t entry, int64_t query_entry) {
  const bool all_sinks = entry == 0 && group.sink_tokens == kPageTokens;
  return group.never_sealed || all_sinks || entry >= query_entry - group.recent_pages
             ? View::kExact
             : View::kSealed;
}

}  // namespace shorthand

#endif  // SHORTHAND_CACHE_VIEW_H_
