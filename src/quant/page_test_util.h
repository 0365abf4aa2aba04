// For tests: a side from its text, sealed, with its page.
// Thread-safety: values.
#ifndef SHORTHAND_QUANT_PAGE_TEST_UTIL_H_
#define SHORTHAND_QUANT_PAGE_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "quant/page.h"

namespace shorthand {

inline Result<SideFormat> TryResolveText(const std::string& text, SideKind kind, int dim) {
  const bool key = kind == SideKind::kKey;
  Result<Recipe> recipe = Recipe::Parse(key ? "k=" + text + ",v=f16" : "k=f16,v=" + text);
  if (!recipe.ok()) return recipe.status();
  return ResolveSide(key ? recipe->kv.k : recipe->kv.v, kind, dim);
}

// REQUIRES: the text is valid for the dim; otherwise the test fails.
inline SideFormat ResolveText(const std::string& text, SideKind kind, int dim) {
  Result<SideFormat> format = TryResolveText(text, kind, dim);
  EXPECT_TRUE(format.ok()) << text << ": " << format.status().message();
  return format.ok() ? *format : SideFormat{};
}

// One side alone at the front of a page.
struct SealedSide {
  // x [128][dim]
  SealedSide(const SideFormat& side, const std::vector<float>& x, int first = 0) : format(side) {
    part.meta_bytes = format.meta_bytes();
    part.codes_offset = part.meta_bytes;
    part.codes_bytes = format.codes_bytes();
    page.assign(part.meta_bytes + part.codes_bytes, 0xee);
    const size_t bytes = (SealScratchBytes(format) + 63) / 64 * 64;
    const std::unique_ptr<void, void (*)(void*)> scratch(std::aligned_alloc(64, bytes), std::free);
    SealSide(format, x.data(), first, part, page.data(), &descriptor, scratch.get());
  }

  // [128][dim]
  std::vector<float> Unsealed() const {
    std::vector<float> x(static_cast<size_t>(kPageTokens) * format.dim);
    UnsealSide(format, part, page.data(), descriptor, x.data());
    return x;
  }

  // [128][padded_dim]
  std::vector<uint8_t> Codes() const {
    std::vector<uint8_t> codes(static_cast<size_t>(kPageTokens) * format.padded_dim);
    UnpackCodes(format.kind, format.padded_dim, format.bits, page.data() + part.codes_offset,
                codes.data());
    return codes;
  }

  SideFormat format;
  SidePart part;
  std::vector<uint8_t> page;
  PageDescriptor descriptor;
};

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_PAGE_TEST_UTIL_H_
