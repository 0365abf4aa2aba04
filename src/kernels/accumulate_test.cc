// Weighted sums of values against double precision and, bit for bit, between targets.
#include "kernels/kernels_testing.h"

namespace shorthand {
namespace {

constexpr int kSlots = 128;

struct Range {
  int first, end;
};

// Around the edges of tiles and of the page; every pair first <= end is tried.
constexpr int kEdges[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 112, 127, 128};

struct Inputs {
  int dim;
  Elements v;
  AlignedVector<float> weights = RandomFloats(kMaxPassRows * kSlots, 0.5f, 11);
  AlignedVector<float> shrink = {1.0f, 0.5f, 0.0f,  0.25f, 0.7f, 1.0f, 0.125f, 0.9f,
                                 0.1f, 0.8f, 0.75f, 1.0f,  0.0f, 0.3f, 0.5f,   0.6f};
  AlignedVector<float> out = RandomFloats((kMaxPassRows + 1) * dim, 1.0f, 12);

  Inputs(Element element, int d) : dim(d), v(RandomElements(element, kSlots * d, 10)) {}

  AlignedVector<float> Run(const KernelTable& table, int rows, Range range) const {
    AlignedVector<float> result = out;
    table.accumulate(v.type, v.data(), weights.data(), shrink.data(), range.first, range.end, dim,
                     rows, result.data());
    return result;
  }
};

// One product and then a sum of fused steps: |error| <= (tokens + 1) * 2^-24 * sum |terms|.
TEST(AccumulateTest, ScalarAgreesWithDoublePrecision) {
  for (const Element element : kAllElements) {
    for (const int dim : kTestDims) {
      const Inputs in(element, dim);
      for (const Range range : {Range{0, 128}, Range{5, 77}, Range{64, 64}}) {
        const AlignedVector<float> result = in.Run(kScalarKernels, kMaxPassRows, range);
        for (int r = 0; r < kMaxPassRows; ++r) {
          for (int c = 0; c < dim; ++c) {
            double sum = static_cast<double>(in.out[r * dim + c]) * in.shrink[r];
            double magnitude = std::abs(sum);
            for (int t = range.first; t < range.end; ++t) {
              const double term =
                  static_cast<double>(in.weights[r * kSlots + t]) * in.v.values[t * dim + c];
              sum += term;
              magnitude += std::abs(term);
            }
            ASSERT_NEAR(result[r * dim + c], sum, 129 * 0x1p-24 * magnitude)
                << "dim " << dim << " row " << r << " channel " << c;
          }
        }
      }
    }
  }
}

TEST(AccumulateTest, EveryTargetGivesTheSameBits) {
  for (const KernelTable* table : RunnableTargets()) {
    for (const Element element : kAllElements) {
      for (const int dim : kTestDims) {
        const Inputs in(element, dim);
        for (const Range range : {Range{0, 128}, Range{3, 128}, Range{0, 125}, Range{17, 33}}) {
          AlignedVector<float> expected = in.Run(kScalarKernels, kMaxPassRows, range);
          for (int rows = kMaxPassRows; rows >= 1; --rows) {
            ASSERT_TRUE(SameFloats(in.Run(*table, rows, range), expected))
                << table->name << " dim " << dim << " rows " << rows << " tokens " << range.first
                << ".." << range.end;
            // One row less: it must be left alone.
            const int last = (rows - 1) * dim;
            std::copy_n(in.out.begin() + last, dim, expected.begin() + last);
          }
        }
      }
    }
  }
}

TEST(AccumulateTest, EveryRangeGivesTheSameBits) {
  for (const KernelTable* table : RunnableTargets()) {
    for (const Element element : kAllElements) {
      const Inputs in(element, 80);
      for (const int first : kEdges) {
        for (const int end : kEdges) {
          if (end < first) continue;
          for (const int rows : {1, 3, kMaxPassRows}) {
            ASSERT_TRUE(SameFloats(in.Run(*table, rows, {first, end}),
                                   in.Run(kScalarKernels, rows, {first, end})))
                << table->name << " rows " << rows << " tokens " << first << ".." << end;
          }
        }
      }
    }
  }
}

// Tokens outside the range are not read into the sum, whatever their weight and value.
TEST(AccumulateTest, TokensOutsideTheRangeDoNotMatter) {
  Inputs in(Element::kF32, 64);
  const AlignedVector<float> expected = in.Run(kScalarKernels, kMaxPassRows, {16, 100});
  for (int t = 0; t < kSlots; ++t) {
    if (t >= 16 && t < 100) continue;
    for (int r = 0; r < kMaxPassRows; ++r) in.weights[r * kSlots + t] = kNan;
    for (int c = 0; c < 64; ++c) in.v.values[t * 64 + c] = kInf;
  }
  for (const KernelTable* table : RunnableTargets()) {
    EXPECT_TRUE(SameFloats(in.Run(*table, kMaxPassRows, {16, 100}), expected)) << table->name;
  }
}

TEST(AccumulateTest, NonFiniteValuesStayInTheirChannel) {
  Inputs in(Element::kF32, 64);
  in.v.values[40 * 64 + 7] = kNan;
  in.v.values[41 * 64 + 8] = -kInf;
  const AlignedVector<float> expected = in.Run(kScalarKernels, 1, {0, 128});
  for (int c = 0; c < 64; ++c) {
    EXPECT_EQ(std::isnan(expected[c]), c == 7);
    EXPECT_EQ(std::isinf(expected[c]), c == 8);
  }
  for (const KernelTable* table : RunnableTargets()) {
    EXPECT_TRUE(SameFloats(in.Run(*table, 1, {0, 128}), expected)) << table->name;
  }
}

}  // namespace
}  // namespace shorthand
