#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "quant/page.h"

namespace shorthand {
namespace {

constexpr int kBits[] = {2, 3, 4, 5, 6, 8};
constexpr SideKind kKinds[] = {SideKind::kKey, SideKind::kValue};

// Which tile and which byte of it holds a code, by the loops of docs/formats/page.md.
struct Place {
  int tile;
  int byte;
};

Place PlaceOf(SideKind kind, int dim, int token, int channel) {
  if (kind == SideKind::kKey) {
    const int pair = token / 32, quad = channel / 4, i = token / 16 % 2;
    return {pair * (dim / 2) + quad * 2 + i, token % 16 * 4 + channel % 4};
  }
  const int pair = channel / 32, quad = token / 4, i = channel / 16 % 2;
  const bool alone = dim / 16 % 2 == 1 && channel >= dim - 16;
  return {pair * 64 + (alone ? quad : quad * 2 + i), channel % 16 * 4 + token % 4};
}

// Bit `bit` of the code in tile `tile`, byte `byte`: which bit of which byte of the lines. From the
// table of the document, bit by bit.
struct BitPlace {
  int byte;
  int bit;
};

BitPlace BitOf(int bits, Place place, int bit) {
  const auto at = [&](int pack_lines, int pack_tiles, int line, int shift) {
    const int pack = place.tile / pack_tiles;
    return BitPlace{(pack * pack_lines + line) * 64 + place.byte, shift};
  };
  switch (bits) {
    case 2:
      return at(1, 4, 0, place.tile % 4 * 2 + bit);
    case 4:
      return at(1, 2, 0, place.tile % 2 * 4 + bit);
    case 5: {
      const int tile = place.tile % 8;
      return bit == 4 ? at(5, 8, 0, tile) : at(5, 8, 1 + tile / 2, tile % 2 * 4 + bit);
    }
    case 6: {
      const int tile = place.tile % 4;
      return bit >= 4 ? at(3, 4, 0, 2 * tile + bit - 4)
                      : at(3, 4, 1 + tile / 2, tile % 2 * 4 + bit);
    }
    case 3: {
      const int tile = place.tile % 8;
      if (tile < 6) return at(3, 8, tile / 2, tile % 2 * 3 + bit);
      const int spread = (tile - 6) * 3 + bit;
      return at(3, 8, spread / 2, 6 + spread % 2);
    }
    default:
      return at(1, 1, 0, bit);
  }
}

std::vector<uint8_t> RandomCodes(int dim, int bits) {
  std::mt19937 random(static_cast<uint32_t>(dim * 10 + bits));
  std::vector<uint8_t> codes(static_cast<size_t>(kPageTokens) * dim);
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random() & ((1u << bits) - 1));
  return codes;
}

std::vector<uint8_t> Pack(SideKind kind, int dim, int bits, const std::vector<uint8_t>& codes) {
  std::vector<uint8_t> lines(static_cast<size_t>(16) * dim * bits, 0xee);
  PackCodes(kind, dim, bits, codes.data(), lines.data());
  return lines;
}

TEST(LinesTest, EveryBitIsWhereTheDocumentSays) {
  for (SideKind kind : kKinds) {
    for (int dim : {16, 48, 64, 80, 128}) {
      for (int bits : kBits) {
        const std::vector<uint8_t> codes = RandomCodes(dim, bits);
        std::vector<uint8_t> expected(static_cast<size_t>(16) * dim * bits);
        for (int i = 0; i < kPageTokens * dim; ++i) {
          const Place place = PlaceOf(kind, dim, i / dim, i % dim);
          for (int bit = 0; bit < bits; ++bit) {
            const BitPlace to = BitOf(bits, place, bit);
            expected[to.byte] |= static_cast<uint8_t>((codes[i] >> bit & 1) << to.bit);
          }
        }
        EXPECT_EQ(Pack(kind, dim, bits, codes), expected) << dim << " " << bits;
      }
    }
  }
}

TEST(LinesTest, UnpackUndoesPackForEveryKindDimAndWidth) {
  for (SideKind kind : kKinds) {
    for (int dim = 16; dim <= 256; dim += 16) {
      for (int bits : kBits) {
        const std::vector<uint8_t> codes = RandomCodes(dim, bits);
        const std::vector<uint8_t> lines = Pack(kind, dim, bits, codes);
        std::vector<uint8_t> back(codes.size(), 0xee);
        UnpackCodes(kind, dim, bits, lines.data(), back.data());
        EXPECT_EQ(back, codes) << dim << " " << bits;
      }
    }
  }
}

TEST(LinesTest, EveryCodeFitsEveryPositionOfAPack) {
  for (int bits : kBits) {
    for (int code = 0; code < (1 << bits); ++code) {
      const std::vector<uint8_t> codes(kPageTokens * 16, static_cast<uint8_t>(code));
      std::vector<uint8_t> back(codes.size());
      UnpackCodes(SideKind::kKey, 16, bits, Pack(SideKind::kKey, 16, bits, codes).data(),
                  back.data());
      ASSERT_EQ(back, codes) << bits;
    }
  }
}

// A quad of channels is a key page of its own whose pairs of token tiles follow each other: 4
// channels, so that its tiles are the eight token tiles.
TEST(LinesTest, PlanesAreQuadsWithWidthsOfTheirOwn) {
  const std::vector<uint8_t> widths = {8, 6, 5, 4, 3, 2, 2, 8};
  const int dim = 4 * static_cast<int>(widths.size());
  std::vector<uint8_t> codes = RandomCodes(dim, 8), expected(38 * 64);
  for (int i = 0, line = 0; i < static_cast<int>(widths.size()); line += widths[i++]) {
    for (int t = 0; t < kPageTokens; ++t) {
      for (int c = 0; c < 4; ++c) {
        uint8_t& code = codes[t * dim + 4 * i + c];
        code &= static_cast<uint8_t>((1 << widths[i]) - 1);
        for (int bit = 0; bit < widths[i]; ++bit) {
          const BitPlace to = BitOf(widths[i], {t / 16, t % 16 * 4 + c}, bit);
          expected[64 * line + to.byte] |= static_cast<uint8_t>((code >> bit & 1) << to.bit);
        }
      }
    }
  }
  std::vector<uint8_t> lines(expected.size(), 0xee), back(codes.size(), 0xee);
  PackPlanes(dim, widths.data(), codes.data(), lines.data());
  EXPECT_EQ(lines, expected);
  UnpackPlanes(dim, widths.data(), lines.data(), back.data());
  EXPECT_EQ(back, codes);
}

TEST(LinesTest, TheDocumentsExample) {
  std::vector<uint8_t> codes(kPageTokens * 64);
  codes[17 * 64 + 5] = 0xa;
  std::vector<uint8_t> expected(16 * 64 * 4);
  expected[69] = 0xa0;
  EXPECT_EQ(Pack(SideKind::kKey, 64, 4, codes), expected);
}

}  // namespace
}  // namespace shorthand
