// Scores against double precision and, bit for bit, between targets.
#include <algorithm>

#include "kernels/kernels_testing.h"

namespace shorthand {
namespace {

constexpr int kSlots = 128;
constexpr float kUntouched = -12345.0f;

AlignedVector<float> ScoresOf(const KernelTable& table, const Elements& k, std::span<const float> q,
                              int dim, int rows, int first_tile, int end_tile) {
  AlignedVector<float> scores((kMaxPassRows + 1) * kSlots, kUntouched);
  table.score(k.type, k.data(), q.data(), dim, rows, first_tile, end_tile, scores.data());
  return scores;
}

// n products summed one after another, each step rounded once: |error| <= n * 2^-24 * sum |terms|.
TEST(ScoreTest, ScalarAgreesWithDoublePrecision) {
  for (const Element element : kAllElements) {
    for (const int dim : kTestDims) {
      const Elements k = RandomElements(element, 8 * dim * 16, 1);
      const AlignedVector<float> q = RandomFloats(kMaxPassRows * dim, 1.0f, 2);
      const AlignedVector<float> scores = ScoresOf(kScalarKernels, k, q, dim, kMaxPassRows, 0, 8);
      for (int r = 0; r < kMaxPassRows; ++r) {
        for (int t = 0; t < kSlots; ++t) {
          double sum = 0, magnitude = 0;
          for (int c = 0; c < dim; ++c) {
            const double term =
                static_cast<double>(q[r * dim + c]) * k.values[(t / 16 * dim + c) * 16 + t % 16];
            sum += term;
            magnitude += std::abs(term);
          }
          ASSERT_NEAR(scores[r * kSlots + t], sum, dim * 0x1p-24 * magnitude)
              << "dim " << dim << " row " << r << " token " << t;
        }
      }
    }
  }
}

TEST(ScoreTest, EveryTargetGivesTheSameBits) {
  for (const KernelTable* table : RunnableTargets()) {
    for (const Element element : kAllElements) {
      for (const int dim : kTestDims) {
        const Elements k = RandomElements(element, 8 * dim * 16, 3);
        const AlignedVector<float> q = RandomFloats(kMaxPassRows * dim, 1.0f, 4);
        const AlignedVector<float> expected =
            ScoresOf(kScalarKernels, k, q, dim, kMaxPassRows, 0, 8);
        for (int rows = 1; rows <= kMaxPassRows; ++rows) {
          const AlignedVector<float> scores = ScoresOf(*table, k, q, dim, rows, 0, 8);
          const size_t used = rows * kSlots;
          ASSERT_TRUE(SameFloats({scores.data(), used}, {expected.data(), used}))
              << table->name << " dim " << dim << " rows " << rows;
        }
      }
    }
  }
}

// Every range of tiles, the empty ones too: inside as in the whole page, outside left alone.
TEST(ScoreTest, RangesOfTilesTouchNothingElse) {
  constexpr int kDim = 64;
  for (const KernelTable* table : RunnableTargets()) {
    for (const Element element : kAllElements) {
      const Elements k = RandomElements(element, 8 * kDim * 16, 5);
      const AlignedVector<float> q = RandomFloats(kMaxPassRows * kDim, 1.0f, 6);
      const AlignedVector<float> whole = ScoresOf(kScalarKernels, k, q, kDim, kMaxPassRows, 0, 8);
      for (int rows = 1; rows <= kMaxPassRows; ++rows) {
        for (int first = 0; first <= 8; ++first) {
          for (int end = first; end <= 8; ++end) {
            AlignedVector<float> expected(whole.size(), kUntouched);
            for (int r = 0; r < rows; ++r) {
              const auto begin = whole.begin() + r * kSlots;
              std::copy(begin + first * 16, begin + end * 16,
                        expected.begin() + r * kSlots + first * 16);
            }
            ASSERT_TRUE(SameFloats(ScoresOf(*table, k, q, kDim, rows, first, end), expected))
                << table->name << " rows " << rows << " tiles " << first << ".." << end;
          }
        }
      }
    }
  }
}

// q = (1, 0, 0, ...) reads single elements: all 65536 patterns of both half formats.
TEST(ScoreTest, EveryHalfIsWidenedExactly) {
  constexpr int kDim = 16;
  AlignedVector<float> q(kDim, 0.0f);
  q[0] = 1.0f;
  for (const KernelTable* table : RunnableTargets()) {
    for (const Element element : {Element::kF16, Element::kBf16}) {
      for (int base = 0; base < 65536; base += kSlots) {
        Elements k{element, AlignedVector<uint16_t>(8 * kDim * 16, 0), {}};
        for (int t = 0; t < kSlots; ++t) {
          k.halves[(t / 16 * kDim) * 16 + t % 16] = static_cast<uint16_t>(base + t);
        }
        const AlignedVector<float> scores = ScoresOf(*table, k, q, kDim, 1, 0, 8);
        for (int t = 0; t < kSlots; ++t) {
          const uint16_t half = static_cast<uint16_t>(base + t);
          const float value = element == Element::kF16 ? F16ToF32(half) : Bf16ToF32(half);
          ASSERT_TRUE(SameFloat(scores[t], value + 0.0f)) << table->name << " " << half;
        }
      }
    }
  }
}

TEST(ScoreTest, NonFiniteKeysStayInTheirToken) {
  constexpr int kDim = 64;
  Elements k = RandomElements(Element::kF32, 8 * kDim * 16, 7);
  k.values[(2 * kDim + 5) * 16 + 3] = kNan;   // token 35
  k.values[(7 * kDim + 9) * 16 + 15] = kInf;  // token 127
  const AlignedVector<float> q = RandomFloats(kMaxPassRows * kDim, 1.0f, 8);
  const AlignedVector<float> expected = ScoresOf(kScalarKernels, k, q, kDim, kMaxPassRows, 0, 8);
  for (int t = 0; t < kSlots; ++t) {
    EXPECT_EQ(std::isnan(expected[t]), t == 35);
    EXPECT_EQ(std::isinf(expected[t]), t == 127);
  }
  for (const KernelTable* table : RunnableTargets()) {
    EXPECT_TRUE(SameFloats(ScoresOf(*table, k, q, kDim, kMaxPassRows, 0, 8), expected))
        << table->name;
  }
}

}  // namespace
}  // namespace shorthand
