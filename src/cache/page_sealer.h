// PageSealer: makes the sealed representation of a complete page of one layer from its exact one.
//
// The only place where the cache quantizes. A side whose code is exact is copied as it is.
// Thread-safety: one object belongs to one worker; it keeps the scratch between pages.
#ifndef SHORTHAND_CACHE_PAGE_SEALER_H_
#define SHORTHAND_CACHE_PAGE_SEALER_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "cache/exact_rows.h"
#include "quant/footprint.h"

namespace shorthand {

class PageSealer {
 public:
  // REQUIRES: `format` outlives the sealer.
  explicit PageSealer(const LayerFormat& format);

  // Tokens before `first_token` are kept apart and take no part.
  void Seal(const uint8_t* exact_page, int first_token, uint8_t* page, PageDescriptor* descriptor);

 private:
  struct FreeDeleter {
    void operator()(void* memory) const { std::free(memory); }
  };

  const LayerFormat& format_;
  ExactRows exact_;
  std::vector<float> rows_;
  std::unique_ptr<void, FreeDeleter> scratch_;
};

}  // namespace shorthand

#endif  // SHORTHAND_CACHE_PAGE_SEALER_H_
