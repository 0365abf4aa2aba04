// Clocks for measurements: processor time of a thread, and cycles a second.
// Thread-safety: pure functions.
#ifndef SHORTHAND_BASE_CLOCK_H_
#define SHORTHAND_BASE_CLOCK_H_

#include <time.h>

#include <bit>
#include <cstdint>

namespace shorthand {

// Of CLOCK_THREAD_CPUTIME_ID, the calling thread's processor time, so that other programs do not
// count; of CLOCK_MONOTONIC, time on the wall.
inline double Seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Cycles a second, from a chain of rotations, one a cycle. (Some processors do additions of a
// constant for nothing, so that a chain of those runs at twice the frequency.)
inline double MeasureHertz() {
  constexpr uint64_t kRotations = 30'000'000;
  const double begin = Seconds(CLOCK_THREAD_CPUTIME_ID);
  uint64_t x = 1;
  for (uint64_t i = 0; i < kRotations; ++i) {
    x = std::rotl(x, 7);
    __asm__ volatile("" : "+r"(x));
  }
  return static_cast<double>(kRotations) / (Seconds(CLOCK_THREAD_CPUTIME_ID) - begin);
}

}  // namespace shorthand

#endif  // SHORTHAND_BASE_CLOCK_H_
