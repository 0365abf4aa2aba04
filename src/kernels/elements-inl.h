// How exact elements are read and written, as types: what score, accumulate and the writing of rows
// are instantiated with.
// Compiled per target, after that target's ops file.
// Thread-safety: pure functions.
#ifndef SHORTHAND_KERNELS_ELEMENTS_INL_H_
#define SHORTHAND_KERNELS_ELEMENTS_INL_H_

#include "kernels/kernels.h"

namespace shorthand {
namespace {

// Token slots of a page, and the row stride of scores and weights.
inline constexpr int kPageSlots = 128;
// Channels of the widest head.
inline constexpr int kMaxDim = 1024;
// Bytes of a line: of the caches, and of codes.
inline constexpr int kLine = 64;

inline F32 Magnitude(F32 a) { return FloatOf(And(BitsOf(a), SetBits(0x7fffffffu))); }

// Into L2.
inline void Prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }

// One step of the lines that come after the page at hand.
inline void Step(ReadAhead* ahead) {
  if (ahead == nullptr || ahead->next >= ahead->end) return;
  for (int part = 0; part < ahead->parts; ++part) Prefetch(ahead->next + part * ahead->part_bytes);
  ahead->next += kLine;
}

// kLimit: the least magnitude that is infinite once rounded.
struct F32Elements {
  using Type = float;
  static constexpr float kLimit = __builtin_inff();
  static inline F32 LoadLanes(const float* p) { return Load(p); }
  static inline void StoreLanes(F32 a, float* p) { Store(a, p); }
};
struct F16Elements {
  using Type = uint16_t;
  static constexpr float kLimit = 65520.0f;
  static inline F32 LoadLanes(const uint16_t* p) { return LoadF16(p); }
  static inline void StoreLanes(F32 a, uint16_t* p) { StoreF16(a, p); }
};
struct Bf16Elements {
  using Type = uint16_t;
  static constexpr float kLimit = 0x1.ffp127f;
  static inline F32 LoadLanes(const uint16_t* p) { return LoadBf16(p); }
  static inline void StoreLanes(F32 a, uint16_t* p) {
    const U32 bits = BitsOf(a), upper = ShiftRight<16>(bits);
    const U32 half = AddBits(SetBits(0x7fff), And(upper, SetBits(1)));
    StoreHalves(ShiftRight<16>(AddBits(bits, half)), p);
  }
};

template <int kValue>
struct Int {
  static constexpr int value = kValue;
};

// Calls f(Elements{}) with the type that reads `element`.
template <typename Function>
inline void WithElements(Element element, Function f) {
  switch (element) {
    case Element::kF32:
      return f(F32Elements{});
    case Element::kF16:
      return f(F16Elements{});
    case Element::kBf16:
      return f(Bf16Elements{});
  }
}

// Rows whose sums are kept in registers together.
inline constexpr int kBlockRows = kAccumulators < 8 ? kAccumulators : 8;

// The tiles of 16 lanes that `rows` rows take together: the largest power of two, up to 8, whose
// running sums fit the registers.
constexpr int TilesFor(int rows) {
  int tiles = 8;
  while (tiles > 1 && tiles * rows > kAccumulators) tiles /= 2;
  return tiles;
}

// sum[r][t] += scalar(r) * lanes(t), for a block of rows times tiles. The smaller set of operands
// is held in registers and the other one streams past it.
template <int kRows, int kTiles, typename ScalarOf, typename LanesOf>
inline void AddProducts(F32 (&sum)[kRows][kTiles], ScalarOf scalar, LanesOf lanes) {
  if constexpr (kTiles <= kRows) {
    F32 held[kTiles];
#pragma GCC unroll 8
    for (int t = 0; t < kTiles; ++t) held[t] = lanes(t);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F32 x = Set(scalar(r));
#pragma GCC unroll 8
      for (int t = 0; t < kTiles; ++t) sum[r][t] = Fma(x, held[t], sum[r][t]);
    }
  } else {
    F32 held[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) held[r] = Set(scalar(r));
#pragma GCC unroll 8
    for (int t = 0; t < kTiles; ++t) {
      const F32 x = lanes(t);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sum[r][t] = Fma(held[r], x, sum[r][t]);
    }
  }
}

// Cuts `rows` rows into blocks of at most kBlockRows, as even as possible, and calls
// f(first_row, Int<block>{}) for each. Rows do not depend on each other, so cutting changes no bit.
template <typename Function>
inline void ForRowBlocks(int rows, Function f) {
  const int blocks = (rows + kBlockRows - 1) / kBlockRows;
  for (int b = 0; b < blocks; ++b) {
    const int first = rows * b / blocks;
    switch (rows * (b + 1) / blocks - first) {
      case 1:
        f(first, Int<1>{});
        break;
      case 2:
        f(first, Int<2>{});
        break;
      case 3:
        f(first, Int<3>{});
        break;
      case 4:
        f(first, Int<4>{});
        break;
      case 5:
        if constexpr (kBlockRows >= 5) f(first, Int<5>{});
        break;
      case 6:
        if constexpr (kBlockRows >= 6) f(first, Int<6>{});
        break;
      case 7:
        if constexpr (kBlockRows >= 7) f(first, Int<7>{});
        break;
      case 8:
        if constexpr (kBlockRows >= 8) f(first, Int<8>{});
        break;
    }
  }
}

// The same in blocks of four, two and one, for what is short and would be slow row by row.
template <typename Function>
inline void ForFours(int rows, Function f) {
  int row = 0;
  for (; rows - row >= 4; row += 4) f(row, Int<4>{});
  if (rows - row >= 2) {
    f(row, Int<2>{});
    row += 2;
  }
  if (row < rows) f(row, Int<1>{});
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_ELEMENTS_INL_H_
