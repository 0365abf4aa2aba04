// Tokens of `shorthand bench model`, the same for all engines: speed does not depend on them.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_BENCH_TOKENS_H_
#define SHORTHAND_TOOLS_BENCH_TOKENS_H_

#include <cstdint>
#include <vector>

namespace shorthand {

inline std::vector<int32_t> AnyTokens(int count, int vocabulary) {
  std::vector<int32_t> tokens(count);
  for (int i = 0; i < count; ++i) tokens[i] = (i * 7919 + 1000) % vocabulary;
  return tokens;
}

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_BENCH_TOKENS_H_
