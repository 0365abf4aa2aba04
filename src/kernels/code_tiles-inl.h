// What the two integer loops share: tiles of codes as bytes to multiply, and how rows and limbs are
// cut into blocks that fit the registers. Compiled per target, after that target's ops file.
// Thread-safety: pure functions.
#ifndef SHORTHAND_KERNELS_CODE_TILES_INL_H_
#define SHORTHAND_KERNELS_CODE_TILES_INL_H_

#include "kernels/codes.h"
#include "kernels/unpack-inl.h"

namespace shorthand {
namespace {

// Codes as they are, for uniform levels.
struct PlainCodes {
  explicit PlainCodes(const CodedSide8&) {}
  U32 Key(U32 codes) const { return codes; }
  U32 Value(U32 codes) const { return codes; }
};
// Codes of eight bits: a value of 128 and more is no signed byte until its top bit is turned.
struct ByteCodes {
  explicit ByteCodes(const CodedSide8&) {}
  U32 Key(U32 codes) const { return codes; }
  U32 Value(U32 codes) const { return Xor(codes, SetBits(0x80808080u)); }
};
// Codes through a table of up to 16 levels.
struct TableCodes {
  ByteTable16 table;
  explicit TableCodes(const CodedSide8& side) : table(LoadByteTable(side.table)) {}
  U32 Key(U32 codes) const { return LookupBytes(table, codes); }
  U32 Value(U32 codes) const { return LookupBytes(table, codes); }
};

template <int kBits>
inline U32 DotCodes(U32 sum, U32 a, U32 b) {
  if constexpr (kBits == 8) return DotWide(sum, a, b);
  return Dot(sum, a, b);
}

// Calls f(Int<bits>{}, codes) with the way to read the side's codes.
template <typename Function>
inline void WithCodes(const CodedSide8& side, Function f) {
  const bool plain = side.table == nullptr;
  switch (side.bits) {
    case 2:
      return plain ? f(Int<2>{}, PlainCodes(side)) : f(Int<2>{}, TableCodes(side));
    case 3:
      return plain ? f(Int<3>{}, PlainCodes(side)) : f(Int<3>{}, TableCodes(side));
    case 4:
      return plain ? f(Int<4>{}, PlainCodes(side)) : f(Int<4>{}, TableCodes(side));
    case 5:
      return f(Int<5>{}, PlainCodes(side));
    case 6:
      return f(Int<6>{}, PlainCodes(side));
    case 8:
      return f(Int<8>{}, ByteCodes(side));
  }
}

// Rows times limbs whose sums over a pair of tiles fit the registers.
inline constexpr int kCodeRows = kAccumulators >= 2 * kMaxPassRows ? kMaxPassRows
                                 : kAccumulators >= 6              ? 2
                                                                   : 1;

// The rows of the next block where `left` rows are left and at most `most` fit: sizes that have an
// instance, and the others in even parts.
constexpr int CodeBlockRows(int left, int most) {
  const int rows = left < most ? left : most;
  switch (rows) {
    case 3:
      return most == 4 ? 2 : 3;  // two limbs: no block of 3
    case 5:
    case 6:
      return 3;
    case 7:
      return 4;
  }
  return rows;
}

// Cuts `rows` rows into blocks and calls f(first_row, Int<block>{}) for each. Integer sums do not
// depend on the cut.
template <int kLimbs, typename Function>
inline void ForCodeRows(int rows, Function f) {
  constexpr int kMost = kCodeRows >= kLimbs ? kCodeRows / kLimbs : 1;
  for (int row = 0; row < rows;) {
    const int block = CodeBlockRows(rows - row, kMost);
    switch (block) {
      case 1:
        f(row, Int<1>{});
        break;
      case 2:
        if constexpr (kMost >= 2) f(row, Int<2>{});
        break;
      case 3:
        if constexpr (kMost > 4) f(row, Int<3>{});
        break;
      case 4:
        if constexpr (kMost >= 4) f(row, Int<4>{});
        break;
      case 8:
        if constexpr (kMost >= 8) f(row, Int<8>{});
        break;
    }
    row += block;
  }
}

// Independent sums that hide the latency of a dot product when rows are few.
constexpr int SetsFor(int sums) { return sums >= 3 || kCodeRows < 4 ? 1 : sums == 2 ? 2 : 4; }

// The sums of a block over a pair of tiles. kSets of them run beside each other.
template <int kLimbs, int kRows>
struct CodeSums {
  static constexpr int kSets = SetsFor(kLimbs * kRows);
  U32 sum[kSets][kLimbs][kRows][2];

  // start(limb, row): what the sums begin with.
  template <typename Start>
  inline void Begin(Start start) {
#pragma GCC unroll 8
    for (int s = 0; s < kSets; ++s) {
#pragma GCC unroll 8
      for (int l = 0; l < kLimbs; ++l) {
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const U32 first = SetBits(s == 0 ? static_cast<uint32_t>(start(l, r)) : 0u);
          sum[s][l][r][0] = first;
          sum[s][l][r][1] = first;
        }
      }
    }
  }

  // The finished sum of a row and tile, limbs joined, as floats.
  inline F32 Finish(int row, int tile) {
#pragma GCC unroll 8
    for (int s = 1; s < kSets; ++s) {
#pragma GCC unroll 8
      for (int l = 0; l < kLimbs; ++l) {
        sum[0][l][row][tile] = AddBits(sum[0][l][row][tile], sum[s][l][row][tile]);
      }
    }
    const F32 low = Convert(sum[0][0][row][tile]);
    if constexpr (kLimbs == 1) return low;
    return Fma(Convert(sum[0][kLimbs - 1][row][tile]), Set(256.0f), low);
  }
};

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_CODE_TILES_INL_H_
