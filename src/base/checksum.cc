#include "base/checksum.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include "base/mapped_file.h"

namespace shorthand {

uint64_t Xxh3(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

std::string HexOf(uint64_t value) { return fmt::format("{:016x}", value); }

Result<std::string> FileHash(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  return HexOf(Xxh3((*file)->bytes().data(), (*file)->bytes().size()));
}

}  // namespace shorthand
