// AlignedVector and AlignedArray: arrays that begin on a cache line, so that vectors of 64 bytes
// are loaded and stored within one. Thread-safety: as std::vector and std::unique_ptr.
#ifndef SHORTHAND_BASE_ALIGNED_VECTOR_H_
#define SHORTHAND_BASE_ALIGNED_VECTOR_H_

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

namespace shorthand {

template <typename T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <typename U>
  LineAllocator(const LineAllocator<U>&) {}  // NOLINT: implicit, as allocators are
  T* allocate(size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t{64}); }
  friend bool operator==(LineAllocator, LineAllocator) { return true; }
};

template <typename T>
using AlignedVector = std::vector<T, LineAllocator<T>>;

struct LineDeleter {
  void operator()(void* p) const { ::operator delete(p, std::align_val_t{64}); }
};

// Not initialised.
template <typename T>
using AlignedArray = std::unique_ptr<T[], LineDeleter>;

template <typename T>
AlignedArray<T> MakeAlignedArray(size_t n) {
  static_assert(std::is_trivial_v<T>);
  return AlignedArray<T>(LineAllocator<T>().allocate(n));
}

}  // namespace shorthand

#endif  // SHORTHAND_BASE_ALIGNED_VECTOR_H_
