#include "cache/block.h"

#include <cstring>

#include "cache/exact_rows.h"

namespace shorthand {
namespace {

template <typename SizeOf>
std::vector<PagePool::Stream> Streams(const LayerGroup& group, SizeOf size_of) {
  std::vector<PagePool::Stream> streams;
  for (const LayerFormat& layer : group.layers) streams.push_back({size_of(layer), layer.kv_heads});
  return streams;
}

}  // namespace

GroupStore::GroupStore(LayerGroup group, Arena* arena)
    : group_(std::move(group)),
      exact_(arena, Streams(group_, [](const LayerFormat& l) { return l.exact.bytes; }), 0) {
  if (group_.never_sealed) return;
  sealed_ = std::make_unique<PagePool>(
      arena, Streams(group_, [](const LayerFormat& l) { return l.sealed.bytes; }),
      sizeof(PageDescriptor));
  if (group_.sink_tokens == 0 || group_.sink_tokens == kPageTokens) return;
  sinks_ = std::make_unique<PagePool>(
      arena, Streams(group_, [this](const LayerFormat& l) { return SinkBytes(group_, l); }), 0);
}

BlockId GroupStore::TakeBlock() {
  BlockId id;
  if (free_blocks_.empty()) {
    id = static_cast<BlockId>(blocks_.size());
    blocks_.emplace_back();
  } else {
    id = free_blocks_.back();
    free_blocks_.pop_back();
    blocks_[id] = Block();
  }
  blocks_[id].exact = exact_.Take();
  blocks_[id].references = 1;
  blocks_[id].exact_references = 1;
  return id;
}

void GroupStore::TakeSealed(BlockId id, bool first) {
  Block& block = blocks_[id];
  block.sealed = sealed_->Take();
  if (first && has_sinks()) block.sinks = sinks_->Take();
}

void GroupStore::FreeSealed(BlockId id) {
  Block& block = blocks_[id];
  if (block.sealed != kNoSlot) sealed_->Free(block.sealed);
  if (block.sinks != kNoSlot) sinks_->Free(block.sinks);
  block.sealed = kNoSlot;
  block.sinks = kNoSlot;
}

void GroupStore::Share(const GroupEntry& entry) {
  if (entry.block == kNoBlock) return;
  ++blocks_[entry.block].references;
  if (entry.holds_exact) ++blocks_[entry.block].exact_references;
}

void GroupStore::ReleaseExact(GroupEntry& entry) {
  if (!entry.holds_exact) return;
  entry.holds_exact = false;
  Block& block = blocks_[entry.block];
  if (--block.exact_references > 0) return;
  exact_.Free(block.exact);
  block.exact = kNoSlot;
}

void GroupStore::ReleaseBlock(GroupEntry& entry) {
  if (entry.block == kNoBlock) return;
  ReleaseExact(entry);
  if (--blocks_[entry.block].references == 0) {
    FreeSealed(entry.block);
    free_blocks_.push_back(entry.block);
  }
  entry.block = kNoBlock;
}

void GroupStore::CopyExactRows(BlockId from, BlockId to, int rows) {
  const Block& source = blocks_[from];
  const bool from_page = source.exact != kNoSlot;
  const PagePool& pool = from_page ? exact_ : *sinks_;
  const int slot = from_page ? source.exact : source.sinks;
  const int source_rows = from_page ? kPageTokens : (group_.sink_tokens + 15) / 16 * 16;
  for (size_t l = 0; l < group_.layers.size(); ++l) {
    const ExactRows layout(group_.layers[l]);
    for (int head = 0; head < group_.layers[l].kv_heads; ++head) {
      layout.Copy(pool.Page(l, head, slot), source_rows, exact_.Page(l, head, blocks_[to].exact),
                  kPageTokens, rows);
    }
  }
}

uint64_t GroupStore::stored_bytes() const {
  uint64_t bytes = exact_.slots_in_use() * exact_.slot_bytes();
  if (sealed_) bytes += sealed_->slots_in_use() * sealed_->slot_bytes();
  if (sinks_) bytes += sinks_->slots_in_use() * sinks_->slot_bytes();
  return bytes;
}

}  // namespace shorthand
