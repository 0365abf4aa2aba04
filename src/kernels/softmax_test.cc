// The running softmax against double precision and, bit for bit, between targets.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "kernels/kernels_testing.h"

namespace shorthand {
namespace {

constexpr int kSlots = 128;
constexpr double kLog2E = 1.4426950408889634074;

struct Outcome {
  AlignedVector<float> weights;
  RowState state;
  float shrink;
};

Outcome Step(const KernelTable& table, const ScoreParams& params, float bias, int first, int end,
             const AlignedVector<float>& scores, RowState state) {
  Outcome out{scores, state, 0};
  const RowView view{first, end, bias};
  table.softmax(params, &view, 1, out.weights.data(), &out.state, &out.shrink);
  return out;
}

void ExpectSame(const Outcome& a, const Outcome& b, const char* name) {
  ASSERT_TRUE(SameFloats(a.weights, b.weights)) << name;
  ASSERT_TRUE(SameFloat(a.state.max, b.state.max)) << name;
  ASSERT_TRUE(SameFloat(a.state.sum, b.state.sum)) << name;
  ASSERT_TRUE(SameFloat(a.shrink, b.shrink)) << name;
}

// scale * score + bias, capped, in base 2, in double precision.
double Base2(const ScoreParams& params, float bias, float score) {
  double s = static_cast<double>(params.scale) * score + bias;
  if (params.softcap != 0) s = params.softcap * std::tanh(s / params.softcap);
  return s * kLog2E;
}

// An error of dx in an exponent is a relative one of ln 2 * dx; x carries a few roundings of its
// own size (and the soft-cap 2e-7 of its cap); exp2 adds 1.2e-7.
double RelativeBound(const ScoreParams& params, double largest) {
  const double dx = 4 * 0x1p-24 * largest + 2e-7 * params.softcap * kLog2E;
  return 2e-7 + 2 * dx;
}

TEST(SoftmaxTest, ScalarAgreesWithDoublePrecision) {
  for (const ScoreParams params : {ScoreParams{0.125f, 0}, ScoreParams{1.0f, 0},
                                   ScoreParams{0.25f, 50.0f}, ScoreParams{2.0f, 5.0f}}) {
    for (const float bias : {0.0f, -3.5f}) {
      for (const RowState state : {RowState{-kInf, 0}, RowState{0.5f, 3.0f}, RowState{90, 7.0f}}) {
        const AlignedVector<float> scores = RandomFloats(kSlots, 8.0f, 21);
        const Outcome got = Step(kScalarKernels, params, bias, 5, 120, scores, state);
        double max = state.max, largest = std::isinf(state.max) ? 0 : std::abs(state.max);
        for (int t = 5; t < 120; ++t) {
          max = std::max(max, Base2(params, bias, scores[t]));
          largest = std::max(largest, std::abs(Base2(params, bias, scores[t])));
        }
        const double bound = RelativeBound(params, largest);
        double sum = 0;
        for (int t = 0; t < kSlots; ++t) {
          const bool in = t >= 5 && t < 120;
          const double weight = in ? std::exp2(Base2(params, bias, scores[t]) - max) : 0.0;
          // Below 2^-126 the kernel gives 0.
          ASSERT_NEAR(got.weights[t], weight, bound * weight + 0x1p-126) << t;
          sum += weight;
        }
        const double shrink = std::isinf(state.max) ? 1.0 : std::exp2(state.max - max);
        EXPECT_NEAR(got.shrink, shrink, bound * shrink);
        sum += state.sum * shrink;
        EXPECT_NEAR(got.state.sum, sum, (bound + 20 * 0x1p-24) * sum);
        EXPECT_NEAR(got.state.max, max, bound * std::max(1.0, largest));
      }
    }
  }
}

TEST(SoftmaxTest, EveryRangeGivesTheSameBitsOnEveryTarget) {
  const AlignedVector<float> scores = RandomFloats(kSlots, 20.0f, 22);
  for (const ScoreParams params : {ScoreParams{0.3f, 0}, ScoreParams{0.3f, 30.0f}}) {
    for (int first = 0; first < kSlots; ++first) {
      for (int end = first + 1; end <= kSlots; ++end) {
        const RowState state{3.0f, 1.5f};
        const Outcome expected = Step(kScalarKernels, params, 0.1f, first, end, scores, state);
        for (int t = 0; t < kSlots; ++t) {
          if (t < first || t >= end) {
            ASSERT_EQ(expected.weights[t], 0.0f);
          }
        }
        for (const KernelTable* table : RunnableTargets()) {
          ExpectSame(Step(*table, params, 0.1f, first, end, scores, state), expected, table->name);
        }
      }
    }
  }
}

// Two runs of pages: neither, one or both saw something; the later one has the larger maximum or
// not.
TEST(SoftmaxTest, JoinAgreesWithDoublePrecisionAndIsTheSameOnEveryTarget) {
  constexpr int kDim = 48;
  const RowState nothing{-kInf, 0};
  const RowState cases[][2] = {{{3.0f, 1.5f}, {5.5f, 40.0f}}, {{5.5f, 40.0f}, {3.0f, 1.5f}},
                               {{-90.0f, 2.0f}, {90.0f, 7}},  {nothing, {2.0f, 3.0f}},
                               {{2.0f, 3.0f}, nothing},       {nothing, nothing}};
  const int rows = static_cast<int>(std::size(cases));
  std::vector<RowState> before, later;
  for (const auto& pair : cases) {
    before.push_back(pair[0]);
    later.push_back(pair[1]);
  }
  // Rows that saw nothing hold numbers, too, which must not be seen.
  const AlignedVector<float> out = RandomFloats(rows * kDim, 2.0f, 26);
  const AlignedVector<float> later_out = RandomFloats(rows * kDim, 2.0f, 27);
  for (const KernelTable* table : RunnableTargets()) {
    std::vector<RowState> states = before;
    AlignedVector<float> got = out;
    table->join(later.data(), later_out.data(), rows, kDim, states.data(), got.data());
    for (int r = 0; r < rows; ++r) {
      const double max = std::max(before[r].max, later[r].max);
      const auto share = [&](const RowState& state) {
        return std::isinf(state.max) ? 0.0 : std::exp2(state.max - max);
      };
      const double a = share(before[r]), b = share(later[r]);
      EXPECT_EQ(states[r].max, max) << table->name;
      const double sum = before[r].sum * a + later[r].sum * b;
      EXPECT_NEAR(states[r].sum, sum, 4e-7 * sum) << table->name;
      if (a == 0 && b == 0) continue;
      for (int c = 0; c < kDim; ++c) {
        const double from = out[r * kDim + c] * a, behind = later_out[r * kDim + c] * b;
        ASSERT_NEAR(got[r * kDim + c], from + behind, 4e-7 * (std::abs(from) + std::abs(behind)))
            << table->name << " row " << r;
      }
    }
    AlignedVector<float> expected = out;
    std::vector<RowState> scalar_states = before;
    kScalarKernels.join(later.data(), later_out.data(), rows, kDim, scalar_states.data(),
                        expected.data());
    EXPECT_TRUE(SameFloats(got, expected)) << table->name;
  }
}

// Rows of one call are those of calls of their own, also one that sees nothing.
TEST(SoftmaxTest, RowsDoNotDependOnEachOther) {
  RowView views[kMaxPassRows] = {{0, 128, 0.1f}, {0, 127, 0}, {16, 64, 0},  {5, 5, 1.0f},
                                 {120, 3, 0},    {0, 1, 0},   {0, 128, -2}, {77, 128, 0.5f}};
  std::copy_n(views, kMaxPassRows - 8, views + 8);
  const ScoreParams params{0.3f, 0};
  for (const KernelTable* table : RunnableTargets()) {
    for (int rows = 1; rows <= kMaxPassRows; ++rows) {
      const AlignedVector<float> scores = RandomFloats(rows * kSlots, 9.0f, 25);
      AlignedVector<float> weights = scores;
      RowState states[kMaxPassRows];
      float shrink[kMaxPassRows];
      std::fill_n(states, rows, RowState{2.0f, 3.0f});
      table->softmax(params, views, rows, weights.data(), states, shrink);
      for (int r = 0; r < rows; ++r) {
        const auto row = [&](const AlignedVector<float>& all) {
          return AlignedVector<float>(all.begin() + r * kSlots, all.begin() + (r + 1) * kSlots);
        };
        const RowView& view = views[r];
        const Outcome alone = Step(kScalarKernels, params, view.bias, view.first, view.end,
                                   row(scores), {2.0f, 3.0f});
        ExpectSame({row(weights), states[r], shrink[r]}, alone, table->name);
        if (view.first < view.end) continue;
        EXPECT_EQ(shrink[r], 1.0f);
        EXPECT_EQ(states[r].max, 2.0f);
        EXPECT_EQ(states[r].sum, 3.0f);
        EXPECT_EQ(row(weights), AlignedVector<float>(kSlots));
      }
    }
  }
}

// What lies outside the range may be anything: it is not even defined.
TEST(SoftmaxTest, ScoresOutsideTheRangeDoNotMatter) {
  AlignedVector<float> scores = RandomFloats(kSlots, 3.0f, 23);
  const ScoreParams params{1.0f, 0};
  for (const KernelTable* table : RunnableTargets()) {
    const Outcome expected = Step(*table, params, 0, 20, 45, scores, {-kInf, 0});
    AlignedVector<float> dirty = scores;
    for (int t = 0; t < kSlots; ++t) {
      if (t < 20 || t >= 45) dirty[t] = t % 2 ? kNan : kInf;
    }
    ExpectSame(Step(*table, params, 0, 20, 45, dirty, {-kInf, 0}), expected, table->name);
  }
}

// Equal scores: weights are exactly 1 and the sum is exactly their number.
TEST(SoftmaxTest, EqualScoresAreCounted) {
  const AlignedVector<float> scores(kSlots, 7.0f);
  for (const KernelTable* table : RunnableTargets()) {
    const Outcome got = Step(*table, {0.5f, 0}, 0, 3, 100, scores, {-kInf, 0});
    EXPECT_EQ(got.state.sum, 97.0f);
    EXPECT_EQ(got.shrink, 1.0f);
    EXPECT_EQ(got.weights[3], 1.0f);
    EXPECT_EQ(got.weights[99], 1.0f);
    EXPECT_EQ(got.weights[100], 0.0f);
  }
}

TEST(SoftmaxTest, ShrinkFactorIsAPowerOfTheRise) {
  AlignedVector<float> scores(kSlots, 0.0f);
  for (const KernelTable* table : RunnableTargets()) {
    // The maximum rises from -3 to 0: earlier sums count an eighth.
    const Outcome rise = Step(*table, {1.0f, 0}, 0, 0, 1, scores, {-3.0f, 16.0f});
    EXPECT_EQ(rise.shrink, 0.125f);
    EXPECT_EQ(rise.state.sum, 3.0f);
    EXPECT_EQ(rise.state.max, 0.0f);
    // It stays: the new weight is 2^-4.
    const Outcome stay = Step(*table, {1.0f, 0}, 0, 0, 1, scores, {4.0f, 1.0f});
    EXPECT_EQ(stay.shrink, 1.0f);
    EXPECT_EQ(stay.weights[0], 0.0625f);
    EXPECT_EQ(stay.state.sum, 1.0625f);
  }
}

TEST(SoftmaxTest, NothingButMinusInfinityLeavesZeros) {
  const AlignedVector<float> scores(kSlots, -kInf);
  for (const KernelTable* table : RunnableTargets()) {
    const Outcome nothing = Step(*table, {1.0f, 0}, 0, 0, kSlots, scores, {-kInf, 0});
    EXPECT_EQ(nothing.state.max, -kInf);
    EXPECT_EQ(nothing.state.sum, 0.0f);
    EXPECT_EQ(nothing.shrink, 1.0f);
    EXPECT_EQ(*std::max_element(nothing.weights.begin(), nothing.weights.end()), 0.0f);
    const Outcome after = Step(*table, {1.0f, 0}, 0, 0, kSlots, scores, {2.0f, 5.0f});
    EXPECT_EQ(after.state.max, 2.0f);
    EXPECT_EQ(after.state.sum, 5.0f);
  }
}

TEST(SoftmaxTest, SoftCapBoundsLargeScores) {
  AlignedVector<float> scores(kSlots, 0.0f);
  scores[0] = 1e30f;
  scores[1] = -1e30f;
  for (const KernelTable* table : RunnableTargets()) {
    const Outcome got = Step(*table, {1.0f, 10.0f}, 0, 0, 3, scores, {-kInf, 0});
    EXPECT_NEAR(got.state.max, 10 * kLog2E, 1e-5);
    EXPECT_NEAR(got.weights[1], std::exp(-20.0), 1e-5 * std::exp(-20.0));
    EXPECT_NEAR(got.weights[2], std::exp(-10.0), 1e-5 * std::exp(-10.0));
  }
}

TEST(SoftmaxTest, NonFiniteScoresAreDefined) {
  AlignedVector<float> scores = RandomFloats(kSlots, 3.0f, 24);
  scores[17] = kNan;
  for (const ScoreParams params : {ScoreParams{1.0f, 0}, ScoreParams{1.0f, 20.0f}}) {
    const Outcome nan = Step(kScalarKernels, params, 0, 0, kSlots, scores, {-kInf, 0});
    EXPECT_TRUE(std::isnan(nan.weights[17]));
    EXPECT_TRUE(std::isnan(nan.state.sum));
    EXPECT_TRUE(std::isfinite(nan.state.max));
    EXPECT_TRUE(std::isfinite(nan.weights[16]));
    AlignedVector<float> infinite = scores;
    infinite[17] = kInf;
    const Outcome inf = Step(kScalarKernels, params, 0, 0, kSlots, infinite, {-kInf, 0});
    for (const KernelTable* table : RunnableTargets()) {
      ExpectSame(Step(*table, params, 0, 0, kSlots, scores, {-kInf, 0}), nan, table->name);
      ExpectSame(Step(*table, params, 0, 0, kSlots, infinite, {-kInf, 0}), inf, table->name);
    }
  }
}

}  // namespace
}  // namespace shorthand
