// What the benchmarks of kernels share: pages of memory, and figures in cycles.
//
// Cycles are processor time times frequency, which is measured just before. Pages are read from a
// set that fits L2 (`resident`) or that does not fit any cache (`streamed`).
// Thread-safety: one thread.
#ifndef SHORTHAND_BENCH_PAGE_BENCH_H_
#define SHORTHAND_BENCH_PAGE_BENCH_H_

#include <benchmark/benchmark.h>

#include <cstdint>
#include <new>

#include "base/clock.h"

namespace shorthand {

inline constexpr int kSlots = 128;
inline constexpr size_t kResidentBytes = size_t{1} << 18;
inline constexpr size_t kStreamedBytes = size_t{1} << 29;

inline double CpuSeconds() { return Seconds(CLOCK_THREAD_CPUTIME_ID); }

// Memory that holds small finite numbers in every element type.
struct Pages {
  explicit Pages(size_t n)
      : bytes(n), data(static_cast<uint8_t*>(::operator new(n, std::align_val_t{64}))) {
    for (size_t i = 0; i < n; ++i) data[i] = i % 2 == 0 ? static_cast<uint8_t>(i * 7) : 0x3c;
  }
  ~Pages() { ::operator delete(data, std::align_val_t{64}); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  size_t bytes;
  uint8_t* data;
};

// Runs `kernel` on one page after another and reports per element of a page.
template <typename Kernel>
void RunPages(benchmark::State& state, size_t total_bytes, size_t page_bytes, int dim, int rows,
              Kernel kernel) {
  const Pages pages(total_bytes);
  const double hertz = MeasureHertz();
  size_t at = 0;
  const double start = CpuSeconds();
  for (auto _ : state) {
    kernel(pages.data + at);
    at = at + 2 * page_bytes <= total_bytes ? at + page_bytes : 0;
  }
  const double seconds = CpuSeconds() - start;
  const double count = static_cast<double>(state.iterations());
  const double elements = count * kSlots * dim;
  state.counters["cycles/token"] = seconds * hertz / (count * kSlots);
  state.counters["cycles/element"] = seconds * hertz / elements;
  state.counters["fma/cycle"] = elements * rows / (seconds * hertz);
  state.counters["GB/s"] = count * static_cast<double>(page_bytes) / seconds / 1e9;
  state.counters["GHz"] = hertz / 1e9;
}

// What main does once everything is registered.
inline int RunBenchmarks(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace shorthand

#endif  // SHORTHAND_BENCH_PAGE_BENCH_H_
