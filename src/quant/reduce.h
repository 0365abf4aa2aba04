// Reductions in a fixed order, so that scalar and vector code produce the same bytes.
//
// Over channels: 16 strided lanes (lane i takes x[i], x[i+16], ...), each in ascending order, then
// one tree: lane i + lane i+8, then +4, +2, +1. Over tokens: one after the other. Products are
// rounded before they are added (no fused multiply-add here).
//
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_REDUCE_H_
#define SHORTHAND_QUANT_REDUCE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace shorthand {

inline constexpr int kLanes = 16;

// Folds term(0) .. term(n-1) with `fold` in lane order, lanes starting from `neutral`.
template <typename Term, typename Fold>
float LaneReduce(int n, float neutral, Term term, Fold fold) {
  std::array<float, kLanes> lanes;
  lanes.fill(neutral);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = fold(lanes[lane], term(i + lane));
  }
  for (int lane = 0; i + lane < n; ++lane) lanes[lane] = fold(lanes[lane], term(i + lane));
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] = fold(lanes[lane], lanes[lane + half]);
  }
  return lanes[0];
}

// The same term by term.
template <typename Term, typename Fold>
float SequentialReduce(int n, float neutral, Term term, Fold fold) {
  float result = neutral;
  for (int i = 0; i < n; ++i) result = fold(result, term(i));
  return result;
}

// Which of the two a group's reductions use.
enum class Order { kLanes, kSequential };

template <typename Term, typename Fold>
float Reduce(Order order, int n, float neutral, Term term, Fold fold) {
  return order == Order::kLanes ? LaneReduce(n, neutral, term, fold)
                                : SequentialReduce(n, neutral, term, fold);
}

inline float Add(float a, float b) { return a + b; }
inline float Larger(float a, float b) { return a < b ? b : a; }
inline float Smaller(float a, float b) { return b < a ? b : a; }

// Sum of x[i] * y[i].
inline float Dot(Order order, const float* x, const float* y, int n) {
  return Reduce(order, n, 0.0f, [=](int i) { return x[i] * y[i]; }, Add);
}

// Largest magnitude, least and largest value: the order matters only to the sign of a zero.
inline float AbsMax(const float* x, int n) {
  return LaneReduce(n, 0.0f, [=](int i) { return std::fabs(x[i]); }, Larger);
}
inline float Max(const float* x, int n) {
  return LaneReduce(
      n, -std::numeric_limits<float>::infinity(), [=](int i) { return x[i]; }, Larger);
}
inline float Min(const float* x, int n) {
  return LaneReduce(
      n, std::numeric_limits<float>::infinity(), [=](int i) { return x[i]; }, Smaller);
}

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_REDUCE_H_
