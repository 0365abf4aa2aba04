#include "base/checksum.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace shorthand {

uint64_t Xxh3(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

std::string HexOf(uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace shorthand
