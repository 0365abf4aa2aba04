#include "quant/rotation.h"

#include <cmath>

namespace shorthand {

Rotation::Rotation(const Rope& rope, int64_t first_position)
    : adjacent_(rope.pairs == RopePairs::kAdjacent),
      pairs_(static_cast<int>(rope.frequencies.size())),
      cosines_(static_cast<size_t>(kPageTokens) * pairs_),
      sines_(cosines_.size()) {
  for (int i = 0; i < pairs_; ++i) {
    const double frequency = rope.frequencies[i];
    const double start = static_cast<double>(first_position) * frequency;
    const double cosine_step = std::cos(frequency), sine_step = std::sin(frequency);
    double cosine = std::cos(start), sine = std::sin(start);
    for (int t = 0; t < kPageTokens; ++t) {
      cosines_[t * pairs_ + i] = static_cast<float>(cosine);
      sines_[t * pairs_ + i] = static_cast<float>(sine);
      const double next = cosine * cosine_step - sine * sine_step;
      sine = sine * cosine_step + cosine * sine_step;
      cosine = next;
    }
  }
}

template <typename Turn>
void Rotation::ForEachPair(int slot, float* key, Turn turn) const {
  const float* cosines = cosines_.data() + static_cast<size_t>(slot) * pairs_;
  const float* sines = sines_.data() + static_cast<size_t>(slot) * pairs_;
  for (int i = 0; i < pairs_; ++i) {
    float* x = key + (adjacent_ ? 2 * i : i);
    turn(x[0], x[adjacent_ ? 1 : pairs_], cosines[i], sines[i]);
  }
}

void Rotation::Undo(int slot, float* key) const {
  ForEachPair(slot, key, [](float& a, float& b, float cosine, float sine) {
    const float x = a * cosine + b * sine;
    b = b * cosine - a * sine;
    a = x;
  });
}

void Rotation::Apply(int slot, float* key) const {
  ForEachPair(slot, key, [](float& a, float& b, float cosine, float sine) {
    const float x = a * cosine - b * sine;
    b = a * sine + b * cosine;
    a = x;
  });
}

}  // namespace shorthand
