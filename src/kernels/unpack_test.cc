// Unpacking against a reader that looks up one code at a time, as docs/formats/page.md describes
// the lines; on every target, to the bit.
#include <array>
#include <cmath>
#include <string>

#include "base/half.h"
#include "kernels/kernels_testing.h"

namespace shorthand {
namespace {

constexpr int kSlots = 128;
constexpr int kBits[] = {2, 3, 4, 5, 6, 8};

// The code at `byte` of tile `tile` of a stream of lines.
int CodeAt(const uint8_t* lines, int bits, int tile, int byte) {
  const auto at = [&](int line) { return lines[line * 64 + byte]; };
  switch (bits) {
    case 8:
      return at(tile);
    case 4:
      return at(tile / 2) >> (4 * (tile % 2)) & 15;
    case 2:
      return at(tile / 4) >> (2 * (tile % 4)) & 3;
    case 3: {
      const int first = tile / 8 * 3, i = tile % 8;
      if (i < 6) return at(first + i / 2) >> (3 * (i % 2)) & 7;
      const int fourth = at(first) >> 6 | at(first + 1) >> 6 << 2 | at(first + 2) >> 6 << 4;
      return i == 6 ? fourth & 7 : fourth >> 3;
    }
    case 5: {
      const int first = tile / 8 * 5, i = tile % 8;
      const int nibble = at(first + 1 + i / 2) >> (4 * (i % 2)) & 15;
      return nibble | (at(first) >> i & 1) << 4;
    }
    default: {
      const int first = tile / 4 * 3, i = tile % 4;
      const int nibble = at(first + 1 + i / 2) >> (4 * (i % 2)) & 15;
      return nibble | (at(first) >> (2 * i) & 3) << 4;
    }
  }
}

int KeyCode(const uint8_t* lines, int bits, int dim, int token, int channel) {
  const int pair = token / 32, in_pair = token / 16 % 2;
  const int tile = (pair * (dim / 4) + channel / 4) * 2 + in_pair;
  return CodeAt(lines, bits, tile, token % 16 * 4 + channel % 4);
}

int ValueCode(const uint8_t* lines, int bits, int dim, int token, int channel) {
  const int pair = channel / 32, in_pair = channel / 16 % 2;
  const bool alone = channel / 16 == dim / 16 - 1 && in_pair == 0;
  const int tile = pair * 64 + (alone ? token / 4 : token / 4 * 2 + in_pair);
  return CodeAt(lines, bits, tile, channel % 16 * 4 + token % 4);
}

enum class Levels { kUniform, kTable };

// A job over random lines, scales and offsets.
struct Case {
  int dim, bits, axis, group;
  bool has_offset;
  Minifloat minifloat = Minifloat::kNone;
  AlignedVector<uint8_t> lines;
  AlignedVector<float> levels, scales, offsets;

  Case(int d, int b, int a, int g, bool offset, Levels kind)
      : dim(d), bits(b), axis(a), group(g), has_offset(offset), lines(16 * d * b) {
    std::mt19937 generator(static_cast<uint32_t>(d * 1000 + b * 100 + a * 10 + g));
    for (uint8_t& line : lines) line = static_cast<uint8_t>(generator());
    levels = RandomFloats(size_t{1} << bits, 50.0f, 31);
    if (kind == Levels::kUniform) {
      for (size_t i = 0; i < levels.size(); ++i) {
        levels[i] = static_cast<float>(i) - static_cast<float>(levels.size() / 2);
      }
    }
    scales = RandomFloats(size_t{kSlots} * dim, 1.0f, 32);
    offsets = RandomFloats(scales.size(), 1.0f, 33);
  }

  UnpackJob job() const {
    UnpackJob job{lines.data(), levels.data(), scales.data(), has_offset ? offsets.data() : nullptr,
                  dim,          bits,          group,         axis};
    job.minifloat = minifloat;
    return job;
  }

  int ScaleIndex(int token, int channel) const {
    if (axis == 2) return 0;
    if (axis == 1) return token / group * dim + channel;
    // A group below 16 channels is a whole head with padding behind it.
    const int channel_group = group % 16 != 0 ? 0 : channel / group;
    return channel_group * kSlots + token;
  }

  float Value(int code, int token, int channel) const {
    const int i = ScaleIndex(token, channel);
    return std::fma(scales[i], levels[code], has_offset ? offsets[i] : 0.0f);
  }

  std::string Describe() const {
    return "dim " + std::to_string(dim) + " bits " + std::to_string(bits) + " axis " +
           std::to_string(axis) + " group " + std::to_string(group);
  }
};

void Check(const Case& c) {
  const size_t size = static_cast<size_t>(kSlots) * c.dim;
  AlignedVector<float> k(size), v(size);
  for (int t = 0; t < kSlots; ++t) {
    for (int ch = 0; ch < c.dim; ++ch) {
      k[(t / 16 * c.dim + ch) * 16 + t % 16] =
          c.Value(KeyCode(c.lines.data(), c.bits, c.dim, t, ch), t, ch);
      v[t * c.dim + ch] = c.Value(ValueCode(c.lines.data(), c.bits, c.dim, t, ch), t, ch);
    }
  }
  for (const KernelTable* table : RunnableTargets()) {
    AlignedVector<float> got(size);
    table->unpack_k(c.job(), got.data());
    ASSERT_TRUE(SameFloats(got, k)) << table->name << " K " << c.Describe();
    table->unpack_v(c.job(), got.data());
    ASSERT_TRUE(SameFloats(got, v)) << table->name << " V " << c.Describe();
    UnpackJob part = c.job();
    part.first_token = 32;
    part.end_token = 96;
    const auto begin = static_cast<ptrdiff_t>(32) * c.dim, end = 3 * begin;
    AlignedVector<float> some(64 * c.dim);
    table->unpack_k(part, some.data());
    ASSERT_TRUE(SameFloats(some, {k.begin() + begin, k.begin() + end})) << c.Describe();
    table->unpack_v(part, some.data());
    ASSERT_TRUE(SameFloats(some, {v.begin() + begin, v.begin() + end})) << c.Describe();
  }
}

TEST(UnpackTest, EveryWidthAxisAndGroup) {
  for (const int dim : {16, 32, 48, 64, 80, 96, 112, 128, 144, 256}) {
    for (const int bits : kBits) {
      for (const bool offset : {false, true}) {
        for (const Levels kind : {Levels::kUniform, Levels::kTable}) {
          for (const int group : {16, 32, 64, dim}) {
            if (dim % group == 0) Check(Case(dim, bits, 0, group, offset, kind));
          }
          for (const int group : {16, 32, 64, 128}) {
            Check(Case(dim, bits, 1, group, offset, kind));
          }
          Check(Case(dim, bits, 2, 0, offset, kind));
        }
      }
    }
  }
}

TEST(UnpackTest, WidestHead) { Check(Case(1024, 4, 0, 64, true, Levels::kUniform)); }

// Head dims that are no multiples of 16 are padded: the last group takes the padding.
TEST(UnpackTest, PaddingBelongsToTheWholeHeadsGroup) {
  for (const int bits : kBits) {
    Check(Case(16, bits, 0, 8, true, Levels::kUniform));
    Check(Case(48, bits, 0, 40, true, Levels::kUniform));
    Check(Case(80, bits, 0, 72, true, Levels::kTable));
  }
}

// Every code but infinities and NaN, which no page holds.
TEST(UnpackTest, FloatsOfEightBits) {
  for (const Minifloat kind : {Minifloat::kE4m3, Minifloat::kE5m2}) {
    const auto decode = kind == Minifloat::kE4m3 ? E4m3ToF32 : E5m2ToF32;
    for (const int axis : {1, 2}) {
      Case c(80, 8, axis, 32, axis == 1, Levels::kTable);
      c.minifloat = kind;
      for (int code = 0; code < 256; ++code) c.levels[code] = decode(static_cast<uint8_t>(code));
      for (uint8_t& code : c.lines) {
        if (!std::isfinite(c.levels[code])) code = 0;
      }
      Check(c);
    }
  }
}

TEST(UnpackTest, ReachesTheLargestCodes) {
  for (const int bits : kBits) {
    Case c(64, bits, 2, 0, false, Levels::kUniform);
    for (uint8_t& byte : c.lines) byte = 0xff;
    c.scales[0] = 1.0f;
    const float top = static_cast<float>((1 << bits) - 1 - (1 << (bits - 1)));
    for (const KernelTable* table : RunnableTargets()) {
      AlignedVector<float> got(kSlots * 64);
      table->unpack_k(c.job(), got.data());
      ASSERT_TRUE(SameFloats(got, AlignedVector<float>(got.size(), top))) << table->name << bits;
    }
  }
}

}  // namespace
}  // namespace shorthand
