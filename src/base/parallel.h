// ForEach: independent pieces of work on a few threads.
// Thread-safety: may be called from any thread.
#ifndef SHORTHAND_BASE_PARALLEL_H_
#define SHORTHAND_BASE_PARALLEL_H_

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

namespace shorthand {

// Calls work(i) for i in [0, count), every `threads`-th on the same thread.
template <typename Work>
void ForEach(size_t count, int threads, const Work& work) {
  const size_t workers = std::min<size_t>(std::max(threads, 1), count);
  const auto share = [&](size_t worker) {
    for (size_t i = worker; i < count; i += workers) work(i);
  };
  std::vector<std::jthread> others;
  for (size_t worker = 1; worker < workers; ++worker) others.emplace_back(share, worker);
  if (workers > 0) share(0);
}

}  // namespace shorthand

#endif  // SHORTHAND_BASE_PARALLEL_H_
