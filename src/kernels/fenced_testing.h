// FencedMemory: arrays for tests that touch memory which may not be read, on one side or the other,
// so that a load outside of them ends the test. Prefetches pass.
// Thread-safety: one thread.
#ifndef SHORTHAND_KERNELS_FENCED_TESTING_H_
#define SHORTHAND_KERNELS_FENCED_TESTING_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace shorthand {

// Which end of an array touches its fence.
enum class Fence { kFront, kBack };

class FencedMemory {
 public:
  explicit FencedMemory(Fence fence) : fence_(fence) {}
  ~FencedMemory() {
    for (const auto& [base, bytes] : maps_) munmap(base, bytes);
  }
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;

  // `n` elements, zero. They are as aligned as their size: a fence lies where a system page begins.
  template <typename T>
  T* Take(size_t n) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t size = n * sizeof(T), inner = (size + page - 1) / page * page;
    void* mapped = mmap(nullptr, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* base = static_cast<uint8_t*>(mapped);
    if (mapped == MAP_FAILED || mprotect(base + page, inner, PROT_READ | PROT_WRITE) != 0) {
      std::perror("memory between fences");
      std::abort();
    }
    maps_.push_back({base, inner + 2 * page});
    return reinterpret_cast<T*>(base + page + (fence_ == Fence::kBack ? inner - size : 0));
  }

  template <typename T>
  T* Copy(const T* from, size_t n) {
    T* to = Take<T>(n);
    std::memcpy(to, from, n * sizeof(T));
    return to;
  }

 private:
  Fence fence_;
  std::vector<std::pair<uint8_t*, size_t>> maps_;
};

}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_FENCED_TESTING_H_
