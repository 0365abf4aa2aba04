// A bar: a figure that must reach a mark, shown as `name: value (bar: mark) ok` or `MISSED`.
// scripts/bars counts these lines.
// Thread-safety: one thread at a time.
#ifndef SHORTHAND_BENCH_BAR_H_
#define SHORTHAND_BENCH_BAR_H_

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

namespace shorthand {

enum class Outcome { kMet, kMissed };

// A figure that is not a number misses.
inline Outcome AtLeast(double value, double mark) {
  return value >= mark ? Outcome::kMet : Outcome::kMissed;
}
inline Outcome AtMost(double value, double mark) {
  return value <= mark ? Outcome::kMet : Outcome::kMissed;
}

// Prints bars and remembers whether one was missed.
class BarReport {
 public:
  void Print(std::string_view name, std::string_view value, std::string_view mark,
             Outcome outcome) {
    fmt::print("{}: {} (bar: {}) {}\n", name, value, mark,
               outcome == Outcome::kMet ? "ok" : "MISSED");
    std::fflush(stdout);
    if (outcome == Outcome::kMissed) exit_code_ = 1;
  }
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_ = 0;
};

}  // namespace shorthand

#endif  // SHORTHAND_BENCH_BAR_H_
