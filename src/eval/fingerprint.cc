#include "eval/fingerprint.h"

#include <fmt/format.h>

#include <cstring>

#include "base/mapped_file.h"

namespace shorthand {
namespace {

// An odd number with its bits well spread: the golden ratio's fraction.
constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;

// A bijection of `state` for every `word`: two inputs that differ in one word never meet.
uint64_t Mix(uint64_t state, uint64_t word) {
  state = (state ^ word) * kMultiplier;
  return state ^ (state >> 32);
}

}  // namespace

uint64_t Fingerprint(std::span<const uint8_t> bytes) {
  uint64_t state = Mix(kMultiplier, bytes.size());
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    state = Mix(state, word);
  }
  uint64_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  return Mix(Mix(state, rest), 0);
}

Result<std::string> FileFingerprint(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  return fmt::format("{:016x}", Fingerprint((*file)->bytes()));
}

}  // namespace shorthand
