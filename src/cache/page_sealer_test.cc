// Sealing by kernels against the codecs that define the bytes: every format with a kernel, on every
// target of this machine.
#include "cache/page_sealer.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <tuple>

#include "base/half.h"
#include "kernels/kernels_testing.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

constexpr int kDims[] = {8, 16, 64, 80, 96, 128, 256};
constexpr int kSinks[] = {3, 17, 127, 128, 32};

// Values of a side that f16 holds exactly, by name.
struct Data {
  std::string name;
  std::vector<float> x;  // [128][dim]
};

std::vector<Data> AllData(int dim) {
  const size_t n = static_cast<size_t>(kPageTokens) * dim;
  std::mt19937 generator(dim);
  std::normal_distribution<float> normal;
  const auto filled = [&](auto value) {
    std::vector<float> x(n);
    for (size_t i = 0; i < n; ++i) x[i] = RoundToF16(value(i));
    return x;
  };
  const auto pick = [&](std::initializer_list<float> values) {
    return values.begin()[generator() % values.size()];
  };
  std::vector<Data> all = {
      {"random", filled([&](size_t i) { return normal(generator) * (1 + i % dim % 5); })},
      {"constant", filled([](size_t) { return -1.5f; })},
      {"zeros", filled([](size_t) { return 0.0f; })},
      {"signed zeros", filled([&](size_t) { return pick({0.0f, -0.0f}); })},
      {"zeros and ones", filled([&](size_t) { return pick({0.0f, -0.0f, 1.0f}); })},
      {"extremes", filled([&](size_t) { return pick({65504.0f, -65504.0f, 1.0f}); })},
      {"subnormals", filled([&](size_t) { return pick({0x1p-24f, -0x3p-24f, 0x1p-20f}); })},
      // Quarters: with the scales that result, many quotients are ties.
      {"ties", filled([&](size_t) { return static_cast<float>(generator() % 61) / 4 - 7.5f; })},
      // Scales of 1 or 1/2, if the first value of 32 is the loudest: ties of blocks.
      {"halves up to 127",
       filled([&](size_t i) { return i % 32 == 0 ? 127 : generator() % 509 * 0.5f - 127; })},
      {"halves from -8",
       filled([&](size_t i) { return i % 32 == 0 ? -8 : generator() % 32 * 0.5f - 7.5f; })},
      {"halves from 0 to 31",
       filled([&](size_t i) { return i % 32 < 2 ? i % 32 * 31.0f : generator() % 63 * 0.5f; })},
      // Around and below the least normal number of e4m3.
      {"sixteenths of 2^-9",
       filled([&](size_t) { return (generator() % 1024 - 512.0f) * 0x1p-13f; })},
      {"outlier", filled([&](size_t) { return normal(generator) / 16; })},
  };
  all.back().x[n * 5 / 7] = 1000.0f;
  return all;
}

// Tables that no calibration would give: a balance of powers of two, channels in any order, widths
// that neither rise nor fall and leave lines over.
HeadTables OddTables(const SideFormat& side) {
  std::mt19937 generator(side.dim);
  HeadTables tables = NeutralTables(side);
  for (size_t c = 0; c < tables.balance.size(); ++c) {
    tables.inverse_balance[c] = std::exp2f(static_cast<float>(generator() % 7) - 3);
    tables.balance[c] = 1 / tables.inverse_balance[c];
  }
  for (size_t c = 0; c < tables.mean.size(); ++c) {
    tables.mean[c] = static_cast<float>(c % 7) / 4 - 0.5f;
  }
  if (side.code != Code::kWater) return tables;
  std::iota(tables.order.begin(), tables.order.end(), uint16_t{0});
  std::shuffle(tables.order.begin(), tables.order.begin() + side.dim, generator);
  int left = side.plane_lines - side.padded_dim / 2;
  for (int quad = 0; quad < side.padded_dim / 4; ++quad) {
    constexpr int kMore[] = {0, 1, 2, 3, 4, 6};
    const int more = kMore[generator() % std::size(kMore)];
    tables.widths[quad] = static_cast<uint8_t>(more <= left ? 2 + more : 2);
    left -= more <= left ? more : 0;
  }
  return tables;
}

LayerFormat LayerOf(const SideFormat& k, const SideFormat& v) {
  LayerFormat layer;
  layer.kv_heads = 1;
  layer.k_tables.push_back(OddTables(k));
  layer.v_tables.push_back(OddTables(v));
  layer.k = k;
  layer.v = v;
  layer.exact_k = ExactFormatOf(k);
  layer.exact_v = ExactFormatOf(v);
  layer.sealed = LayoutOf(k, v);
  layer.exact = LayoutOf(layer.exact_k, layer.exact_v);
  return layer;
}

// The page of a layer with the same rows as keys and as values, sealed by the codecs.
struct Reference {
  Reference(const LayerFormat& layer, const std::vector<float>& x, int first)
      : page(layer.sealed.bytes, 0x55) {
    descriptor.first_token = first;
    const SealedSide k(layer.k, layer.k_tables[0], x, first);
    const SealedSide v(layer.v, layer.v_tables[0], x, first);
    descriptor.k_page_scale = k.descriptor.k_page_scale;
    descriptor.v_page_scale = v.descriptor.v_page_scale;
    descriptor.clipped_values = k.descriptor.clipped_values + v.descriptor.clipped_values;
    std::copy(k.page.begin(), k.page.end(), page.begin() + layer.sealed.k.meta_offset);
    std::copy(v.page.begin(), v.page.end(), page.begin() + layer.sealed.v.meta_offset);
  }
  AlignedVector<uint8_t> page;
  PageDescriptor descriptor;
};

AlignedVector<uint8_t> ExactPage(const LayerFormat& layer, const std::vector<float>& x) {
  AlignedVector<uint8_t> page(layer.exact.bytes);
  const ExactRows rows(layer);
  const int dim = layer.k.dim;
  EXPECT_TRUE(rows.WriteKeys(page.data(), 0, kPageTokens, x.data(), dim));
  EXPECT_TRUE(
      rows.WriteValues(page.data() + rows.ValueOffset(kPageTokens), 0, kPageTokens, x.data(), dim));
  return page;
}

void CheckPage(const LayerFormat& layer, const Data& data, int first) {
  const Reference want(layer, data.x, first);
  const AlignedVector<uint8_t> exact = ExactPage(layer, data.x);
  for (const KernelTable* table : RunnableTargets()) {
    AlignedVector<uint8_t> page(layer.sealed.bytes, 0x55);
    PageDescriptor descriptor;
    PageSealer(layer, *table).Seal(exact.data(), 0, 0, first, page.data(), &descriptor);
    const auto at = std::mismatch(page.begin(), page.end(), want.page.begin());
    ASSERT_TRUE(at.first == page.end())
        << table->name << ", " << data.name << ", first token " << first << ": byte "
        << at.first - page.begin() << " of " << page.size() << " is " << int{*at.first} << " not "
        << int{*at.second} << "; codes of K from " << layer.sealed.k.codes_offset
        << ", metadata of V from " << layer.sealed.v.meta_offset << ", codes of V from "
        << layer.sealed.v.codes_offset;
    EXPECT_EQ(descriptor.first_token, want.descriptor.first_token);
    EXPECT_EQ(descriptor.clipped_values, want.descriptor.clipped_values);
    EXPECT_EQ(descriptor.k_page_scale, want.descriptor.k_page_scale);
    EXPECT_EQ(descriptor.v_page_scale, want.descriptor.v_page_scale);
  }
}

bool HasKernel(const Codec& codec) {
  return codec.code != Code::kIq4Nl && codec.scale_type != ScaleType::kE8m0 &&
         codec.scale_type != ScaleType::kUe4m3;
}

// The groups that a code may have in a head of `dim`, as text.
std::vector<std::string> GroupsOf(const Codec& codec, int dim) {
  if (codec.scale_type == ScaleType::kPage) return {"/page"};
  if (codec.code == Code::kWater) return {};  // of keys alone
  if (codec.fixed_group != 0) {
    return dim % codec.fixed_group == 0 ? std::vector<std::string>{""} : std::vector<std::string>{};
  }
  std::vector<std::string> groups = {"/tok", "/ch", "/ch32"};
  if (dim % 32 == 0) groups.push_back("/tok32");
  if (dim % 64 == 0) groups.push_back("/tok64");
  return groups;
}

// One format as keys and as values: all data without sinks, and each with one number of sinks.
void CheckFormat(const std::string& key_text, const std::string& value_text, int dim) {
  const LayerFormat layer = LayerOf(ResolveText(key_text, SideKind::kKey, dim),
                                    ResolveText(value_text, SideKind::kValue, dim));
  ASSERT_TRUE(SealJobOf(layer.k, {}, 0).has_value());
  const std::vector<Data> all = AllData(dim);
  for (size_t i = 0; i < all.size(); ++i) {
    for (const int first : {0, kSinks[i % std::size(kSinks)]}) {
      SCOPED_TRACE(key_text + ", head of " + std::to_string(dim));
      CheckPage(layer, all[i], first);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

class PageSealerTest : public ::testing::TestWithParam<int> {};

TEST_P(PageSealerTest, EveryCodeAndGroupAsItsCodec) {
  for (const Codec& codec : Registry()) {
    if (!HasKernel(codec)) continue;
    for (const std::string& group : GroupsOf(codec, GetParam())) {
      const std::string text = std::string(codec.name) + group;
      CheckFormat(text, text, GetParam());
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(PageSealerTest, StepsAndTunesAsTheirCodec) {
  const std::tuple<const char*, const char*> formats[] = {{"mu:u4/tok", "had:u4/tok"},
                                                          {"mu:had:lm4/tok", "had:lm4/tok"},
                                                          {"had:u2/ch32", "had:lm3/ch"},
                                                          {"had:i8/tok", "had:rn3/ch32"},
                                                          {"u4/tok:clip0.9", "u3/ch:clip0.75"},
                                                          {"rn3/ch:clip0.9", "i4/tok:clip0.5"},
                                                          {"had:lm2/tok:norm", "lm4/ch:norm"},
                                                          {"mu:lm4/tok:norm", "lm3/tok:norm"},
                                                          {"u4/ch:mse", "had:u3/tok:mse"},
                                                          {"had:i8/tok:mse", "i4/ch32:mse"},
                                                          {"rn3/ch:mse", "had:rn4/tok:mse"},
                                                          {"mu:u5/tok:mse", "had:u2/ch:mse"},
                                                          {"mu:had:lm4/tok:ub", "had:lm2/tok:ub"},
                                                          {"lm3/ch:ub", "lm2/ch32:ub"},
                                                          {"bal:had:u8/ch", "had:i6/tok"},
                                                          {"mu:bal:u4/tok", "had:i5/tok"},
                                                          {"mu:e4m3/page", "had:e4m3/page"},
                                                          {"mu:had:e5m2/page", "had:e5m2/page:one"},
                                                          {"had:e4m3/page:one", "e4m3/page:one"},
                                                          {"e4m3/page:cal", "had:e5m2/page:cal"},
                                                          {"mu:e5m2/page:cal", "e4m3/page:cal"},
                                                          {"mu:had:lm4/tok:cal", "u4/tok"},
                                                          {"mu:smooth:u4/tok:cal", "u4/tok"},
                                                          {"smooth:had:u3/ch:cal", "u4/tok"}};
  for (const auto& [key, value] : formats) {
    CheckFormat(key, value, GetParam());
    if (HasFatalFailure()) return;
  }
}

TEST_P(PageSealerTest, KeysInPlanesAsTheirCodec) {
  for (const char* key : {"w2/ch", "w2.6/ch", "w3/ch", "w4/ch", "w5/ch", "w8/ch", "u2/ch:hi12.5",
                          "u3/ch32:hi30", "had:u4/ch:clip0.9:hi99"}) {
    CheckFormat(key, "u4/tok", GetParam());
    if (HasFatalFailure()) return;
  }
}

TEST_P(PageSealerTest, SmoothedKeysAsTheirCodec) {
  for (const char* key : {"smooth:u4/tok", "mu:smooth:lm4/tok", "smooth:had:i8/tok",
                          "smooth:had:u3/ch32", "smooth:u2/ch:hi12.5", "smooth:e4m3/page"}) {
    CheckFormat(key, "u4/tok", GetParam());
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, PageSealerTest, ::testing::ValuesIn(kDims));

class BlockSealerTest : public ::testing::TestWithParam<int> {};

TEST_P(BlockSealerTest, BlocksWithStepsAsTheirCodec) {
  const std::tuple<const char*, const char*> formats[] = {
      {"mu:q4_0", "had:q4_1"}, {"had:q5_1", "had:q5_0"}, {"mu:had:q8_0", "had:q8_0"}};
  for (const auto& [key, value] : formats) {
    CheckFormat(key, value, GetParam());
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, BlockSealerTest, ::testing::Values(32, 96, 128));

TEST(PageSealerFormatsTest, OtherCodesHaveNoKernel) {
  for (const Codec& codec : Registry()) {
    if (HasKernel(codec)) continue;
    const SideFormat side = ResolveText(std::string(codec.name), SideKind::kKey, 64);
    EXPECT_FALSE(SealJobOf(side, {}, 0).has_value()) << codec.name;
  }
  for (const char* text : {"f16", "pre:u4/ch", "u4/grid", "nuq3/ch:out1", "nuq4/tok:cal",
                           "nuq2/ch:cal", "u2/ch:mse:hi20", "u2/ch:cal:hi12.5", "smooth:iq4_nl"}) {
    EXPECT_FALSE(SealJobOf(ResolveText(text, SideKind::kKey, 64), {}, 0).has_value()) << text;
  }
}

}  // namespace
}  // namespace shorthand
