#include "cache/page_pool.h"

#include <algorithm>

#include "quant/footprint.h"

namespace shorthand {
namespace {

int64_t ExtentsFor(int64_t slots, int pages) { return (slots + pages - 1) / pages; }

}  // namespace

PagePool::PagePool(Arena* arena, std::vector<Stream> streams, size_t descriptor_bytes)
    : descriptor_bytes_(descriptor_bytes), arena_(arena) {
  for (const Stream& stream : streams) {
    Extents extents{stream.page_bytes, ExtentPages(stream.page_bytes), {}};
    extents.base.resize(stream.kv_heads);
    extents_.push_back(std::move(extents));
    slot_bytes_ += stream.kv_heads * (stream.page_bytes + descriptor_bytes);
  }
}

uint64_t PagePool::BytesForMore(int64_t slots) const {
  const int64_t fresh = std::max<int64_t>(0, slots - static_cast<int64_t>(free_.size()));
  uint64_t bytes = 0;
  for (const Extents& e : extents_) {
    const int64_t have = e.base.empty() ? 0 : static_cast<int64_t>(e.base[0].size());
    const int64_t need = ExtentsFor(end_slot_ + fresh, e.pages);
    if (need > have) {
      bytes += (need - have) * e.base.size() * ExtentBytes(e.page_bytes, descriptor_bytes_);
    }
  }
  return bytes;
}

bool PagePool::Reserve(int64_t slots) {
  const int64_t fresh = std::max<int64_t>(0, slots - static_cast<int64_t>(free_.size()));
  for (Extents& e : extents_) {
    const size_t need = ExtentsFor(end_slot_ + fresh, e.pages);
    for (std::vector<uint8_t*>& head : e.base) {
      while (head.size() < need) {
        uint8_t* base = arena_->Take(ExtentBytes(e.page_bytes, descriptor_bytes_));
        if (base == nullptr) return false;
        head.push_back(base);
      }
    }
  }
  return true;
}

int PagePool::Take() {
  if (free_.empty()) return static_cast<int>(end_slot_++);
  const int slot = free_.top();
  free_.pop();
  return slot;
}

void PagePool::Free(int slot) { free_.push(slot); }

}  // namespace shorthand
