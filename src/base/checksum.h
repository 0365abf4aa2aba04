// Checksums: XXH3 with 64 bits, which names and guards what nobody attacks.
// Thread-safety: pure functions.
#ifndef SHORTHAND_BASE_CHECKSUM_H_
#define SHORTHAND_BASE_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "shorthand/status.h"

namespace shorthand {

uint64_t Xxh3(const void* data, size_t bytes);

// 16 hexadecimal digits.
std::string HexOf(uint64_t value);

// Of a file's bytes, in hexadecimal. Errors: those of MappedFile::Open.
Result<std::string> FileHash(const std::string& path);

}  // namespace shorthand

#endif  // SHORTHAND_BASE_CHECKSUM_H_
