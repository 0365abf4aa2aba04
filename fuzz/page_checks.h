// Checks of the pages that a batch has written, for attention_fuzz: every target writes and seals
// the same bytes, and sealed bytes are those of the codecs that define them.
// Thread-safety: one thread.
#ifndef SHORTHAND_FUZZ_PAGE_CHECKS_H_
#define SHORTHAND_FUZZ_PAGE_CHECKS_H_

#include <string>

#include "cache/cache_impl.h"

namespace shorthand {

// Every page of the batch's sequences that is held exact and sealed. REQUIRES: all layers are
// written and sealed.
void CheckSealedPages(const BatchImpl& batch, const std::string& what);

// Exact pages of the batch's layer against rows k [rows][kv_heads][k_dim] and v of the batch.
void CheckWrittenRows(const BatchImpl& batch, int layer, const float* k, const float* v,
                      const std::string& what);

}  // namespace shorthand

#endif  // SHORTHAND_FUZZ_PAGE_CHECKS_H_
