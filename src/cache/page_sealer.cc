#include "cache/page_sealer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace shorthand {
namespace {

size_t ScratchBytes(const SideFormat& side) { return side.exact ? 0 : SealScratchBytes(side); }

}  // namespace

PageSealer::PageSealer(const LayerFormat& format)
    : format_(format),
      exact_(format),
      rows_(static_cast<size_t>(kPageTokens) * std::max(format.k.dim, format.v.dim)),
      scratch_(std::aligned_alloc(
          kLineBytes, std::max({ScratchBytes(format.k), ScratchBytes(format.v), kLineBytes}))) {}

void PageSealer::Seal(const uint8_t* exact_page, int first_token, uint8_t* page,
                      PageDescriptor* descriptor) {
  *descriptor = PageDescriptor();
  descriptor->first_token = first_token;
  const PageLayout& layout = format_.sealed;
  if (format_.k.exact) {
    std::memcpy(page + layout.k.codes_offset, exact_page, layout.k.codes_bytes);
  } else {
    exact_.ReadKeys(exact_page, kPageTokens, rows_.data());
    SealSide(format_.k, rows_.data(), first_token, layout.k, page, descriptor, scratch_.get());
  }
  const uint8_t* values = exact_page + exact_.ValueOffset(kPageTokens);
  if (format_.v.exact) {
    std::memcpy(page + layout.v.codes_offset, values, layout.v.codes_bytes);
  } else {
    exact_.ReadValues(values, kPageTokens, rows_.data());
    SealSide(format_.v, rows_.data(), first_token, layout.v, page, descriptor, scratch_.get());
  }
}

}  // namespace shorthand
