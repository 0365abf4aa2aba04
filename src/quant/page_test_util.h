// For tests: a side from its text, sealed, with its page.
// Thread-safety: values.
#ifndef SHORTHAND_QUANT_PAGE_TEST_UTIL_H_
#define SHORTHAND_QUANT_PAGE_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/aligned_vector.h"
#include "base/half.h"
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

// A page [128][dim] of normal values, rounded as exact pages are.
inline std::vector<float> Normals(int dim, uint32_t seed, float sigma = 1, float mean = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, sigma);
  std::vector<float> x(static_cast<size_t>(kPageTokens) * dim);
  for (float& v : x) v = RoundToFiniteF16(normal(random));
  return x;
}

// Of NeutralCalibration, if the format needs tables.
inline HeadTables NeutralTables(const SideFormat& format) {
  if (!NeedsCalibration(format.tunes)) return {};
  Shape shape;
  shape.layers.push_back(
      {.query_heads = 1, .kv_heads = 1, .k_dim = format.dim, .v_dim = format.dim});
  return TablesOf(format, NeutralCalibration(shape).layers[0], 0);
}

// One side alone at the front of a page.
struct SealedSide {
  // x [128][dim]
  SealedSide(const SideFormat& side, const std::vector<float>& x, int first = 0)
      : SealedSide(side, NeutralTables(side), x, first) {}
  SealedSide(const SideFormat& side, const HeadTables& head, const std::vector<float>& x, int first,
             int64_t first_position = 0)
      : format(side), tables(head) {
    descriptor.first_position = first_position;
    part.meta_bytes = format.meta_bytes();
    part.codes_offset = part.meta_bytes;
    part.codes_bytes = format.codes_bytes();
    page.assign(part.meta_bytes + part.codes_bytes, 0xee);
    const auto scratch = MakeAlignedArray<uint8_t>(SealScratchBytes(format));
    SealSide(format, tables, x.data(), first, part, page.data(), &descriptor, scratch.get());
  }

  // [128][dim]
  std::vector<float> Unsealed() const {
    std::vector<float> x(static_cast<size_t>(kPageTokens) * format.dim);
    UnsealSide(format, tables, part, page.data(), descriptor, x.data());
    return x;
  }

  // [128][padded_dim]
  std::vector<uint8_t> Codes() const {
    std::vector<uint8_t> codes(static_cast<size_t>(kPageTokens) * format.padded_dim);
    const uint8_t* lines = page.data() + part.codes_offset;
    if (format.planes()) {
      UnpackPlanes(format.padded_dim, tables.widths.data(), lines, codes.data());
    } else {
      UnpackCodes(format.kind, format.padded_dim, format.bits, lines, codes.data());
    }
    return codes;
  }

  SideFormat format;
  HeadTables tables;
  SidePart part;
  std::vector<uint8_t> page;
  PageDescriptor descriptor;
};

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_PAGE_TEST_UTIL_H_
