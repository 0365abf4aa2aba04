// The Walsh-Hadamard transform in place. Compiled per target, after that target's ops file.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_HADAMARD_INL_H_
#define SHORTHAND_KERNELS_HADAMARD_INL_H_

#include "kernels/elements-inl.h"

namespace shorthand {
namespace {

// 1 / sqrt(block), correctly rounded, for a power of two.
inline float InverseRoot(int block) {
  float scale = 1.0f;
  for (; block >= 4; block /= 4) scale *= 0.5f;
  return block == 2 ? scale * 0x1.6a09e6p-1f : scale;
}

// The butterflies at distances below 16 and below `block`.
inline F32 ButterfliesInVector(F32 v, int block) {
  if (block > 1) v = Butterfly<1>(v);
  if (block > 2) v = Butterfly<2>(v);
  if (block > 4) v = Butterfly<4>(v);
  if (block > 8) v = Butterfly<8>(v);
  return v;
}

// The butterflies among whole vectors.
template <int kVectors>
inline void ButterfliesAmong(F32 (&v)[kVectors]) {
#pragma GCC unroll 4
  for (int distance = 1; distance < kVectors; distance *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      if ((i & distance) != 0) continue;
      const F32 a = v[i], b = v[i + distance];
      v[i] = Add(a, b);
      v[i + distance] = Sub(a, b);
    }
  }
}

// The butterflies between 16 * kVectors values in registers, then a factor. Vector number i comes
// from load(i) and goes to store(result, i).
template <int kVectors, typename LoadVector, typename StoreVector>
inline void HadamardFromTo(LoadVector load, StoreVector store, F32 factor) {
  F32 v[kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) v[i] = ButterfliesInVector(load(i), kLanes);
  ButterfliesAmong(v);
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) store(Mul(v[i], factor), i);
}

template <int kVectors>
inline void HadamardInRegisters(float* x, F32 factor) {
  HadamardFromTo<kVectors>([x](int i) { return Load(x + i * kLanes); },
                           [x](F32 v, int i) { Store(v, x + i * kLanes); }, factor);
}

// One block of more than 128 values: pieces in registers, then the distances from 128 on.
inline void HadamardLargeBlock(float* x, int block, F32 scale) {
  constexpr int kPiece = 8 * kLanes;
  for (int i = 0; i < block; i += kPiece) HadamardInRegisters<8>(x + i, Set(1.0f));
  for (int distance = kPiece; distance < block; distance *= 2) {
    for (int i = 0; i < block; i += kLanes) {
      if ((i & distance) != 0) continue;
      const F32 a = Load(x + i);
      const F32 b = Load(x + i + distance);
      Store(Add(a, b), x + i);
      Store(Sub(a, b), x + i + distance);
    }
  }
  for (int i = 0; i < block; i += kLanes) Store(Mul(Load(x + i), scale), x + i);
}

// One block of at least 16 values.
inline void HadamardBlock(float* x, int block, F32 scale) {
  switch (block / kLanes) {
    case 1:
      return HadamardInRegisters<1>(x, scale);
    case 2:
      return HadamardInRegisters<2>(x, scale);
    case 4:
      return HadamardInRegisters<4>(x, scale);
    case 8:
      return HadamardInRegisters<8>(x, scale);
    default:
      return HadamardLargeBlock(x, block, scale);
  }
}

// Up to 16 values in blocks of less than 16.
inline void HadamardSmall(float* x, int n, int block, F32 scale) {
  float lanes[kLanes] = {};
  for (int i = 0; i < n; ++i) lanes[i] = x[i];
  Store(Mul(ButterfliesInVector(Load(lanes), block), scale), lanes);
  for (int i = 0; i < n; ++i) x[i] = lanes[i];
}

void Hadamard(float* x, int n, int block) {
  const F32 scale = Set(InverseRoot(block));
  if (block >= kLanes) {
    for (int i = 0; i < n; i += block) HadamardBlock(x + i, block, scale);
    return;
  }
  for (int i = 0; i < n; i += kLanes) {
    HadamardSmall(x + i, n - i < kLanes ? n - i : kLanes, block, scale);
  }
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_HADAMARD_INL_H_
