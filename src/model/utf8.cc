#include "model/utf8.h"

#include <algorithm>
#include <cstdint>

namespace shorthand {
namespace {

bool IsContinuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Bytes of the character that `lead` begins; 0 if it begins none.
size_t CharacterBytes(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// Whether `second` may follow `lead`: rules out overlong forms, surrogates and > U+10FFFF.
bool SecondByteFits(uint8_t lead, uint8_t second) {
  switch (lead) {
    case 0xE0:
      return second >= 0xA0;
    case 0xED:
      return second <= 0x9F;
    case 0xF0:
      return second >= 0x90;
    case 0xF4:
      return second <= 0x8F;
    default:
      return true;
  }
}

}  // namespace

std::optional<size_t> FirstInvalidUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const uint8_t lead = static_cast<uint8_t>(text[at]);
    const size_t bytes = CharacterBytes(lead);
    if (bytes == 0 || text.size() - at < bytes) return at;
    for (size_t i = 1; i < bytes; ++i) {
      const uint8_t byte = static_cast<uint8_t>(text[at + i]);
      if (!IsContinuation(byte) || (i == 1 && !SecondByteFits(lead, byte))) return at;
    }
    at += bytes;
  }
  return std::nullopt;
}

size_t WholeCharacters(std::string_view text) {
  const size_t longest = std::min<size_t>(text.size(), 3);
  for (size_t tail = 1; tail <= longest; ++tail) {
    const uint8_t byte = static_cast<uint8_t>(text[text.size() - tail]);
    if (IsContinuation(byte)) continue;
    return CharacterBytes(byte) > tail ? text.size() - tail : text.size();
  }
  return text.size();
}

}  // namespace shorthand
