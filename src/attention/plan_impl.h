// AttentionPlanImpl: how a batch's attention is cut into units of work, and the work itself.
//
// The rows of an item are cut into blocks of tokens; pages of a sequence into splits at absolute
// entries. A unit is one block of rows of one KV head over one split (few tokens: decode), or over
// all splits in order (many tokens: prefill). Both join the splits in position order by the same
// operations. Workers take units from a counter; the last to finish a block's splits joins them.
// The splits of a head follow one another, so that its queries are prepared once for several.
// Thread-safety: as AttentionPlan (shorthand/attention.h).
#ifndef SHORTHAND_ATTENTION_PLAN_IMPL_H_
#define SHORTHAND_ATTENTION_PLAN_IMPL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "attention/integer_path.h"
#include "attention/softmax_state.h"
#include "base/aligned_vector.h"
#include "cache/cache_impl.h"
#include "kernels/kernels.h"
#include "shorthand/attention.h"

namespace shorthand {

struct PageBytes;

// Rows of one item, consecutive tokens.
struct RowBlock {
  int item;
  int first_row;  // in the batch
  int tokens;
  int first_split, end_split;
  bool by_split;         // units are single splits
  int first_unit;        // its number, were there one KV head
  size_t first_partial;  // number of its first split among the group's partials

  int units() const { return by_split ? end_split - first_split : 1; }  // of one KV head
};

// How the sealed pages of a layer are read.
struct LayerPaths {
  IntegerPath k;
  IntegerPath v;
  std::vector<KeyPlanes> planes;  // [kv_heads], of keys that have them

  explicit LayerPaths(const LayerFormat& format);
};

struct Unit {
  int block;
  int head;
  int split;  // kAllSplits or one
};
inline constexpr int kAllSplits = -1;

class AttentionPlanImpl {
 public:
  AttentionPlanImpl(BatchImpl* batch, const KernelTable* kernels);

  void Run(const AttentionArgs& args, int worker, int workers);

 private:
  struct GroupPlan {
    std::vector<RowBlock> blocks;
    std::vector<int> unit_blocks;  // the block of each unit, were there one KV head
    size_t partials = 0;           // splits of blocks that are worked on by split
    int partial_tokens = 0;        // the most that one of these blocks has
    size_t partial_floats = 0;     // of the states of one split
    int max_kv_heads = 0;
  };
  // Counters of one layer: the next unit, and the splits finished of each (block, KV head).
  struct Progress {
    std::atomic<int> next{0};
    std::unique_ptr<std::atomic<int>[]> finished;
  };

  void AddBlocks(const LayerGroup& group, int item, GroupPlan* plan);
  // The i-th unit of a layer of `heads` KV heads: blocks outer, splits inner.
  static Unit UnitAt(const GroupPlan& plan, int heads, int i);
  PageBytes FirstPage(int layer, int i) const;

  BatchImpl* batch_;
  const KernelTable* kernels_;
  std::vector<GroupPlan> groups_;
  std::vector<Progress> progress_;  // [layer]
  std::vector<LayerPaths> paths_;   // [layer]
  AlignedArray<float> partials_;    // states of splits, of the layer that runs
};

}  // namespace shorthand

#endif  // SHORTHAND_ATTENTION_PLAN_IMPL_H_
