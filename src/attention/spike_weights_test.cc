// A softmax that looks at one token and a little at all others: one weight of 1 and 127 of 0.0019,
// each below half a step of weights rounded to bytes. Rounded one by one they would all vanish, and
// with them a fifth of an output whose values have a mean; with the residue carried on they must
// not (docs/numerics.md, "Values: scales go into the weights").
//
// The outputs of every target are compared with the sum written down in double precision over what
// the page's codes stand for.
#include <cmath>
#include <string>
#include <vector>

#include "attention/integer_path.h"
#include "kernels/kernels_testing.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

constexpr int kDim = 64;
constexpr double kLittle = 0.0019;
constexpr double kWithoutCarry = 0.15;
constexpr double kWithCarry = 0.014;
// The worst that a carry leaves: half a step in each of 16 lanes, all of one sign.
constexpr double kWorstWithCarry = 16 * 0.5 / 255 / (1 + (kPageTokens - 1) * kLittle);  // 0.025

// Values of 1 + noise / 8.
std::vector<float> ValuesWithAMean() {
  const AlignedVector<float> noise = RandomFloats(size_t{kPageTokens} * kDim, 0.125f, 7);
  std::vector<float> x(noise.begin(), noise.end());
  for (float& value : x) value += 1;
  return x;
}

double WeightOf(int token, int spike) { return token == spike ? 1 : kLittle; }

// sum of w_t v_t over values [128][kDim].
std::vector<double> WeightedSum(const std::vector<float>& values, int spike) {
  std::vector<double> sum(kDim);
  for (int t = 0; t < kPageTokens; ++t) {
    for (int c = 0; c < kDim; ++c) sum[c] += WeightOf(t, spike) * values[t * kDim + c];
  }
  return sum;
}

// Of x from `expected`, as L2 norms.
template <typename Numbers>
double ErrorOf(const Numbers& x, const std::vector<double>& expected) {
  double error = 0, norm = 0;
  for (int c = 0; c < kDim; ++c) {
    error += (x[c] - expected[c]) * (x[c] - expected[c]);
    norm += expected[c] * expected[c];
  }
  return std::sqrt(error / norm);
}

// Outputs [rows][kDim] of the integer kernels; row r's spike is token 16 r + r.
std::vector<float> Outputs(const KernelTable& kernels, const SealedSide& sealed, int rows) {
  const IntegerPath path(sealed.format, sealed.tables);
  EXPECT_TRUE(path.usable());
  const AlignedVector<uint8_t> page(sealed.page.begin(), sealed.page.end());
  AlignedVector<float> meta(path.meta_count());
  std::vector<uint8_t> flips(path.meta_count());
  CodedSide8 side;
  path.Open(kernels, nullptr, page.data() + sealed.part.meta_offset,
            page.data() + sealed.part.codes_offset, meta.data(), flips.data(), &side);

  AlignedVector<float> weights;
  for (int r = 0; r < rows; ++r) {
    for (int t = 0; t < kPageTokens; ++t) {
      weights.push_back(static_cast<float>(WeightOf(t, 17 * r)));
    }
  }
  AlignedVector<uint8_t> bytes(size_t{kMaxChannelGroups} * rows * kMaxLimbs * kPageTokens);
  FoldedWeights folded = {};
  folded.limbs = path.weight_limbs();
  folded.bytes = bytes.data();
  kernels.fold_weights(side, weights.data(), rows, &folded);
  const std::vector<float> shrink(rows, 1.0f);
  AlignedVector<float> out(static_cast<size_t>(rows) * kDim);
  kernels.accumulate_codes(side, folded, shrink.data(), 0, kPageTokens, rows, out.data());
  return {out.begin(), out.end()};
}

// Parts of a token have scales that differ more, and with them what the lanes are left with.
double LimitOf(const SideFormat& format) {
  const bool parts = format.axis == Axis::kToken && format.groups() > 1;
  return parts ? kWorstWithCarry : kWithCarry;
}

class SpikeWeights : public ::testing::TestWithParam<const char*> {};

TEST_P(SpikeWeights, TheOthersAreNotForgotten) {
  const SideFormat format = ResolveText(GetParam(), SideKind::kValue, kDim);
  const SealedSide sealed(format, ValuesWithAMean());
  const std::vector<float> values = sealed.Unsealed();
  for (const KernelTable* kernels : RunnableTargets()) {
    for (const int rows : {1, 8}) {
      const std::vector<float> out = Outputs(*kernels, sealed, rows);
      for (int r = 0; r < rows; ++r) {
        const int spike = 17 * r;
        const std::vector<double> expected = WeightedSum(values, spike);
        // What is left if the others vanish: no carry, no sum.
        EXPECT_GT(ErrorOf(values.data() + spike * kDim, expected), kWithoutCarry);
        EXPECT_LT(ErrorOf(out.data() + r * kDim, expected), LimitOf(format))
            << kernels->name << ", row " << r << " of " << rows;
      }
    }
  }
}

// Without offsets, which are multiplied with exact weights and would hide the mean; and with them.
INSTANTIATE_TEST_SUITE_P(Formats, SpikeWeights,
                         ::testing::Values("i4/tok", "i4/tok32", "i4/ch", "i4/ch32", "i3/tok",
                                           "nf4/tok", "nf4/ch", "lm4/tok", "lm4/ch", "i8/tok",
                                           "u4/tok", "u4/ch", "q4_1"));

}  // namespace
}  // namespace shorthand
