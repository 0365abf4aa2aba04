// What the kernel tests share: random arrays, comparison of bits.
// Thread-safety: for tests, one thread.
#ifndef SHORTHAND_KERNELS_KERNELS_TESTING_H_
#define SHORTHAND_KERNELS_KERNELS_TESTING_H_

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_vector.h"
#include "base/half.h"
#include "kernels/dispatch.h"
#include "kernels/kernels.h"
#include "kernels/targets.h"

namespace shorthand {

inline AlignedVector<float> RandomFloats(size_t n, float deviation, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  AlignedVector<float> x(n);
  for (float& v : x) v = normal(generator);
  return x;
}

// Numbers as elements of some type, and the same numbers widened.
struct Elements {
  Element type = Element::kF32;
  AlignedVector<uint16_t> halves;
  AlignedVector<float> values;

  const void* data() const {
    return type == Element::kF32 ? static_cast<const void*>(values.data()) : halves.data();
  }
};

inline Elements RandomElements(Element type, size_t n, uint32_t seed) {
  Elements out{type, AlignedVector<uint16_t>(n), RandomFloats(n, 1.0f, seed)};
  if (type == Element::kF32) return out;
  for (size_t i = 0; i < n; ++i) {
    const float x = out.values[i];
    const bool f16 = type == Element::kF16;
    out.halves[i] = f16 ? F32ToF16(x) : F32ToBf16(x);
    out.values[i] = f16 ? F16ToF32(out.halves[i]) : Bf16ToF32(out.halves[i]);
  }
  return out;
}

// One way from codes to scores and outputs.
struct CodePath {
  const KernelTable* table;
  bool tiles;

  void Score(const CodedSide8& k, const FoldedQueries& q, int rows, int first_tile, int end_tile,
             float* scores) const {
    if (!tiles) return table->score_codes(k, q, rows, first_tile, end_tile, scores);
    AlignedVector<uint8_t> bytes(size_t{128} * k.dim);
    table->tiles->expand_k(k, bytes.data());
    table->tiles->score(k, bytes.data(), q, rows, first_tile, end_tile, scores);
  }
  void Accumulate(const CodedSide8& v, const FoldedWeights& w, const float* shrink, int rows,
                  float* out) const {
    if (!tiles) return table->accumulate_codes(v, w, shrink, 0, 128, rows, out);
    AlignedVector<uint8_t> bytes(size_t{128} * v.dim);
    table->tiles->expand_v(v, bytes.data());
    table->tiles->accumulate(v, bytes.data(), w, shrink, rows, out);
  }
  std::string name() const { return std::string(table->name) + (tiles ? ", tiles" : ""); }
};

// Those that take so many rows.
inline std::vector<CodePath> CodePaths(int rows) {
  std::vector<CodePath> paths;
  for (const KernelTable* table : RunnableTargets()) {
    if (rows <= kVectorRows) paths.push_back({table, false});
    if (table->tiles != nullptr) paths.push_back({table, true});
  }
  return paths;
}

// The same float, or both NaN.
inline bool SameFloat(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

inline ::testing::AssertionResult SameFloats(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < a.size(); ++i) {
    if (!SameFloat(a[i], b[i])) {
      return ::testing::AssertionFailure() << "at " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr Element kAllElements[] = {Element::kF32, Element::kF16, Element::kBf16};
inline constexpr int kTestDims[] = {16, 32, 64, 80, 96, 128, 256};

}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_KERNELS_TESTING_H_
