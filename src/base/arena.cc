#include "base/arena.h"

#include <sys/mman.h>

#include <algorithm>

namespace shorthand {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kRegionBytes = size_t{256} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Arena::~Arena() {
  for (const Region& region : regions_) munmap(region.base, region.bytes);
}

bool Arena::Map(size_t at_least_bytes) {
  const size_t bytes = RoundUp(std::max(at_least_bytes, kRegionBytes), kHugePageBytes);
  void* base = mmap(nullptr, bytes + kHugePageBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return false;
  regions_.push_back({static_cast<uint8_t*>(base), bytes + kHugePageBytes});
  next_ = reinterpret_cast<uint8_t*>(RoundUp(reinterpret_cast<uintptr_t>(base), kHugePageBytes));
  left_bytes_ = bytes;
  madvise(next_, bytes, MADV_HUGEPAGE);  // advice only: a system without huge pages works too
  return true;
}

uint8_t* Arena::Take(size_t bytes) {
  if (bytes > left_bytes_ && !Map(bytes)) return nullptr;
  uint8_t* taken = next_;
  next_ += bytes;
  left_bytes_ -= bytes;
  taken_bytes_ += bytes;
  return taken;
}

}  // namespace shorthand
