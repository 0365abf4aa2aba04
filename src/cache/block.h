// Blocks, entries and sequences: the tables behind a cache.
//
// A block is the pages of the same 128 slots of one layer group, in up to two representations, plus
// the exact rows of the sinks if it is the first. Sequences share blocks by reference count. An
// entry is a block's place in a sequence; entries begin and end at the same ordinals in all groups.
// Thread-safety: one thread at a time; readers of a batch see tables that do not change.
#ifndef SHORTHAND_CACHE_BLOCK_H_
#define SHORTHAND_CACHE_BLOCK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/page_pool.h"
#include "quant/footprint.h"

namespace shorthand {

using BlockId = int32_t;
inline constexpr BlockId kNoBlock = -1;

struct Block {
  int exact = kNoSlot;
  int sealed = kNoSlot;
  int sinks = kNoSlot;
  int references = 0;        // entries that name it
  int exact_references = 0;  // entries that still need its exact rows
};

struct GroupEntry {
  BlockId block = kNoBlock;  // kNoBlock: left the window
  bool holds_exact = false;
};

// One group's table of a sequence. Entries before the two marks hold nothing any more: no exact
// rows before `first_exact` (an all-sink first page excepted), no block before `first_held`.
struct GroupTable {
  std::vector<GroupEntry> entries;
  int first_exact = 0;
  int first_held = 0;
};

struct Entry {
  int64_t start = 0;  // ordinal of its first token
  int count = 0;      // tokens in it
  int64_t end() const { return start + count; }
};

struct Sequence {
  std::vector<Entry> entries;
  std::vector<GroupTable> groups;  // [group]
  int64_t tokens() const { return entries.empty() ? 0 : entries.back().end(); }
};

// The blocks and page pools of one layer group.
class GroupStore {
 public:
  GroupStore(LayerGroup group, Arena* arena);

  const LayerGroup& group() const { return group_; }
  PagePool& exact() { return exact_; }
  PagePool& sealed() { return *sealed_; }
  PagePool& sinks() { return *sinks_; }
  const PagePool& exact() const { return exact_; }
  const PagePool& sealed() const { return *sealed_; }
  const PagePool& sinks() const { return *sinks_; }
  bool has_sealed() const { return sealed_ != nullptr; }
  bool has_sinks() const { return sinks_ != nullptr; }

  Block& block(BlockId id) { return blocks_[id]; }
  const Block& block(BlockId id) const { return blocks_[id]; }

  // A block with an exact slot, one reference and one exact reference. REQUIRES: reserved.
  BlockId TakeBlock();
  // Gives the block a sealed slot, and a sinks slot if it is a sequence's first. REQUIRES:
  // reserved.
  void TakeSealed(BlockId id, bool first);
  void FreeSealed(BlockId id);

  void Share(const GroupEntry& entry);
  void ReleaseExact(GroupEntry& entry);
  void ReleaseBlock(GroupEntry& entry);  // its exact rows too

  // Copies the first `rows` exact rows of `from`, or of its sinks if it has no exact rows any more,
  // into the exact slot of `to`.
  void CopyExactRows(BlockId from, BlockId to, int rows);

  uint64_t stored_bytes() const;

 private:
  LayerGroup group_;
  PagePool exact_;
  std::unique_ptr<PagePool> sealed_;  // null if never sealed
  std::unique_ptr<PagePool> sinks_;   // null without sinks
  std::vector<Block> blocks_;
  std::vector<BlockId> free_blocks_;
};

}  // namespace shorthand

#endif  // SHORTHAND_CACHE_BLOCK_H_
