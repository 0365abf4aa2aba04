// exp2 and the Walsh-Hadamard transform against double precision, and between targets.
#include <bit>

#include "kernels/kernels_testing.h"

namespace shorthand {
namespace {

float Exp2Of(const KernelTable& table, float x) {
  AlignedVector<float> lanes(16, x);
  table.exp2(lanes.data(), 16);
  return lanes[7];
}

// Floats of both signs, all exponents, every `step` bit patterns.
AlignedVector<float> SampleFloats(uint32_t step) {
  AlignedVector<float> x;
  for (uint64_t bits = 0; bits < 0x7f800000u; bits += step) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    x.push_back(-x.back());
  }
  while (x.size() % 16 != 0) x.push_back(0.0f);
  return x;
}

TEST(Exp2Test, RelativeErrorIsBounded) {
  const AlignedVector<float> x = SampleFloats(331);
  AlignedVector<float> y = x;
  kScalarKernels.exp2(y.data(), static_cast<int>(y.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] < -126.0f) {
      ASSERT_EQ(y[i], 0.0f) << x[i];
    } else if (x[i] >= 128.0f) {
      ASSERT_EQ(y[i], kInf) << x[i];
    } else {
      const double exact = std::exp2(static_cast<double>(x[i]));
      worst = std::max(worst, std::abs(y[i] - exact) / exact);
    }
  }
  EXPECT_LT(worst, 1.2e-7);
}

TEST(Exp2Test, EveryTargetGivesTheSameBits) {
  const AlignedVector<float> x = SampleFloats(331);
  AlignedVector<float> expected = x;
  kScalarKernels.exp2(expected.data(), static_cast<int>(x.size()));
  for (const KernelTable* table : RunnableTargets()) {
    AlignedVector<float> y = x;
    table->exp2(y.data(), static_cast<int>(y.size()));
    EXPECT_TRUE(SameFloats(y, expected)) << table->name;
  }
}

TEST(Exp2Test, IntegersAreExact) {
  for (const KernelTable* table : RunnableTargets()) {
    for (int n = -126; n <= 127; ++n) {
      ASSERT_EQ(Exp2Of(*table, static_cast<float>(n)), std::ldexp(1.0f, n)) << table->name;
    }
  }
}

TEST(Exp2Test, EndsAreDefined) {
  for (const KernelTable* table : RunnableTargets()) {
    EXPECT_EQ(Exp2Of(*table, -kInf), 0.0f);
    EXPECT_EQ(Exp2Of(*table, std::nextafter(-126.0f, -200.0f)), 0.0f);
    EXPECT_EQ(Exp2Of(*table, -1e30f), 0.0f);
    EXPECT_EQ(Exp2Of(*table, 128.0f), kInf);
    EXPECT_EQ(Exp2Of(*table, kInf), kInf);
    EXPECT_TRUE(std::isfinite(Exp2Of(*table, std::nextafter(128.0f, 0.0f))));
    EXPECT_TRUE(std::isnan(Exp2Of(*table, kNan)));
    EXPECT_TRUE(std::isnan(Exp2Of(*table, std::bit_cast<float>(0xff812345u))));
    EXPECT_EQ(Exp2Of(*table, 0x1p-149f), 1.0f);
    EXPECT_EQ(Exp2Of(*table, -0x1p-149f), 1.0f);
    EXPECT_EQ(Exp2Of(*table, -0.0f), 1.0f);
  }
}

// Monotonic in steps of one float around every integer, where the pieces of the range meet.
TEST(Exp2Test, DoesNotJumpWhereThePiecesMeet) {
  for (int n = -252; n < 256; ++n) {
    const float edge = 0.5f * static_cast<float>(n);
    const float below = Exp2Of(kScalarKernels, std::nextafter(edge, -1000.0f));
    const float above = Exp2Of(kScalarKernels, std::nextafter(edge, 1000.0f));
    EXPECT_LE(below, Exp2Of(kScalarKernels, edge) * (1 + 0x1p-22f)) << edge;
    EXPECT_GE(above, Exp2Of(kScalarKernels, edge) * (1 - 0x1p-22f)) << edge;
  }
}

// H[i][j] = (-1)^popcount(i & j) / sqrt(block).
AlignedVector<double> TransformOf(const AlignedVector<float>& x, int block) {
  AlignedVector<double> y(x.size());
  for (size_t start = 0; start < x.size(); start += block) {
    for (int i = 0; i < block; ++i) {
      double sum = 0;
      for (int j = 0; j < block; ++j) {
        const bool minus = std::popcount(static_cast<unsigned>(i & j)) % 2 != 0;
        sum += minus ? -static_cast<double>(x[start + j]) : x[start + j];
      }
      y[start + i] = sum / std::sqrt(static_cast<double>(block));
    }
  }
  return y;
}

TEST(HadamardTest, AgreesWithTheMatrix) {
  for (int block = 1; block <= 512; block *= 2) {
    for (const int blocks : {1, 2, 3, 5}) {
      const AlignedVector<float> x = RandomFloats(block * blocks, 1.0f, 41);
      const AlignedVector<double> expected = TransformOf(x, block);
      AlignedVector<float> scalar = x;
      kScalarKernels.hadamard(scalar.data(), block * blocks, block);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(scalar[i], expected[i], 3e-6) << block;
      for (const KernelTable* table : RunnableTargets()) {
        AlignedVector<float> y = x;
        table->hadamard(y.data(), block * blocks, block);
        ASSERT_TRUE(SameFloats(y, scalar)) << table->name << " block " << block;
      }
    }
  }
}

TEST(HadamardTest, UnitVectorsAreExact) {
  for (const KernelTable* table : RunnableTargets()) {
    for (int block = 1; block <= 256; block *= 2) {
      AlignedVector<float> x(block, 0.0f);
      x[block - 1] = 1.0f;
      table->hadamard(x.data(), block, block);
      const float size = static_cast<float>(1.0 / std::sqrt(static_cast<double>(block)));
      for (int i = 0; i < block; ++i) {
        const bool minus = std::popcount(static_cast<unsigned>(i)) % 2 != 0;
        ASSERT_EQ(x[i], minus ? -size : size) << table->name << " block " << block;
      }
    }
  }
}

TEST(HadamardTest, NonFiniteInputStaysInItsBlock) {
  AlignedVector<float> x(128, 1.0f);
  x[70] = kNan;
  for (const KernelTable* table : RunnableTargets()) {
    AlignedVector<float> y = x;
    table->hadamard(y.data(), 128, 64);
    EXPECT_EQ(y[0], 8.0f);
    EXPECT_EQ(y[63], 0.0f);
    EXPECT_TRUE(std::isnan(y[64]) && std::isnan(y[127])) << table->name;
  }
}

}  // namespace
}  // namespace shorthand
