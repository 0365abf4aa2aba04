#include "quant/page.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/half.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

struct Sizes {
  const char* k;
  const char* v;
  int dim;
  size_t k_meta, k_codes, v_meta, v_codes;
};

// By hand: the rows of docs/formats/page.md, half the codes and channel metadata at 64, five
// channel tiles at 80, padding to 16 channels at 8 and to 64 bytes of meta.
TEST(PageTest, SizesAreTheDocumented) {
  const Sizes table[] = {
      {"u4/ch32", "u4/tok32", 128, 2048, 8192, 2048, 8192},
      {"u4/tok", "u4/tok", 128, 512, 8192, 512, 8192},
      {"i8/tok", "i8/tok", 128, 256, 16384, 256, 16384},
      {"q4_0", "q4_0", 128, 1024, 8192, 1024, 8192},
      {"rn4/ch", "had:lm4/tok", 128, 512, 8192, 256, 8192},
      {"u4/tok", "u4/tok", 64, 512, 4096, 512, 4096},
      {"rn4/ch", "had:lm4/tok", 64, 256, 4096, 256, 4096},
      {"u4/ch", "u4/tok", 80, 320, 5120, 512, 5120},
      {"u2/ch", "u3/tok", 8, 64, 512, 512, 768},
      {"mu:u4/tok", "e4m3/page", 80, 704, 5120, 0, 10240},
      {"mxfp4", "nvfp4", 128, 512, 8192, 1024, 8192},
      {"q5_1", "q8_0", 128, 2048, 10240, 1024, 16384},
      {"f16", "f32", 80, 0, 20480, 0, 40960},
      {"i2/ch", "u6/ch32", 80, 192, 2560, 1280, 7680},
      {"had:u4/grid", "had:u4/grid", 128, 768, 8192, 768, 8192},
  };
  for (const Sizes& row : table) {
    SCOPED_TRACE(std::string(row.k) + " " + row.v);
    const PageLayout layout = LayoutOf(ResolveText(row.k, SideKind::kKey, row.dim),
                                       ResolveText(row.v, SideKind::kValue, row.dim));
    EXPECT_EQ(layout.k.meta_offset, 0u);
    EXPECT_EQ(layout.k.meta_bytes, row.k_meta);
    EXPECT_EQ(layout.k.codes_offset, row.k_meta);
    EXPECT_EQ(layout.k.codes_bytes, row.k_codes);
    EXPECT_EQ(layout.v.meta_offset, row.k_meta + row.k_codes);
    EXPECT_EQ(layout.v.meta_bytes, row.v_meta);
    EXPECT_EQ(layout.v.codes_offset, row.k_meta + row.k_codes + row.v_meta);
    EXPECT_EQ(layout.v.codes_bytes, row.v_codes);
    EXPECT_EQ(layout.bytes, row.k_meta + row.k_codes + row.v_meta + row.v_codes);
  }
}

TEST(PageTest, SidesMayHaveDifferentHeadDims) {
  const PageLayout layout = LayoutOf(ResolveText("q8_0", SideKind::kKey, 192),
                                     ResolveText("u4/tok", SideKind::kValue, 128));
  EXPECT_EQ(layout.bytes, 6u * 256 + 192 * 128 + 512 + 8192);
}

TEST(PageTest, ExactFormatKeepsWideAndBrainFloats) {
  const auto exact_code = [](const char* text) {
    const SideFormat exact = ExactFormatOf(ResolveText(text, SideKind::kValue, 72));
    EXPECT_TRUE(exact.exact);
    EXPECT_EQ(exact.kind, SideKind::kValue);
    EXPECT_EQ(exact.dim, 72);
    EXPECT_EQ(exact.padded_dim, 80);
    EXPECT_EQ(exact.codes_bytes(), size_t{128} * 80 * exact.bits / 8);
    return exact.code;
  };
  EXPECT_EQ(exact_code("f32"), Code::kF32);
  EXPECT_EQ(exact_code("bf16"), Code::kBf16);
  EXPECT_EQ(exact_code("f16"), Code::kF16);
  EXPECT_EQ(exact_code("u4/tok"), Code::kF16);
  EXPECT_EQ(exact_code("e4m3/page"), Code::kF16);
}

TEST(PageTest, DescriptorHoldsThePageScaleOfItsSide) {
  std::vector<float> x(kPageTokens * 64);
  x[100] = -224;
  const SealedSide key(ResolveText("e4m3/page", SideKind::kKey, 64), x);
  EXPECT_EQ(key.descriptor.k_page_scale, 0.5f);
  EXPECT_EQ(key.descriptor.v_page_scale, 0.0f);
  EXPECT_EQ(key.Unsealed()[100], -224);
  const SealedSide value(ResolveText("e5m2/page", SideKind::kValue, 64), x);
  EXPECT_EQ(value.descriptor.v_page_scale, 224.0f / 57344);
  EXPECT_EQ(value.descriptor.k_page_scale, 0.0f);
}

TEST(PageTest, GivenScaleCountsWhatItClips) {
  std::vector<float> x(kPageTokens * 64, 1);
  x[0] = 448, x[64] = 449, x[65] = -1000, x[200] = 465;
  const SealedSide sealed(ResolveText("e4m3/page:one", SideKind::kKey, 64), x);
  EXPECT_EQ(sealed.descriptor.k_page_scale, 1.0f);
  EXPECT_EQ(sealed.descriptor.clipped_values, 3u);
  EXPECT_EQ(sealed.Unsealed()[65], -448);
  EXPECT_EQ(SealedSide(sealed.format, x, 2).descriptor.clipped_values, 1u);
  EXPECT_EQ(SealedSide(ResolveText("e4m3/page", SideKind::kKey, 64), x).descriptor.clipped_values,
            0u);
}

// Rows before `first` may hold anything, and the page is as if they were not there.
TEST(PageTest, SinkRowsTakeNoPart) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* text : {"u4/tok", "u2/ch32", "rn3/ch", "mu:had:lm4/tok", "mu:u8/tok32",
                           "e4m3/page", "q4_0", "mxfp4", "nvfp4", "i8/ch"}) {
    for (int first : {1, 31, 32, 100, 127, 128}) {
      SCOPED_TRACE(std::string(text) + " " + std::to_string(first));
      const SideFormat format = ResolveText(text, SideKind::kKey, 64);
      std::vector<float> with_nan = Normals(64, 64), with_zero = with_nan;
      std::fill_n(with_nan.begin(), first * 64, nan);
      std::fill_n(with_zero.begin(), first * 64, 0.0f);
      const SealedSide a(format, with_nan, first), b(format, with_zero, first);
      EXPECT_EQ(a.page, b.page);
      EXPECT_EQ(a.descriptor.first_token, static_cast<uint32_t>(first));
      for (float v : a.Unsealed()) ASSERT_TRUE(std::isfinite(v));
    }
  }
}

TEST(PageTest, AllRowsExcludedIsAPageOfZeros) {
  const SealedSide sealed(ResolveText("mu:had:u4/tok", SideKind::kKey, 64), Normals(64, 64), 128);
  for (uint8_t byte : sealed.page) EXPECT_EQ(byte, 0);
}

// Keys far from zero: without the mean the scale would have to span it.
TEST(PageTest, MeanIsStoredSubtractedAndAddedBack) {
  std::vector<float> x = Normals(64, 64);
  for (size_t i = 0; i < x.size(); ++i) x[i] += i % 64 == 5 ? 100.0f : 0.0f;
  const SideFormat format = ResolveText("mu:u8/tok", SideKind::kKey, 64);
  const SealedSide sealed(format, x);
  std::vector<float> mean(64);
  ReadMeta(format, sealed.part, sealed.page.data(), sealed.descriptor, nullptr, nullptr,
           mean.data());
  for (int c = 0; c < 64; ++c) {
    double sum = 0;
    for (int t = 0; t < kPageTokens; ++t) sum += x[t * 64 + c];
    EXPECT_NEAR(mean[c], sum / kPageTokens, std::fabs(sum / kPageTokens) / 2048 + 1e-5) << c;
    EXPECT_EQ(RoundToF16(mean[c]), mean[c]);
  }
  const std::vector<float> read = sealed.Unsealed();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(read[i], x[i], .02) << i;
}

TEST(PageTest, PaddingChannelsHoldTheCodeNearestZero) {
  for (const auto& [text, zero] :
       {std::pair{"u4/tok", 0}, {"i4/ch", 8}, {"lm2/tok", 1}, {"nf4/tok", 7}, {"e4m3/page", 0}}) {
    const SealedSide sealed(ResolveText(text, SideKind::kValue, 72), Normals(72, 72, 1, 3));
    const std::vector<uint8_t> codes = sealed.Codes();
    for (int t = 0; t < kPageTokens; ++t) {
      for (int c = 72; c < 80; ++c) ASSERT_EQ(codes[t * 80 + c], zero) << text;
    }
  }
}

// The same numbers, whichever side of the page: only their order differs.
TEST(PageTest, KeysAndValuesReadTheSame) {
  for (const char* text : {"u4/tok32", "u3/ch32", "had:lm4/tok", "q5_1", "nvfp4"}) {
    const std::vector<float> x = Normals(96, 96, 1, 1);
    EXPECT_EQ(SealedSide(ResolveText(text, SideKind::kKey, 96), x).Unsealed(),
              SealedSide(ResolveText(text, SideKind::kValue, 96), x).Unsealed())
        << text;
  }
}

}  // namespace
}  // namespace shorthand
