// A bounded walk over a GGUF file's header: whether every length, count, type, dimension and offset
// in it is sound and every tensor lies within the file. Nothing is allocated from a number that the
// file claims. What passes is safe to hand to gguf.h.
// Thread-safety: a pure function.
#ifndef SHORTHAND_MODEL_GGUF_CHECK_H_
#define SHORTHAND_MODEL_GGUF_CHECK_H_

#include <cstdint>
#include <span>

#include "shorthand/status.h"

namespace shorthand {

// More metadata entries or tensors than this are taken for damage.
inline constexpr int64_t kMaxGgufEntries = 16384;

// Errors: kDataLoss with the byte and what is wrong there; kUnimplemented for GGUF versions other
// than 2 and 3.
Status CheckGguf(std::span<const uint8_t> file);

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_GGUF_CHECK_H_
