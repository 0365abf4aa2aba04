// Scores against planes: exact integers at the ends of their ranges, folding against double, the
// rule for the fine limb by hand.
#include "kernels/kernels_testing.h"
#include "quant/page.h"

namespace shorthand {
namespace {

constexpr int kSlots = 128;
constexpr int kWidths[kPlaneWidths] = {8, 6, 5, 4, 3, 2};

// Keys of some numbers of quads of each width; all codes random, or all the largest.
struct PlanesOfKeys {
  std::vector<uint8_t> widths;
  std::vector<uint8_t> codes;  // [128][dim]
  AlignedVector<uint8_t> lines, centre_bytes;
  AlignedVector<float> meta, centres;
  KeyPlanes planes = {};
  CodedSide8 side = {};

  PlanesOfKeys(const std::vector<int>& quads, bool largest, uint32_t seed) {
    std::mt19937 random(seed);
    int bits = 0;
    for (int i = 0; i < kPlaneWidths; ++i) {
      planes.quads[i] = quads[i];
      bits += quads[i] * kWidths[i];
      for (int n = 0; n < quads[i]; ++n) widths.push_back(static_cast<uint8_t>(kWidths[i]));
    }
    const int dim = 4 * static_cast<int>(widths.size());
    for (int i = 0; i < kSlots * dim; ++i) {
      const uint32_t top = (1u << widths[i % dim / 4]) - 1;
      codes.push_back(static_cast<uint8_t>(largest ? top : random() & top));
    }
    lines.resize(static_cast<size_t>(bits) * 64);
    PackPlanes(dim, widths.data(), codes.data(), lines.data());
    meta.assign(2 * dim, 0.0f);
    std::fill_n(meta.begin(), dim, 1.0f);
    for (int c = 0; c < dim; ++c) {
      centre_bytes.push_back(static_cast<uint8_t>(1 << (widths[c / 4] - 1)));
      centres.push_back(centre_bytes.back());
    }
    planes.centres = centres.data();
    planes.centre_bytes = centre_bytes.data();
    side = {.lines = lines.data(),
            .meta = meta.data(),
            .table = nullptr,
            .unit = 1.0f,
            .base = 0,
            .shift = 0.0f,
            .dim = dim,
            .bits = 8,
            .per_channel = true,
            .group = kSlots,
            .has_offset = true,
            .planes = &planes};
  }
  int dim() const { return side.dim; }
};

const std::vector<std::vector<int>> kQuads = {{4, 0, 0, 0, 0, 0},  {0, 0, 0, 4, 0, 0},
                                              {1, 1, 1, 1, 1, 3},  {0, 3, 0, 5, 7, 1},
                                              {2, 2, 3, 20, 3, 2}, {0, 0, 16, 0, 0, 16}};

// Sums stay below 2^24, where floats hold every integer.
TEST(PlanesTest, ScoresAreTheIntegers) {
  for (const std::vector<int>& quads : kQuads) {
    for (const bool largest : {false, true}) {
      const PlanesOfKeys keys(quads, largest, 3);
      const int dim = keys.dim();
      std::mt19937 random(5);
      for (int rows = 1; rows <= kMaxPassRows; ++rows) {
        const int fine = rows % (dim / 4 + 1);
        AlignedVector<int8_t> bytes(static_cast<size_t>(rows) * kMaxLimbs * dim);
        for (int i = 0; i < static_cast<int>(bytes.size()); ++i) {
          const bool counts = i / dim % kMaxLimbs == 1 || i % dim < 4 * fine;
          bytes[i] = counts ? static_cast<int8_t>(largest ? -128 : random() % 256) : int8_t{0};
        }
        FoldedQueries q = {};
        q.limbs = 2;
        q.bytes = bytes.data();
        q.fine_quads = fine;
        for (float& scale : q.scale[0]) scale = 0x1p-8f;
        for (const CodePath& path : CodePaths(rows)) {
          std::vector<float> scores(rows * kSlots);
          path.Score(keys.side, q, rows, 0, 8, scores.data());
          for (int i = 0; i < rows * kSlots; ++i) {
            const int8_t* low = bytes.data() + static_cast<size_t>(i / kSlots) * kMaxLimbs * dim;
            int64_t sums[2] = {};
            for (int c = 0; c < dim; ++c) {
              const int code = keys.codes[i % kSlots * dim + c];
              sums[0] += code * low[c];
              sums[1] += code * low[dim + c];
            }
            const float joined =
                std::fma(static_cast<float>(sums[1]), 256.0f, static_cast<float>(sums[0]));
            ASSERT_EQ(scores[i], joined * 0x1p-8f)
                << path.name() << ", row " << i / kSlots << " of " << rows << ", dim " << dim;
          }
        }
      }
    }
  }
}

TEST(PlanesTest, TilesOutsideTheRangeMayBeLeftAlone) {
  const PlanesOfKeys keys(kQuads[4], false, 1);
  AlignedVector<int8_t> bytes(static_cast<size_t>(kMaxLimbs) * keys.dim(), 1);
  FoldedQueries q = {};
  q.limbs = 2;
  q.bytes = bytes.data();
  q.fine_quads = 1;
  q.scale[0][0] = 1;
  for (const CodePath& path : CodePaths(1)) {
    std::vector<float> all(kSlots), part(kSlots);
    path.Score(keys.side, q, 1, 0, 8, all.data());
    for (int first = 0; first < 8; ++first) {
      for (int end = first + 1; end <= 8; ++end) {
        path.Score(keys.side, q, 1, first, end, part.data());
        for (int t = 16 * first; t < 16 * end; ++t) ASSERT_EQ(part[t], all[t]) << path.name();
      }
    }
  }
}

// Channels with the fine limb are off by half a step of 2^-15 of the largest, the others by 128.
TEST(PlanesTest, FoldedQueriesAreTheRoundedProducts) {
  PlanesOfKeys keys(kQuads[4], false, 1);
  const int dim = keys.dim(), rows = 7;
  const AlignedVector<float> scales = RandomFloats(dim, 1, 8), offsets = RandomFloats(dim, 1, 9);
  for (int c = 0; c < dim; ++c) {
    keys.meta[c] = std::fabs(scales[c]);
    keys.meta[dim + c] = offsets[c];
  }
  const float rest[kPlaneWidths] = {1e6f, 1e4f, 10, 10, 10, 10};
  std::copy_n(rest, kPlaneWidths, keys.planes.rest_squares);  // the first two widths are fine
  const AlignedVector<float> q = RandomFloats(static_cast<size_t>(rows) * dim, 1, 10);
  for (const KernelTable* table : RunnableTargets()) {
    AlignedVector<int8_t> bytes(static_cast<size_t>(rows) * kMaxLimbs * dim);
    FoldedQueries folded = {};
    folded.bytes = bytes.data();
    table->fold_query(keys.side, q.data(), 0, rows, &folded);
    EXPECT_EQ(folded.limbs, 2);
    EXPECT_EQ(folded.fine_quads, 4);
    for (int r = 0; r < rows; ++r) {
      const int8_t* low = bytes.data() + static_cast<size_t>(r) * kMaxLimbs * dim;
      double constant = 0;
      int64_t low_start = 0, high_start = 0;
      for (int c = 0; c < dim; ++c) {
        const double x = static_cast<double>(q[r * dim + c]) * keys.meta[c];
        const double fine = c < 16 ? 0.51 : 128.6;
        const int integer = 256 * low[dim + c] + low[c];
        ASSERT_NEAR(x / folded.scale[0][r], integer, fine) << table->name << " " << c;
        if (c >= 16) {
          ASSERT_EQ(low[c], 0);
        }
        const int centre = static_cast<int>(keys.centres[c]);
        low_start -= centre * low[c];
        high_start -= centre * low[dim + c];
        constant += q[r * dim + c] * (static_cast<double>(offsets[c]) + keys.meta[c] * centre);
      }
      EXPECT_EQ(folded.start[0][0][r], low_start);
      EXPECT_EQ(folded.start[0][1][r], high_start);
      EXPECT_NEAR(folded.constant[0][r], constant, 1e-3 * std::fabs(constant) + 1e-3);
    }
  }
}

// A query of one channel: max^2 is the sum of squares, and the limit is rest <= .0064 * 127^2,
// 103.2.
TEST(PlanesTest, TheFineLimbIsForWhatNeedsIt) {
  PlanesOfKeys keys(kQuads[2], false, 1);
  AlignedVector<float> q(keys.dim(), 0.0f);
  q[5] = 3;
  AlignedVector<int8_t> bytes(static_cast<size_t>(kMaxLimbs) * keys.dim());
  for (const KernelTable* table : RunnableTargets()) {
    for (int fine = 0; fine <= kPlaneWidths; ++fine) {
      for (int i = 0; i < kPlaneWidths; ++i) {
        keys.planes.rest_squares[i] = i < fine ? 103.3f : 103.1f;
      }
      FoldedQueries folded = {};
      folded.bytes = bytes.data();
      table->fold_query(keys.side, q.data(), 0, 1, &folded);
      EXPECT_EQ(folded.fine_quads, fine < kPlaneWidths ? fine : 8) << table->name;
    }
  }
}

TEST(PlanesTest, ZeroQueriesScoreZero) {
  const PlanesOfKeys keys(kQuads[3], false, 1);
  const AlignedVector<float> q(keys.dim(), 0.0f);
  AlignedVector<int8_t> bytes(static_cast<size_t>(kMaxLimbs) * keys.dim());
  for (const KernelTable* table : RunnableTargets()) {
    FoldedQueries folded = {};
    folded.bytes = bytes.data();
    table->fold_query(keys.side, q.data(), 0, 1, &folded);
    std::vector<float> scores(kSlots, 1.0f);
    table->score_codes(keys.side, folded, 1, 0, 8, scores.data());
    for (const float score : scores) EXPECT_EQ(score, 0);
  }
}

}  // namespace
}  // namespace shorthand
