// PageSealer: makes the sealed representation of a complete page of one layer from its exact one.
//
// The only place where the cache quantizes. A side whose code is exact is copied as it is; iq4_nl,
// mxfp4, nvfp4, learned levels and sides with `pre`, `/grid`, `outX`, or with `mse` or `cal` beside
// `hiX`, are sealed by their codecs (quant/page.h), all others by a kernel. The bytes are the
// codec's in either case. Thread-safety: one object belongs to one worker; it keeps the scratch
// between pages.
#ifndef SHORTHAND_CACHE_PAGE_SEALER_H_
#define SHORTHAND_CACHE_PAGE_SEALER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/aligned_vector.h"
#include "cache/exact_rows.h"
#include "kernels/kernels.h"
#include "quant/footprint.h"

namespace shorthand {

// What the sealing kernel does for a side; nothing if there is no kernel for its format.
// The tables must outlive the job.
std::optional<SealJob> SealJobOf(const SideFormat& side, const HeadTables& tables, int first_token);

class PageSealer {
 public:
  // REQUIRES: `format` and `kernels` outlive the sealer.
  PageSealer(const LayerFormat& format, const KernelTable& kernels);

  // A page of one of the layer's KV heads, its slot 0 at `first_position`. Tokens before
  // `first_token` are kept apart and take no part.
  void Seal(const uint8_t* exact_page, int kv_head, int64_t first_position, int first_token,
            uint8_t* page, PageDescriptor* descriptor);

 private:
  void SealOneSide(const SideFormat& side, const HeadTables& tables, const uint8_t* exact,
                   int first_token, const SidePart& part, uint8_t* page,
                   PageDescriptor* descriptor);

  const LayerFormat& format_;
  const KernelTable& kernels_;
  ExactRows exact_;
  std::vector<float> rows_;
  AlignedArray<uint8_t> scratch_;
};

}  // namespace shorthand

#endif  // SHORTHAND_CACHE_PAGE_SEALER_H_
