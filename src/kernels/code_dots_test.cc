// The integer dot products of every target at the ends of their ranges, against 64-bit integers:
// sums of 255 * -128 and of everything else that an instruction might saturate or read with the
// wrong sign. The operations Dot, DotSmall and DotWide are reached through the two kernels that use
// them, with folded factors written by hand and metadata that changes nothing, so that a kernel's
// result is the integer itself. scalar counts one product after the other and thus stands for what
// the instructions of the others do, also on a CPU that lacks them.
#include "kernels/kernels_testing.h"

namespace shorthand {
namespace {

constexpr int kSlots = 128;
constexpr int kBytesOfLine = 64;

// What a code, once read, is multiplied as. Tables have their extremes in the first four entries.
struct Codes {
  int bits;
  const uint8_t* table;
  std::vector<int> extremes;  // codes
  // As keys (unsigned) and as values (signed).
  int Key(int code) const { return table == nullptr ? code : table[code]; }
  int Value(int code) const {
    if (table != nullptr) return static_cast<int8_t>(table[code]);
    return bits == 8 ? code - 128 : code;
  }
};

// The largest that Dot takes as unsigned entries of keys, and DotSmall as signed entries of values.
constexpr uint8_t kKeyTable[16] = {127, 0, 126, 1};
constexpr uint8_t kValueTable[16] = {64, 0xc0, 63, 0};
const Codes kWideCodes = {8, nullptr, {255, 0, 127, 128}};
const Codes kNarrowCodes = {6, nullptr, {63, 0, 1, 62}};
const Codes kKeyTableCodes = {4, kKeyTable, {0, 1, 2, 3}};
const Codes kValueTableCodes = {4, kValueTable, {0, 1, 2, 3}};

// Draws one of a few values, mostly the first: long runs of the same extreme are what saturates.
int Draw(const std::vector<int>& extremes, std::mt19937* generator) {
  const uint32_t n = (*generator)();
  return n % 4 != 0 ? extremes[0] : extremes[n / 4 % extremes.size()];
}

// Sets the code of lane and position in the lines of a side, as docs/formats/page.md has them for
// an even number of lane tiles.
void SetCode(int bits, int positions, int lane, int position, int code, uint8_t* lines) {
  const int quad = lane / 32 * (positions / 4) + position / 4;  // of a pair of tiles
  const int odd = lane / 16 % 2, byte = lane % 16 * 4 + position % 4;
  if (bits == 8) {
    lines[(2 * quad + odd) * kBytesOfLine + byte] = static_cast<uint8_t>(code);
  } else if (bits == 4) {
    lines[quad * kBytesOfLine + byte] |= static_cast<uint8_t>(code << 4 * odd);
  } else {  // 6: two quads are a line of top bits, two fields each, and two lines of nibbles
    uint8_t* three = lines + quad / 2 * 3 * kBytesOfLine;
    three[byte] |= static_cast<uint8_t>(code >> 4 << (4 * (quad % 2) + 2 * odd));
    three[(1 + quad % 2) * kBytesOfLine + byte] |= static_cast<uint8_t>((code & 15) << 4 * odd);
  }
}

// A side of random extremes with scale 1 and offset 0 per channel, and its codes.
struct TestSide {
  AlignedVector<uint8_t> lines;
  AlignedVector<float> ones;
  std::vector<int> code;  // [lane][position]
  CodedSide8 side;

  TestSide(const Codes& codes, int lanes, int positions, int dim, uint32_t seed)
      : lines(static_cast<size_t>(lanes) * positions * codes.bits / 8), ones(dim, 1.0f) {
    std::mt19937 generator(seed);
    for (int lane = 0; lane < lanes; ++lane) {
      for (int p = 0; p < positions; ++p) {
        code.push_back(Draw(codes.extremes, &generator));
        SetCode(codes.bits, positions, lane, p, code.back(), lines.data());
      }
    }
    side = {.lines = lines.data(),
            .meta = ones.data(),
            .table = codes.table,
            .unit = 1.0f,
            .base = 0,
            .shift = 0.0f,
            .dim = dim,
            .bits = codes.bits,
            .per_channel = true,
            .group = kSlots,
            .has_offset = false};
  }
};

// Limbs [row][kMaxLimbs][positions] for `rows` rows.
template <typename Byte>
std::vector<Byte> Limbs(const std::vector<int>& extremes, int rows, int positions) {
  std::mt19937 generator(rows);
  std::vector<Byte> bytes(static_cast<size_t>(kMaxLimbs) * rows * positions);
  for (Byte& byte : bytes) byte = static_cast<Byte>(Draw(extremes, &generator));
  return bytes;
}

// The sum for one lane and row; `level` reads a code.
template <typename Byte, typename Level>
float Expected(const TestSide& test, const std::vector<Byte>& bytes, int limbs, int row, int lane,
               int positions, Level level) {
  double joined = 0;
  for (int l = 0; l < limbs; ++l) {
    int64_t sum = 0;
    for (int p = 0; p < positions; ++p) {
      sum += static_cast<int64_t>(level(test.code[lane * positions + p])) *
             bytes[(static_cast<size_t>(row) * kMaxLimbs + l) * positions + p];
    }
    joined += static_cast<double>(sum) * (l == 0 ? 1 : 256);
  }
  return static_cast<float>(joined);  // rounded once, as by the kernels' multiply-add
}

void ExpectExactScores(const Codes& codes, int dim, int limbs) {
  const TestSide test(codes, kSlots, dim, dim, dim);
  for (const std::vector<int>& extremes : {std::vector<int>{-128, 127, 0, -1}, {127, -128, 1}}) {
    for (int rows = 1; rows <= kMaxPassRows; ++rows) {
      std::vector<int8_t> bytes = Limbs<int8_t>(extremes, rows, dim);
      FoldedQueries q = {};
      q.limbs = limbs;
      q.bytes = bytes.data();
      for (float& scale : q.scale[0]) scale = 1.0f;
      for (const CodePath& path : CodePaths(rows)) {
        std::vector<float> scores(rows * kSlots);
        path.Score(test.side, q, rows, 0, 8, scores.data());
        for (int i = 0; i < rows * kSlots; ++i) {
          ASSERT_EQ(scores[i], Expected(test, bytes, limbs, i / kSlots, i % kSlots, dim,
                                        [&](int code) { return codes.Key(code); }))
              << path.name() << ", " << codes.bits << " bits, row " << i / kSlots << " of " << rows;
        }
      }
    }
  }
}

void ExpectExactOutputs(const Codes& codes, int dim, int limbs) {
  const TestSide test(codes, dim, kSlots, dim, dim);
  const std::vector<float> keep(kMaxPassRows, 1.0f);
  for (const std::vector<int>& extremes : {std::vector<int>{255, 0, 128, 127}, {128, 255, 1}}) {
    for (int rows = 1; rows <= kMaxPassRows; ++rows) {
      std::vector<uint8_t> bytes = Limbs<uint8_t>(extremes, rows, kSlots);
      FoldedWeights w = {};
      w.limbs = limbs;
      w.bytes = bytes.data();
      for (float& scale : w.scale[0]) scale = 1.0f;
      for (const CodePath& path : CodePaths(rows)) {
        std::vector<float> out(rows * dim, 0.0f);
        path.Accumulate(test.side, w, keep.data(), rows, out.data());
        for (int i = 0; i < rows * dim; ++i) {
          ASSERT_EQ(out[i], Expected(test, bytes, limbs, i / dim, i % dim, kSlots,
                                     [&](int code) { return codes.Value(code); }))
              << path.name() << ", " << codes.bits << " bits, row " << i / dim << " of " << rows;
        }
      }
    }
  }
}

// Sums stay below 2^24 in magnitude, where floats hold every integer: 256 * 255 * 128.
TEST(CodeDotsTest, KeysOfAllBytes) {
  for (int dim : {16, 80, 256}) ExpectExactScores(kWideCodes, dim, 2);
  ExpectExactScores(kWideCodes, 256, 1);
}

TEST(CodeDotsTest, KeysUpTo127) {
  for (int dim : {16, 80, 256}) {
    ExpectExactScores(kKeyTableCodes, dim, 1);
    ExpectExactScores(kNarrowCodes, dim, 1);
    ExpectExactScores(kNarrowCodes, dim, 2);
  }
}

TEST(CodeDotsTest, ValuesOfAllBytes) {
  for (int dim : {32, 128}) ExpectExactOutputs(kWideCodes, dim, 2);
}

TEST(CodeDotsTest, ValuesWithin64) {
  for (int dim : {32, 128}) {
    ExpectExactOutputs(kValueTableCodes, dim, 1);
    ExpectExactOutputs(kNarrowCodes, dim, 2);
  }
}

}  // namespace
}  // namespace shorthand
