// Rows written into exact pages, on every target, against the conversions of base/half.h one value
// at a time.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/kernels_testing.h"

namespace shorthand {
namespace {

constexpr int kRows = 48;

size_t SizeOf(Element element) { return element == Element::kF32 ? 4 : 2; }

// The bits of x as an element, at `p`.
void Put(Element element, float x, uint8_t* p) {
  if (element == Element::kF32) {
    std::memcpy(p, &x, 4);
    return;
  }
  const uint16_t half = element == Element::kF16 ? F32ToF16(x) : F32ToBf16(x);
  std::memcpy(p, &half, 2);
}

// Three heads of `dim` lie side by side in a row; the one in the middle is written.
struct Source {
  Source(int head_dim, uint32_t seed)
      : dim(head_dim), stride(size_t{3} * head_dim), x(RandomFloats(kRows * stride, 3.0f, seed)) {}
  const float* row(int i) const { return x.data() + i * stride + dim; }
  float* row(int i) { return x.data() + i * stride + dim; }
  int dim;
  size_t stride;
  AlignedVector<float> x;
};

enum class Kind { kKeys, kValues };

bool Write(const KernelTable& table, Kind kind, Element element, const Source& source, int rows,
           int first, uint8_t* to) {
  const auto write = kind == Kind::kKeys ? table.write_keys : table.write_values;
  return write(element, source.row(0), source.stride, rows, source.dim, first, to);
}

// What a page of 0x11 holds after the rows are written.
AlignedVector<uint8_t> Expected(Kind kind, Element element, const Source& source, int rows,
                                int first) {
  const int padded = (source.dim + 15) / 16 * 16;
  AlignedVector<uint8_t> page(SizeOf(element) * 128 * padded, 0x11);
  for (int r = 0; r < rows; ++r) {
    const int slot = first + r;
    for (int c = 0; c < padded; ++c) {
      const size_t at = kind == Kind::kKeys ? (slot / 16 * padded + c) * 16 + slot % 16
                                            : static_cast<size_t>(slot) * padded + c;
      Put(element, c < source.dim ? source.row(r)[c] : 0.0f, page.data() + at * SizeOf(element));
    }
  }
  return page;
}

TEST(RowsTest, EveryElementDimAndRunOfRows) {
  for (const KernelTable* table : RunnableTargets()) {
    for (const Element element : kAllElements) {
      for (const int dim : {8, 16, 24, 64, 72, 80, 128, 256}) {
        const Source source(dim, dim);
        for (const auto& [first, rows] :
             {std::pair{0, 1}, {127, 1}, {0, 16}, {5, 11}, {5, 12}, {16, 48}, {79, 48}, {80, 47}}) {
          for (const Kind kind : {Kind::kKeys, Kind::kValues}) {
            AlignedVector<uint8_t> want = Expected(kind, element, source, rows, first);
            AlignedVector<uint8_t> got(want.size(), 0x11);
            EXPECT_TRUE(Write(*table, kind, element, source, rows, first, got.data()));
            ASSERT_TRUE(got == want) << table->name << " element " << static_cast<int>(element)
                                     << " dim " << dim << " rows " << first << "+" << rows;
          }
        }
      }
    }
  }
}

// Every half, its middle to the next one and the floats beside that middle.
TEST(RowsTest, RoundsToTheNearestHalf) {
  constexpr int kDim = 64;
  AlignedVector<float> x;
  for (uint32_t h = 0; h < 0x7bff; ++h) {
    const float low = F16ToF32(static_cast<uint16_t>(h));
    const float middle = (low + F16ToF32(static_cast<uint16_t>(h + 1))) / 2;
    for (const float value :
         {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, kInf)}) {
      x.push_back(value);
      x.push_back(-value);
    }
  }
  while (x.size() % (128 * kDim) != 0) x.push_back(0.0f);
  for (const KernelTable* table : RunnableTargets()) {
    for (size_t at = 0; at < x.size(); at += 128 * kDim) {
      uint16_t halves[128 * kDim];
      EXPECT_TRUE(table->write_values(Element::kF16, x.data() + at, kDim, 128, kDim, 0, halves));
      for (int i = 0; i < 128 * kDim; ++i) {
        ASSERT_EQ(halves[i], F32ToF16(x[at + i])) << table->name << " " << x[at + i];
      }
    }
  }
}

// The least magnitude that each element cannot hold, and what is just below it.
TEST(RowsTest, RefusesWhatIsNotFinite) {
  const auto limit = [](Element element) {
    return element == Element::kF32 ? kInf : element == Element::kF16 ? 65520.0f : 0x1.ffp127f;
  };
  for (const KernelTable* table : RunnableTargets()) {
    for (const Element element : kAllElements) {
      for (const Kind kind : {Kind::kKeys, Kind::kValues}) {
        for (const int rows : {1, 16, 17}) {
          Source source(40, 1);
          AlignedVector<uint8_t> page(SizeOf(element) * 128 * 48);
          float& last = source.row(rows - 1)[39];
          const float largest = std::nextafter(limit(element), 0.0f);
          for (const float x : {largest, -largest}) {
            last = x;
            EXPECT_TRUE(Write(*table, kind, element, source, rows, 0, page.data())) << table->name;
          }
          for (const float x : {limit(element), -limit(element), kInf, -kInf, kNan}) {
            last = x;
            EXPECT_FALSE(Write(*table, kind, element, source, rows, 0, page.data())) << table->name;
          }
        }
      }
    }
  }
}

// Values of other heads are none of its business.
TEST(RowsTest, LooksAtItsOwnHeadOnly) {
  for (const KernelTable* table : RunnableTargets()) {
    Source source(24, 2);
    for (int r = 0; r < kRows; ++r) source.row(r)[-1] = source.row(r)[24] = kNan;
    AlignedVector<uint8_t> page(2 * 128 * 32);
    for (const Kind kind : {Kind::kKeys, Kind::kValues}) {
      EXPECT_TRUE(Write(*table, kind, Element::kF16, source, 17, 0, page.data())) << table->name;
    }
  }
}

}  // namespace
}  // namespace shorthand
