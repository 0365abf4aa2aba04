// Footprint: what a cache takes, in bytes. The one place that decides it, for planner, allocator,
// command and documents.
//
// Three figures are never mixed up: logical (codes and metadata of all tokens), stored (plus exact
// pages, sinks, padding and descriptors of the pages in use), allocated (whole extents taken from
// the system). docs/architecture.md has the life of a page.
//
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_FOOTPRINT_H_
#define SHORTHAND_QUANT_FOOTPRINT_H_

#include <cstdint>
#include <vector>

#include "quant/page.h"
#include "shorthand/recipe.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

// Tokens beyond a page or window for which exact rows are still held, so that drafts of up to this
// many tokens can be taken back.
inline constexpr int kSlackTokens = 32;

// How one layer is stored.
struct LayerFormat {
  int layer = 0;
  int kv_heads = 0;
  SideFormat k, v;                             // as sealed
  std::vector<HeadTables> k_tables, v_tables;  // [kv_heads]; made by UseCalibration
  SideFormat exact_k, exact_v;                 // as written
  PageLayout sealed;                           // bytes 0 if the layer is never sealed
  PageLayout exact;
};

// Layers with the same life of keys and values.
struct LayerGroup {
  int window = 0;       // tokens; 0: full attention
  int sink_tokens = 0;  // 0 in windowed groups
  int recent_pages = 0;
  bool never_sealed = false;  // all sides exact, or no sealed page ever comes into view
  std::vector<LayerFormat> layers;
};

// Resolves `recipe` for every layer of `shape` that owns keys and values.
// Errors: those of ResolveSide with the layer named; a head dim that is not supported.
Result<std::vector<LayerGroup>> ResolveGroups(const Shape& shape, const Recipe& recipe);

// If `recipe` needs a calibration, gives its formats their tables and the recipe the calibration's
// name. `calibration`: null if there is none.
// Errors: kFailedPrecondition if there is none, or another than the recipe names; kInvalidArgument
// if it does not fit the shape.
Status UseCalibration(const Shape& shape, const Calibration* calibration, Recipe* recipe,
                      std::vector<LayerGroup>* groups);

// The life of a page, as functions of positions and recipe only. `end` is the ordinal after the
// entry's last token, `tokens` the length of the sequence.
bool ExactStillNeeded(const LayerGroup& group, int64_t end, int64_t tokens);
bool StillInWindow(const LayerGroup& group, int64_t end, int64_t tokens);

// An extent: pages of one layer and KV head that lie adjacent.
int ExtentPages(size_t page_bytes);
size_t ExtentBytes(size_t page_bytes, size_t descriptor_bytes);
// Bytes of the exact rows of a group's sinks in one layer and KV head, padded to 16 tokens.
size_t SinkBytes(const LayerGroup& group, const LayerFormat& layer);

// Pages that a group holds, of each kind.
struct PageCounts {
  int64_t exact = 0;
  int64_t sealed = 0;
  int64_t sinks = 0;
};
// Of one sequence of `tokens` tokens between batches.
PageCounts PagesHeld(const LayerGroup& group, int64_t tokens);
// The most that were ever held at once by `users` sequences that grew in turn, one token at a time,
// to `tokens` tokens each.
PageCounts PagesAtPeak(const LayerGroup& group, int64_t tokens, int64_t users);

struct Footprint {
  uint64_t logical_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t allocated_bytes = 0;
  uint64_t f16_bytes = 0;  // the same tokens in f16, unpadded: the seed's formula
  double bits = 0;         // logical bits per value
  double true_bits = 0;    // 16 * stored / f16
};
// `users` sequences of `tokens` tokens each, appended singly in turn.
Footprint FootprintOf(const std::vector<LayerGroup>& groups, int64_t tokens, int64_t users);

// The parts of it that a running cache reports for one sequence.
uint64_t LogicalBytes(const std::vector<LayerGroup>& groups, int64_t tokens);
uint64_t F16Bytes(const std::vector<LayerGroup>& groups, int64_t tokens);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_FOOTPRINT_H_
