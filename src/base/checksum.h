// Checksums: XXH3, which names and guards what nobody attacks.
// Thread-safety: pure functions.
#ifndef SHORTHAND_BASE_CHECKSUM_H_
#define SHORTHAND_BASE_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace shorthand {

uint64_t Xxh3(const void* data, size_t bytes);

// 16 hexadecimal digits.
std::string HexOf(uint64_t value);

}  // namespace shorthand

#endif  // SHORTHAND_BASE_CHECKSUM_H_
