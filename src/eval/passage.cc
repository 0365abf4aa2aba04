#include "eval/passage.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.h"

namespace shorthand {

std::string PassageId(const Passage& passage) {
  const std::span<const Token> tokens = passage.tokens;
  return fmt::format("{}-{}-{}", tokens.size(), passage.first_scored,
                     HexOf(Xxh3(tokens.data(), tokens.size_bytes())));
}

std::vector<Chunk> ChunksOf(const Passage& passage) {
  const std::span<const Token> all = passage.tokens;
  const size_t end = all.size() - 1;
  const size_t first_scored = static_cast<size_t>(passage.first_scored);
  std::vector<Chunk> chunks;
  for (size_t at = 0; at < end;) {
    const bool scored = at >= first_scored;
    const size_t next = scored ? std::min<size_t>(end, at + kScoredChunkTokens)
                               : std::min<size_t>(first_scored, at + kPromptTokensAtOnce);
    const size_t count = next - at;
    chunks.push_back({all.subspan(at, count), all.subspan(at + 1, scored ? count : 0)});
    at = next;
  }
  return chunks;
}

}  // namespace shorthand
