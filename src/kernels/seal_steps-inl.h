// Sealing, first part: exact elements to the floats that are coded. Widening, what keys are
// shifted and divided by, the Hadamard transform. Compiled per target, after that target's ops
// file.
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

// What keys are shifted and divided by, one number a channel, as it is stored.
struct KeyFactors {
  float* means;
  float* smooth;
  float* inverse_smooth;
  uint16_t* mean_f16;
  uint16_t* smooth_f16;
};

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
      for (int i = first > token ? first - token : 0; i < kLanes; ++i) sum = Add(sum, rows[i]);
      Store(sum, sums + c);
    }
  }
  const F32 count = Set(first < kPageSlots ? static_cast<float>(kPageSlots - first) : 1.0f);
  for (int c = 0; c < dim; c += kLanes) StoreFiniteF16(Div(Load(sums + c), count), mean + c);
}

// Largest magnitudes of the channels of keys [8][dim][16] less their means, over the tokens from
// `first` on.
inline void KeyMagnitudes(const uint16_t* keys, int dim, int first, const float* means,
                          float* magnitudes) {
  const F32 zero = Set(0.0f);
  for (int c = 0; c < dim; c += kLanes) {
    F32 rows[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      rows[i] = zero;
      ForEachLaneTile({first, kPageSlots}, [&](int tile, auto lanes) {
        const F32 x = LoadF16(keys + (tile * dim + c + i) * kLanes);
        const F32 magnitude = Magnitude(Sub(x, Set(means[c + i])));
        rows[i] = Max(ChooseLanes(lanes, magnitude, zero), rows[i]);
      });
    }
    Transpose(rows);
    Store(FoldTree(rows, [](F32 a, F32 b) { return Max(a, b); }), magnitudes + c);
  }
}

// Factors of `smooth` from the magnitudes in factors.smooth: roots, the same for the channels c and
// c + dim / 2, 1 where there are only zeros.
inline void SmoothFactors(const SealJob& job, const KeyFactors& factors) {
  const F32 zero = Set(0.0f), one = Set(1.0f);
  const int half = job.dim / 2;
  float* magnitudes = factors.smooth;
  for (int c = 0; c < half; ++c) {
    if (magnitudes[c] < magnitudes[c + half]) magnitudes[c] = magnitudes[c + half];
  }
  for (int c = 0; c < half; c += kLanes) {
    const F32 magnitude = Load(magnitudes + c);
    StoreF16(IfLess(zero, magnitude, Sqrt(magnitude), one), factors.smooth_f16 + c);
  }
  for (int c = half; c < job.padded_dim; ++c) {
    factors.smooth_f16[c] = c < job.dim ? factors.smooth_f16[c - half] : 0x3c00;  // 1
  }
  for (int c = 0; c < job.padded_dim; c += kLanes) {
    const F32 factor = LoadF16(factors.smooth_f16 + c);
    Store(factor, factors.smooth + c);
    Store(Div(one, factor), factors.inverse_smooth + c);
  }
}

// What the job's steps need of keys [8][dim][16].
inline void MeasureKeys(const SealJob& job, const uint16_t* keys, const KeyFactors& factors) {
  const int dim = job.padded_dim;
  if (job.mean) KeyMeans(keys, dim, job.first_token, factors.means, factors.mean_f16);
  for (int c = 0; c < dim; c += kLanes) {
    const F32 given = job.means == nullptr ? Set(0.0f) : Load(job.means + c);
    Store(job.mean ? LoadF16(factors.mean_f16 + c) : given, factors.means + c);
  }
  if (!job.smooth) return;
  KeyMagnitudes(keys, dim, job.first_token, factors.means, factors.smooth);
  SmoothFactors(job, factors);
}

// The butterflies at distances `distance` .. `distance * kRadix / 2` among channels that
// load(channel) gives, then finish(result) -> x [channels][16].
template <int kRadix, typename LoadChannel, typename Finish>
inline void ButterflyPass(LoadChannel load, Finish finish, float* x, int channels, int distance) {
  for (int start = 0; start < channels; start += distance * kRadix) {
    for (int c = start; c < start + distance; ++c) {
      F32 v[kRadix];
#pragma GCC unroll 8
      for (int i = 0; i < kRadix; ++i) v[i] = load(c + i * distance);
      ButterfliesAmong(v);
#pragma GCC unroll 8
      for (int i = 0; i < kRadix; ++i) Store(finish(v[i]), x + (c + i * distance) * kLanes);
    }
  }
}

// The last pass of a block, up to 8 butterflies.
template <typename LoadChannel>
inline void LastButterflyPass(LoadChannel load, float* x, int channels, int block, int distance) {
  const F32 factor = Set(InverseRoot(block));
  const auto finish = [factor](F32 v) { return Mul(v, factor); };
  switch (block / distance) {
    case 8:
      return ButterflyPass<8>(load, finish, x, channels, distance);
    case 4:
      return ButterflyPass<4>(load, finish, x, channels, distance);
    case 2:
      return ButterflyPass<2>(load, finish, x, channels, distance);
  }
}

// Hadamard over channels that load(channel) gives -> x [channels][16].
template <typename LoadChannel>
inline void HadamardAcross(LoadChannel load, float* x, int channels, int block) {
  if (block <= 8) return LastButterflyPass(load, x, channels, block, 1);
  const auto reload = [x](int c) { return Load(x + c * kLanes); };
  const auto as_it_is = [](F32 v) { return v; };
  ButterflyPass<8>(load, as_it_is, x, channels, 1);
  int distance = 8;
  for (; block / distance > 8; distance *= 8) {
    ButterflyPass<8>(reload, as_it_is, x, channels, distance);
  }
  LastButterflyPass(reload, x, channels, block, distance);
}

// Div(a, b) for positive b, the sign of a zero included; as Quotient requires.
inline F32 SignedQuotient(F32 a, F32 b, F32 inverse) {
  return FloatOf(Or(BitsOf(Quotient(a, b, inverse)), And(BitsOf(a), SetBits(0x80000000u))));
}

// Some tokens and channels, both in multiples of 16, of keys [8][dim][16] -> x, as `view` places
// them. REQUIRES: all channels with a transform, which leaves no order.
inline void KeySteps(const SealJob& job, const SealView& view, const uint16_t* keys,
                     const KeyFactors& page, Span tokens, Span channels, float* x) {
  const float* factors = job.factors;
  const uint16_t* order = job.order;
  const bool smooth = job.smooth;
  for (int token = tokens.begin; token < tokens.end; token += kLanes) {
    const uint16_t* from = keys + static_cast<size_t>(token) * job.padded_dim;
    float* to = x + view.At(token, channels.begin);
    const auto load = [=](int c) {
      F32 x = Sub(LoadF16(from + c * kLanes), Set(page.means[c]));
      if (smooth) x = SignedQuotient(x, Set(page.smooth[c]), Set(page.inverse_smooth[c]));
      return factors == nullptr ? x : Mul(x, Set(factors[c]));
    };
    if (job.hadamard > 1) HadamardAcross(load, to, job.dim, job.hadamard);
    for (int c = job.hadamard > 1 ? job.dim : channels.begin; c < channels.end; ++c) {
      Store(load(order == nullptr ? c : order[c]), to + (c - channels.begin) * kLanes);
    }
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
