#include "quant/hadamard.h"

#include <cmath>

namespace shorthand {

float HadamardFactor(int block) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(block)));
}

void Hadamard(float* x, int n, int block) {
  for (int distance = 1; distance < block; distance *= 2) {
    for (int start = 0; start < n; start += 2 * distance) {
      for (int i = start; i < start + distance; ++i) {
        const float a = x[i], b = x[i + distance];
        x[i] = a + b;
        x[i + distance] = a - b;
      }
    }
  }
  const float factor = HadamardFactor(block);
  for (int i = 0; i < n; ++i) x[i] *= factor;
}

}  // namespace shorthand
