// Blocks against the bytes and values of ggml's reference quantizers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/golden_csv.h"
#include "base/half.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

std::vector<uint8_t> BytesOf(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// Bits of f32, eight digits each.
std::vector<float> FloatsOf(const std::string& hex) {
  std::vector<float> floats;
  for (size_t i = 0; i + 7 < hex.size(); i += 8) {
    floats.push_back(
        std::bit_cast<float>(static_cast<uint32_t>(std::stoul(hex.substr(i, 8), nullptr, 16))));
  }
  return floats;
}

void AppendF16(float x, std::vector<uint8_t>* bytes) {
  const uint16_t h = F32ToF16(x);
  bytes->push_back(static_cast<uint8_t>(h));
  bytes->push_back(static_cast<uint8_t>(h >> 8));
}

// Low nibbles of codes [2n], element j beside element j + n.
void AppendNibbles(const uint8_t* codes, int n, std::vector<uint8_t>* bytes) {
  for (int j = 0; j < n; ++j) {
    bytes->push_back(static_cast<uint8_t>((codes[j] & 15) | (codes[j + n] & 15) << 4));
  }
}

// A block of 32 in ggml's form.
void AppendBlock(const std::string& name, const uint8_t* codes, float scale, float offset,
                 std::vector<uint8_t>* bytes) {
  if (name == "mxfp4") {
    bytes->push_back(static_cast<uint8_t>(std::ilogb(scale) + 128));
    AppendNibbles(codes, 16, bytes);
    return;
  }
  AppendF16(scale, bytes);
  if (name == "q8_0") {
    for (int j = 0; j < 32; ++j) bytes->push_back(static_cast<uint8_t>(codes[j] - 128));
    return;
  }
  if (name == "q4_1" || name == "q5_1") AppendF16(offset, bytes);
  if (name == "q5_0" || name == "q5_1") {
    uint32_t fifth = 0;
    for (int j = 0; j < 32; ++j) fifth |= static_cast<uint32_t>(codes[j] >> 4) << j;
    for (int i = 0; i < 4; ++i) bytes->push_back(static_cast<uint8_t>(fifth >> (8 * i)));
  }
  AppendNibbles(codes, 16, bytes);
}

// 64 values of token 0 in ggml's form, from codes [128][64] and scales [groups][128].
std::vector<uint8_t> BlocksOf(const std::string& name, const std::vector<uint8_t>& codes,
                              const std::vector<float>& scales, const std::vector<float>& offsets) {
  std::vector<uint8_t> bytes;
  if (name == "nvfp4") {  // four scales, then their codes
    for (int g = 0; g < 4; ++g) bytes.push_back(F32ToE4m3(2 * scales[g * kPageTokens]));
    for (int g = 0; g < 4; ++g) AppendNibbles(codes.data() + 16 * g, 8, &bytes);
    return bytes;
  }
  for (int g = 0; g < 2; ++g) {
    AppendBlock(name, codes.data() + 32 * g, scales[g * kPageTokens], offsets[g * kPageTokens],
                &bytes);
  }
  return bytes;
}

// The 64 values from `begin` on as token 0 of a page, sealed and compared with the same stretch of
// the reference's bytes and values.
void CheckStretch(const std::string& name, const std::vector<float>& input, size_t begin,
                  const std::vector<uint8_t>& bytes, const std::vector<float>& values) {
  const SideFormat format = ResolveText(name, SideKind::kKey, 64);
  std::vector<float> x(kPageTokens * 64);
  std::copy_n(input.begin() + static_cast<std::ptrdiff_t>(begin), 64, x.begin());
  const SealedSide sealed(format, x);
  std::vector<float> scales(static_cast<size_t>(format.groups()) * kPageTokens);
  std::vector<float> offsets(scales.size());
  ReadMeta(format, sealed.part, sealed.page.data(), sealed.descriptor, scales.data(),
           offsets.data(), nullptr);
  const std::vector<uint8_t> blocks = BlocksOf(name, sealed.Codes(), scales, offsets);
  const size_t at = begin / 64 * blocks.size();
  ASSERT_LE(at + blocks.size(), bytes.size());
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(blocks[i], bytes[at + i]) << "byte " << i;
  const std::vector<float> read = sealed.Unsealed();
  // By value: a zero may have either sign.
  for (int i = 0; i < 64; ++i) EXPECT_EQ(read[i], values[begin + i]) << "value " << i;
}

// Magnitudes that no f16 row holds: an infinite 1/d or an exponent that wraps make the reference's
// codes meaningless.
bool IsBelowF16(const std::string& name, const std::string& format) {
  return name == "tiny_1e-38" && format != "nvfp4";
}

// Where a scale or minimum of the reference overflows, pages saturate instead (tested below).
bool Overflows(const std::vector<float>& values, size_t begin) {
  return !std::all_of(values.begin() + static_cast<std::ptrdiff_t>(begin),
                      values.begin() + static_cast<std::ptrdiff_t>(begin) + 64,
                      [](float v) { return std::isfinite(v); });
}

TEST(GgmlGoldenTest, CodesScalesAndValuesEqualTheReference) {
  const CsvRows rows = ReadGoldenCsv("ggml_quant_golden.csv");
  if (rows.empty()) GTEST_SKIP() << "The shared golden data is not there.";
  std::map<std::string, std::vector<float>> inputs;
  int compared = 0;
  for (const auto& row : rows) {
    if (row[1] == "input_f32") {
      inputs[row[0]] = FloatsOf(row[3]);
      continue;
    }
    if (IsBelowF16(row[0], row[1])) continue;
    SCOPED_TRACE(row[0] + " " + row[1]);
    const std::vector<float>& input = inputs.at(row[0]);
    const std::vector<float> values = FloatsOf(row[4]);
    for (size_t begin = 0; begin < input.size(); begin += 64) {
      if (Overflows(values, begin)) continue;
      CheckStretch(row[1], input, begin, BytesOf(row[3]), values);
      ++compared;
    }
  }
  EXPECT_GT(compared, 250);
}

// The documented deviation: what overflows in the reference saturates here.
TEST(GgmlGoldenTest, OverflowingScalesSaturate) {
  for (const char* name : {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "mxfp4", "nvfp4"}) {
    std::vector<float> x(kPageTokens * 64);
    for (size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? 2e7f : -2e7f;
    for (float v : SealedSide(ResolveText(name, SideKind::kKey, 64), x).Unsealed()) {
      ASSERT_TRUE(std::isfinite(v)) << name;
    }
  }
}

}  // namespace
}  // namespace shorthand
