// The integer loop of attention, for keys and for values: dot products of a pair of tiles of codes
// with streams of bytes. A stream is one limb of one row. Compiled per target, after that target's
// ops file.
//
// Only integers are made here; score_codes and accumulate_codes make floats of them, so that the
// instances of the loop are short: widths of codes times numbers of streams.
// Thread-safety: touches only its arguments.
#ifndef SHORTHAND_KERNELS_CODE_TILES_INL_H_
#define SHORTHAND_KERNELS_CODE_TILES_INL_H_

#include "kernels/coded_side-inl.h"
#include "kernels/unpack-inl.h"

namespace shorthand {
namespace {

// Whose codes: keys are unsigned and multiplied by signed bytes, values the other way round.
enum class CodesOf { kKeys, kValues };

// How four codes of each lane become bytes to multiply. `position`: of the first of the four, a
// token of values, counted through the channel groups.
//
// Codes as they are, for uniform levels.
struct PlainCodes {
  static constexpr bool kWide = false;
  explicit PlainCodes(const CodedSide8&) {}
  template <CodesOf>
  U32 Get(U32 codes, int /*position*/) const {
    return codes;
  }
};
// Codes c that are 2^bits - 1 - c where their scale is negative.
struct FlippedCodes {
  static constexpr bool kWide = false;
  const uint8_t* flips;
  explicit FlippedCodes(const CodedSide8& side) : flips(side.flips) {}
  template <CodesOf>
  U32 Get(U32 codes, int position) const {
    return Xor(codes, LoadWord(flips + position));
  }
};
// Codes of eight bits: a value of 128 and more is no signed byte until its top bit is turned.
struct ByteCodes {
  static constexpr bool kWide = true;
  explicit ByteCodes(const CodedSide8&) {}
  template <CodesOf kSide>
  U32 Get(U32 codes, int /*position*/) const {
    return kSide == CodesOf::kKeys ? codes : Xor(codes, SetBits(0x80808080u));
  }
};
// Codes through a table of up to 16 levels.
struct TableCodes {
  static constexpr bool kWide = false;
  ByteTable16 table;
  explicit TableCodes(const CodedSide8& side) : table(LoadByteTable(side.table)) {}
  template <CodesOf>
  U32 Get(U32 codes, int /*position*/) const {
    return LookupBytes(table, codes);
  }
};

// Likewise, of any levels that fit a byte; those of values are flipped where their scale is
// negative: a byte x becomes -1 - x.
struct WideTableCodes {
  static constexpr bool kWide = true;
  ByteTable16 table;
  const uint8_t* flips;
  explicit WideTableCodes(const CodedSide8& side)
      : table(LoadByteTable(side.table)), flips(side.flips) {}
  template <CodesOf kSide>
  U32 Get(U32 codes, int position) const {
    const U32 levels = LookupBytes(table, codes);
    return kSide == CodesOf::kKeys ? levels : Xor(levels, LoadWord(flips + position));
  }
};

// Codes and the bytes of a stream. Unless they are wide, keys are at most 127, levels of values
// within 64.
template <CodesOf kSide, bool kWide>
inline U32 DotCodes(U32 sum, U32 codes, U32 stream) {
  constexpr bool kKeys = kSide == CodesOf::kKeys;
  if constexpr (kWide) return kKeys ? DotWide(sum, codes, stream) : DotWide(sum, stream, codes);
  return kKeys ? Dot(sum, codes, stream) : DotSmall(sum, stream, codes);
}

// Calls f(Int<bits>{}, codes) with the way to read the side's codes.
template <CodesOf kSide, typename Function>
inline void WithCodes(const CodedSide8& side, Function f) {
  const bool plain = side.table == nullptr;
  if constexpr (kSide == CodesOf::kValues) {
    if (plain && side.flips != nullptr) {
      return side.bits == 4 ? f(Int<4>{}, FlippedCodes(side)) : f(Int<5>{}, FlippedCodes(side));
    }
  }
  switch (side.bits) {
    case 2:
      return plain ? f(Int<2>{}, PlainCodes(side)) : f(Int<2>{}, TableCodes(side));
    case 3:
      return plain ? f(Int<3>{}, PlainCodes(side)) : f(Int<3>{}, TableCodes(side));
    case 4:
      if (side.wide) return f(Int<4>{}, WideTableCodes(side));
      return plain ? f(Int<4>{}, PlainCodes(side)) : f(Int<4>{}, TableCodes(side));
    case 5:
      return f(Int<5>{}, PlainCodes(side));
    case 6:
      return f(Int<6>{}, PlainCodes(side));
    case 8:
      return f(Int<8>{}, ByteCodes(side));
  }
}

// Streams whose sums over a pair of tiles fit the registers.
inline constexpr int kMaxStreams = kAccumulators >= 16 ? 8 : kAccumulators >= 6 ? 2 : 1;

// Independent sums of a stream, which hide the latency of a dot product when streams are few.
constexpr int SetsFor(int streams) { return streams <= 4 && kMaxStreams >= 8 ? 2 : 1; }

// What is multiplied: `count` channels of keys or tokens of values, from `lines`, with the same
// bytes of each stream; and where the sums of a pair of tiles go.
struct StreamJob {
  const uint8_t* lines;
  const uint8_t* bytes;
  size_t stride;  // from stream to stream
  int count;      // a multiple of eight tiles
  int32_t* sums;
  size_t sum_stride;
  int position;  // of the first byte: see PlainCodes
  ReadAhead* ahead;
};

// Codes come from L2 into L1 this far ahead.
inline constexpr int kNearBytes = 1024;

// One block of streams over kWidth tiles: two that alternate, or the unpaired last one.
template <CodesOf kSide, int kBits, int kStreams, int kWidth, typename Codes>
[[gnu::noinline]] void SumTiles(const StreamJob& job, const Codes& codes) {
  constexpr int kSets = SetsFor(kStreams);
  U32 sum[kSets][kStreams][kWidth];
#pragma GCC unroll 8
  for (int set = 0; set < kSets; ++set) {
#pragma GCC unroll 8
    for (int s = 0; s < kStreams; ++s) {
#pragma GCC unroll 8
      for (int i = 0; i < kWidth; ++i) sum[set][s][i] = SetBits(0);
    }
  }
  const uint8_t* lines = job.lines;
  const uint8_t* const end = job.bytes + job.count;
  for (const uint8_t* bytes = job.bytes; bytes < end; bytes += 4 * kGroupTiles / kWidth) {
    const int position = job.position + static_cast<int>(bytes - job.bytes);
    U32 tiles[kGroupTiles];
    Step(job.ahead);
#pragma GCC unroll 8
    for (int i = 0; i < kBits; ++i) __builtin_prefetch(lines + kNearBytes + i * kLine);
    ExpandTiles<kBits>(lines, tiles);
    lines += kBits * kLine;
#pragma GCC unroll 8
    for (int quad = 0; quad < kGroupTiles / kWidth; ++quad) {
      U32 levels[kWidth];
#pragma GCC unroll 8
      for (int i = 0; i < kWidth; ++i) {
        levels[i] = codes.template Get<kSide>(tiles[quad * kWidth + i], position + 4 * quad);
      }
#pragma GCC unroll 8
      for (int s = 0; s < kStreams; ++s) {
        const U32 word = LoadWord(bytes + s * job.stride + 4 * quad);
#pragma GCC unroll 8
        for (int i = 0; i < kWidth; ++i) {
          U32& to = sum[quad % kSets][s][i];
          to = DotCodes<kSide, Codes::kWide>(to, levels[i], word);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int s = 0; s < kStreams; ++s) {
#pragma GCC unroll 8
    for (int i = 0; i < kWidth; ++i) {
      U32 total = sum[0][s][i];
#pragma GCC unroll 8
      for (int set = 1; set < kSets; ++set) total = AddBits(total, sum[set][s][i]);
      StoreLine(total, reinterpret_cast<uint8_t*>(job.sums + s * job.sum_stride + i * kLanes));
    }
  }
}

// Streams of the next block where `left` are left: numbers that have an instance, and the others in
// parts.
constexpr int BlockStreams(int left) {
  const int most = left < kMaxStreams ? left : kMaxStreams;
  return most == 5 ? 3 : most == 7 ? 4 : most;
}

// All streams of a job. Integer sums do not depend on how they are cut into blocks.
template <CodesOf kSide, int kBits, int kWidth, typename Codes>
inline void SumStreams(StreamJob job, int streams, const Codes& codes) {
  for (int first = 0; first < streams;) {
    const int block = BlockStreams(streams - first);
    const auto sum = [&](auto count) {
      constexpr int kStreams = decltype(count)::value;
      if constexpr (kStreams <= kMaxStreams) {
        SumTiles<kSide, kBits, kStreams, kWidth>(job, codes);
      }
    };
    switch (block) {
      case 1:
        sum(Int<1>{});
        break;
      case 2:
        sum(Int<2>{});
        break;
      case 3:
        sum(Int<3>{});
        break;
      case 4:
        sum(Int<4>{});
        break;
      case 6:
        sum(Int<6>{});
        break;
      case 8:
        sum(Int<8>{});
        break;
    }
    first += block;
    job.bytes += block * job.stride;
    job.sums += block * job.sum_stride;
  }
}

// Sixteen finished sums of a row as floats, its limbs joined. `start` is what each limb's sums
// begin with; the high limb's sums lie `sum_stride` behind the low one's.
template <int kLimbs>
inline F32 JoinLimbs(const int32_t* sums, size_t sum_stride, const U32 (&start)[kLimbs]) {
  const auto limb = [&](int l) {
    const auto* words = reinterpret_cast<const uint8_t*>(sums + l * sum_stride);
    return Convert(AddBits(LoadLine(words), start[l]));
  };
  if constexpr (kLimbs == 1) return limb(0);
  return Fma(limb(kLimbs - 1), Set(256.0f), limb(0));
}

// The starts of a row, in all lanes.
template <int kLimbs>
inline void LoadStarts(const int32_t (&from)[kMaxLimbs][kMaxPassRows], int row,
                       U32 (&start)[kLimbs]) {
  for (int l = 0; l < kLimbs; ++l) start[l] = SetBits(static_cast<uint32_t>(from[l][row]));
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_CODE_TILES_INL_H_
