// PagePool: page slots of one layer group in one representation.
//
// A slot is one page for every (layer, KV head) of the group. Memory is taken from the arena in
// extents, in which the pages of one layer and head lie adjacent, with their descriptors behind
// them. The lowest free slot is taken first, so a sequence that grows alone gets adjacent pages.
// The pool keeps what it has taken.
// Thread-safety: one thread at a time takes and frees; Page and Descriptor may be read by many as
// long as nobody takes.
#ifndef SHORTHAND_CACHE_PAGE_POOL_H_
#define SHORTHAND_CACHE_PAGE_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/arena.h"
#include "quant/page.h"

namespace shorthand {

inline constexpr int kNoSlot = -1;

class PagePool {
 public:
  struct Stream {  // the pages of one layer
    size_t page_bytes;
    int kv_heads;
  };
  PagePool(Arena* arena, std::vector<Stream> streams, size_t descriptor_bytes);

  // Bytes that would have to come from the arena for `slots` more slots.
  uint64_t BytesForMore(int64_t slots) const;

  // Makes room for `slots` more slots, so that Take cannot fail that often. False if the system
  // has no memory; what was taken meanwhile stays with the pool.
  bool Reserve(int64_t slots);
  // REQUIRES: room was reserved.
  int Take();
  void Free(int slot);

  // `layer` counts within the group.
  uint8_t* Page(int layer, int head, int slot) const {
    const Extents& e = extents_[layer];
    return e.base[head][slot / e.pages] + static_cast<size_t>(slot % e.pages) * e.page_bytes;
  }
  PageDescriptor* Descriptor(int layer, int head, int slot) const {
    const Extents& e = extents_[layer];
    return reinterpret_cast<PageDescriptor*>(e.base[head][slot / e.pages] +
                                             e.pages * e.page_bytes) +
           slot % e.pages;
  }

  int64_t slots_in_use() const { return end_slot_ - static_cast<int64_t>(free_.size()); }
  // Of one slot, descriptors included, over all layers and heads.
  uint64_t slot_bytes() const { return slot_bytes_; }

 private:
  struct Extents {
    size_t page_bytes;
    int pages;                                // in one extent
    std::vector<std::vector<uint8_t*>> base;  // [head][extent]
  };
  size_t descriptor_bytes_;
  Arena* arena_;
  std::vector<Extents> extents_;  // [layer]
  uint64_t slot_bytes_ = 0;
  int64_t end_slot_ = 0;  // slots ever taken
  std::priority_queue<int, std::vector<int>, std::greater<int>> free_;
};

}  // namespace shorthand

#endif  // SHORTHAND_CACHE_PAGE_POOL_H_
