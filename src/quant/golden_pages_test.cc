// Sealed pages against bytes that scripts/golden-pages.py worked out from docs/formats/ alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/golden_csv.h"
#include "quant/levels.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

// The input that the script's header describes.
std::vector<float> Inputs(int dim) {
  auto state = static_cast<uint32_t>(dim);
  std::vector<float> x;
  for (int t = 0; t < kPageTokens; ++t) {
    for (int c = 0; c < dim; ++c) {
      state = 1664525 * state + 1013904223;
      const int byte = static_cast<int>(state >> 24) - 128;
      x.push_back(static_cast<float>(byte) / 16 + static_cast<float>(c % 5 - 2));
    }
  }
  return x;
}

// The tables that it describes.
void SetPlanes(const SideFormat& format, HeadTables* tables) {
  constexpr int kCycle[] = {8, 6, 5, 4, 3, 2};
  int left = format.plane_lines;
  for (int p = 0; p < format.padded_dim; ++p) {
    const int channel = p < format.dim ? (5 * p + 3) % format.dim : p;
    tables->order.push_back(static_cast<uint16_t>(channel));
    if (p % 4 != 0) continue;
    const int most = left - 2 * ((format.padded_dim - p) / 4 - 1);
    int width = std::min(kCycle[p / 4 % 6], most);
    if (width == 7) width = 6;
    if (format.promoted > 0) width = p < format.promoted ? 2 * format.bits : format.bits;
    tables->widths.push_back(static_cast<uint8_t>(width));
    left -= width;
  }
}

HeadTables Tables(const SideFormat& format) {
  HeadTables tables;
  for (int c = 0; c < format.padded_dim; ++c) {
    const auto channel = static_cast<float>(c % 5);
    tables.mean.push_back(channel - 2.25f);
    tables.balance.push_back(std::exp2f(channel - 2));
    tables.inverse_balance.push_back(1 / tables.balance.back());
    const float factor = format.balance ? tables.inverse_balance.back() : 1;
    tables.low.push_back(factor * static_cast<float>(-5 - c % 3));
    tables.high.push_back(factor * static_cast<float>(5 + c % 4));
  }
  if (format.tunes.cal) tables.page_scale = 1.0f / 64;
  if (format.head_levels) {
    const float* levels = LevelTableOf(Code::kRn, format.bits).levels;
    tables.levels.assign(levels, levels + (1 << format.bits));
    tables.step = 1.0f / 64;
  }
  if (format.planes() && !format.promotes_by_page()) SetPlanes(format, &tables);
  return tables;
}

Rope RopeOf(int dim) {
  Rope rope = {RopePairs::kHalves, {}};
  for (int c = 0; c < dim / 2; ++c) rope.frequencies.push_back(1 / static_cast<float>(1 + c));
  return rope;
}

std::string HexOf(const uint8_t* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

uint64_t Fnv1a64(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

TEST(GoldenPagesTest, EveryPageHasTheDocumentedBytes) {
  const char* root = std::getenv("SHORTHAND_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "SHORTHAND_SOURCE_DIR names the source tree.";
  const CsvRows rows = ReadCsv(std::string(root) + "/tests/golden/pages.csv");
  ASSERT_GT(rows.size(), 300u);
  for (const auto& row : rows) {
    SCOPED_TRACE(fmt::format("{} d={} {} first={}", row[0], row[1], row[2], row[3]));
    const int dim = std::stoi(row[1]);
    const SideKind kind = row[2] == "k" ? SideKind::kKey : SideKind::kValue;
    SideFormat format = ResolveText(row[0], kind, dim);
    if (format.pre) format.rope = RopeOf(dim);
    const SealedSide sealed(format, Tables(format), Inputs(dim), std::stoi(row[3]), 1000);
    const float page_scale =
        kind == SideKind::kKey ? sealed.descriptor.k_page_scale : sealed.descriptor.v_page_scale;
    EXPECT_EQ(fmt::format("{:08x}", std::bit_cast<uint32_t>(page_scale)), row[4]);
    ASSERT_EQ(std::to_string(sealed.part.meta_bytes), row[5]);
    ASSERT_EQ(std::to_string(sealed.part.codes_bytes), row[6]);
    EXPECT_EQ(HexOf(sealed.page.data(), row[7].size() / 2), row[7]);
    EXPECT_EQ(HexOf(sealed.page.data() + sealed.part.codes_offset, row[8].size() / 2), row[8]);
    EXPECT_EQ(fmt::format("{:016x}", Fnv1a64(sealed.page)), row[9]);
  }
}

}  // namespace
}  // namespace shorthand
