// FuzzInput: the bytes of one fuzzing input, read as numbers; and Require, the way a fuzzer fails.
//
// Whatever the bytes are, they mean something: a fuzzer never rejects an input for its form. Behind
// the end every number is 0.
// Thread-safety: one thread.
#ifndef SHORTHAND_FUZZ_FUZZ_INPUT_H_
#define SHORTHAND_FUZZ_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

namespace shorthand {

class FuzzInput {
 public:
  explicit FuzzInput(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint8_t Byte() { return at_ < bytes_.size() ? bytes_[at_++] : uint8_t{0}; }
  uint32_t Word() {
    const uint32_t high = Byte();
    return high << 8 | Byte();
  }
  // In [0, n). REQUIRES: 1 <= n <= 65536.
  int Below(int n) { return static_cast<int>((n <= 256 ? Byte() : Word()) % n); }
  // One in `n`.
  bool Once(int n) { return Below(n) == n - 1; }
  template <typename Container>
  auto Pick(const Container& from) {
    return std::data(from)[Below(static_cast<int>(std::size(from)))];
  }
  std::span<const uint8_t> Rest() const { return bytes_.subspan(at_); }
  bool AtEnd() const { return at_ >= bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

// Bits of a counter, well mixed (SplitMix64).
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Ends the process with `sentence` unless `holds`; whoever drives the fuzzer reports the input.
inline void Require(bool holds, const std::string& sentence) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", sentence.c_str());
  std::abort();
}

}  // namespace shorthand

#endif  // SHORTHAND_FUZZ_FUZZ_INPUT_H_
