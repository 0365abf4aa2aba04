// Sealing, first part: exact elements to the floats that are coded. Widening, the page mean of
// keys, the Hadamard transform. Compiled per target, after that target's ops file.
//
// Keys keep the layout of their exact page, tokens on the lanes: a transform over channels is then
// arithmetic between whole vectors, and codes come out in the order of a tile's bytes.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_SEAL_STEPS_INL_H_
#define SHORTHAND_KERNELS_SEAL_STEPS_INL_H_

#include "kernels/elements-inl.h"
#include "kernels/hadamard-inl.h"
#include "kernels/seal.h"
#include "kernels/seal_groups-inl.h"

namespace shorthand {
namespace {

inline constexpr float kMaxHalf = 65504.0f;

// Stores what a scale, offset or mean is kept as: the nearest finite f16.
inline void StoreFiniteF16(F32 x, uint16_t* p) {
  StoreF16(Min(Max(x, Set(-kMaxHalf)), Set(kMaxHalf)), p);
}

// Means of the channels of keys [8][dim][16], over the tokens from `first` on, one after the other.
//   sums [dim]: working memory
inline void KeyMeans(const uint16_t* keys, int dim, int first, float* sums, uint16_t* mean) {
  for (int c = 0; c < dim; c += kLanes) Store(Set(0.0f), sums + c);
  for (int token = first / kLanes * kLanes; token < kPageSlots; token += kLanes) {
    for (int c = 0; c < dim; c += kLanes) {
      F32 rows[kLanes];
      for (int i = 0; i < kLanes; ++i) rows[i] = LoadF16(keys + (token * dim) + (c + i) * kLanes);
      Transpose(rows);
      F32 sum = Load(sums + c);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if (token + i >= first) sum = Add(sum, rows[i]);
      }
      Store(sum, sums + c);
    }
  }
  const F32 count = Set(first < kPageSlots ? static_cast<float>(kPageSlots - first) : 1.0f);
  for (int c = 0; c < dim; c += kLanes) StoreFiniteF16(Div(Load(sums + c), count), mean + c);
}

// kRadix vectors at x + i * stride: the butterflies among them, then a factor.
template <int kRadix>
inline void ButterfliesAcross(float* x, size_t stride, F32 factor) {
  F32 v[kRadix];
#pragma GCC unroll 16
  for (int i = 0; i < kRadix; ++i) v[i] = Load(x + i * stride);
  ButterfliesAmong(v);
#pragma GCC unroll 16
  for (int i = 0; i < kRadix; ++i) Store(Mul(v[i], factor), x + i * stride);
}

// The butterflies of x [channels][16] at distances `distance` .. `distance * kRadix / 2`.
template <int kRadix>
inline void ButterflyPass(float* x, int channels, int distance, F32 factor) {
  const size_t stride = static_cast<size_t>(distance) * kLanes;
  for (int start = 0; start < channels; start += distance * kRadix) {
    for (int i = start; i < start + distance; ++i) {
      ButterfliesAcross<kRadix>(x + static_cast<size_t>(i) * kLanes, stride, factor);
    }
  }
}

// Hadamard over the channels of x [channels][16].
inline void HadamardAcross(float* x, int channels, int block) {
  const F32 one = Set(1.0f), factor = Set(InverseRoot(block));
  int distance = 1;
  for (; block / distance > 8; distance *= 8) ButterflyPass<8>(x, channels, distance, one);
  switch (block / distance) {
    case 8:
      return ButterflyPass<8>(x, channels, distance, factor);
    case 4:
      return ButterflyPass<4>(x, channels, distance, factor);
    case 2:
      return ButterflyPass<2>(x, channels, distance, factor);
  }
}

// Some tokens and channels, both in multiples of 16, of keys [8][dim][16] -> x, as `view` places
// them. REQUIRES: all channels with a transform.
inline void KeySteps(const SealJob& job, const SealView& view, const uint16_t* keys,
                     const float* means, Span tokens, Span channels, float* x) {
  for (int token = tokens.begin; token < tokens.end; token += kLanes) {
    const uint16_t* from = keys + static_cast<size_t>(token) * job.padded_dim;
    float* to = x + view.At(token, channels.begin);
    for (int c = channels.begin; c < channels.end; ++c) {
      Store(Sub(LoadF16(from + c * kLanes), Set(means[c])), to + (c - channels.begin) * kLanes);
    }
    if (job.hadamard > 1) HadamardAcross(to, job.dim, job.hadamard);
  }
}

// Values [128][dim] -> x, in blocks of 16 * kVectors channels that are transformed.
template <int kVectors>
inline void RotateValues(const SealJob& job, const SealView& view, const uint16_t* values,
                         Span tokens, float* x) {
  const F32 factor = Set(InverseRoot(kVectors * kLanes));
  for (int t = tokens.begin; t < tokens.end; ++t) {
    for (int c = 0; c < job.dim; c += kVectors * kLanes) {
      const uint16_t* from = values + static_cast<size_t>(t) * job.padded_dim + c;
      float* to = x + view.At(c, t);
      HadamardFromTo<kVectors>([from](int i) { return LoadF16(from + i * kLanes); },
                               [&](F32 v, int i) { Store(v, to + i * view.tile_size); }, factor);
    }
  }
}

// The same for every other block: rows in memory.
inline void RotateValueRows(const SealJob& job, const SealView& view, const uint16_t* values,
                            Span tokens, float* x) {
  float row[kMaxDim];
  for (int t = tokens.begin; t < tokens.end; ++t) {
    const uint16_t* from = values + static_cast<size_t>(t) * job.padded_dim;
    for (int c = 0; c < job.padded_dim; c += kLanes) Store(LoadF16(from + c), row + c);
    Hadamard(row, job.dim, job.hadamard);
    for (int c = 0; c < job.padded_dim; c += kLanes) Store(Load(row + c), x + view.At(c, t));
  }
}

// As KeySteps, of values [128][dim].
inline void ValueSteps(const SealJob& job, const SealView& view, const uint16_t* values,
                       Span tokens, Span channels, float* x) {
  if (job.hadamard > 1) {
    switch (job.hadamard) {
      case kLanes:
        return RotateValues<1>(job, view, values, tokens, x);
      case 2 * kLanes:
        return RotateValues<2>(job, view, values, tokens, x);
      case 4 * kLanes:
        return RotateValues<4>(job, view, values, tokens, x);
      case 8 * kLanes:
        return RotateValues<8>(job, view, values, tokens, x);
      default:
        return RotateValueRows(job, view, values, tokens, x);
    }
  }
  for (int c = channels.begin; c < channels.end; c += kLanes) {
    float* to = x + view.At(c, tokens.begin);
    for (int t = tokens.begin; t < tokens.end; ++t, to += kLanes) {
      Store(LoadF16(values + static_cast<size_t>(t) * job.padded_dim + c), to);
    }
  }
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_SEAL_STEPS_INL_H_
