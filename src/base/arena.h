// Arena: address space for extents, handed out front to back and never moved.
//
// Memory is mapped in large regions for which huge pages are advised, so extents that are taken
// together lie together. Bytes are counted when handed out; the system backs them when they are
// first touched. Everything is returned to the system when the arena goes.
// Thread-safety: one thread at a time.
#ifndef SHORTHAND_BASE_ARENA_H_
#define SHORTHAND_BASE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shorthand {

class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // 64-byte aligned, zeroed; null if the system has no address space left.
  // REQUIRES: `bytes` is a positive multiple of 64.
  uint8_t* Take(size_t bytes);

  uint64_t taken_bytes() const { return taken_bytes_; }

 private:
  struct Region {
    uint8_t* base;
    size_t bytes;
  };
  bool Map(size_t at_least_bytes);

  std::vector<Region> regions_;
  uint8_t* next_ = nullptr;
  size_t left_bytes_ = 0;
  uint64_t taken_bytes_ = 0;
};

}  // namespace shorthand

#endif  // SHORTHAND_BASE_ARENA_H_
