// No kernel reads or writes outside of its arrays, in any format, head dim, number of rows and
// range of tokens, on any target: every array lies between two fences (kernels/fenced_testing.h).
// What is computed does not matter here; other tests look at it.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "attention/integer_path.h"
#include "attention/unpack_job.h"
#include "cache/page_sealer.h"
#include "kernels/fenced_testing.h"
#include "kernels/kernels_testing.h"
#include "quant/every_side.h"
#include "quant/page_test_util.h"

namespace shorthand {
namespace {

// One tile of channels, a pair and an unpaired one, several pairs and groups.
constexpr int kDims[] = {8, 48, 128};
constexpr Fence kFences[] = {Fence::kFront, Fence::kBack};

// Slots of a page.
struct Range {
  int first, end;
};
constexpr Range kRanges[] = {{0, 128}, {5, 6}, {17, 100}, {127, 128}};

int Padded(int dim) { return (dim + 15) / 16 * 16; }

// What runs, for the handler: a load outside ends the program.
char running[256];

void ReportAndExit(int) {
  constexpr char kWhat[] = "touched a fence: ";
  const bool written = write(STDERR_FILENO, kWhat, sizeof kWhat - 1) > 0 &&
                       write(STDERR_FILENO, running, std::strlen(running)) > 0 &&
                       write(STDERR_FILENO, "\n", 1) > 0;
  _exit(written ? 1 : 2);
}

void Announce(const std::string& what) { running[what.copy(running, sizeof running - 1)] = '\0'; }

class PageBounds : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGSEGV, ReportAndExit);
    signal(SIGBUS, ReportAndExit);
  }
  void TearDown() override {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
  }
};

float* TakeFloats(FencedMemory& memory, size_t n, uint32_t seed) {
  return memory.Copy(RandomFloats(n, 1.0f, seed).data(), n);
}

// f32, or the bits of halves that are finite.
const void* TakeElements(FencedMemory& memory, Element type, size_t n) {
  const Elements elements = RandomElements(type, n, 3);
  if (type == Element::kF32) return memory.Copy(elements.values.data(), n);
  return memory.Copy(elements.halves.data(), n);
}

void ScoreAndAccumulate(const KernelTable& kernels, Element type, const void* page, int dim,
                        int rows, Fence fence) {
  FencedMemory memory(fence);
  const float* q = TakeFloats(memory, size_t(rows) * dim, 1);
  float* scores = memory.Take<float>(size_t(rows) * kPageTokens);
  const float* shrink = TakeFloats(memory, rows, 2);
  float* out = memory.Take<float>(size_t(rows) * dim);
  for (const Range range : kRanges) {
    kernels.score(type, page, q, dim, rows, range.first / 16, (range.end + 15) / 16, scores);
    kernels.accumulate(type, page, scores, shrink, range.first, range.end, dim, rows, out);
  }
}

TEST_F(PageBounds, ExactPages) {
  for (const int dim : {16, 48, 128}) {
    for (const Element type : kAllElements) {
      for (const Fence fence : kFences) {
        FencedMemory memory(fence);
        const void* page = TakeElements(memory, type, size_t(kPageTokens) * dim);
        for (const KernelTable* kernels : RunnableTargets()) {
          for (int rows = 1; rows <= kMaxPassRows; ++rows) {
            Announce(std::string(kernels->name) + ", exact page, dim " + std::to_string(dim));
            ScoreAndAccumulate(*kernels, type, page, dim, rows, fence);
          }
        }
      }
    }
  }
}

TEST_F(PageBounds, WrittenRows) {
  for (const int dim : kDims) {
    for (const Fence fence : kFences) {
      for (const Range range : kRanges) {
        FencedMemory memory(fence);
        const int rows = range.end - range.first;
        const size_t stride = size_t{2} * dim;  // rows of two heads, the last of them
        const float* x = TakeFloats(memory, (rows - 1) * stride + dim, 4);
        for (const KernelTable* kernels : RunnableTargets()) {
          for (const Element type : kAllElements) {
            Announce(std::string(kernels->name) + ", written rows, dim " + std::to_string(dim));
            const size_t n = size_t(kPageTokens) * Padded(dim) * (type == Element::kF32 ? 2 : 1);
            uint16_t* page = memory.Take<uint16_t>(n);
            EXPECT_TRUE(kernels->write_keys(type, x, stride, rows, dim, range.first, page));
            EXPECT_TRUE(kernels->write_values(type, x, stride, rows, dim, range.first, page));
          }
        }
      }
    }
  }
}

// One side of a page, its metadata and its codes each between fences.
class FencedSide {
 public:
  FencedSide(const SideFormat& format, Fence fence) : format_(format), memory_(fence) {
    std::vector<float> x(size_t(kPageTokens) * format.dim);
    const AlignedVector<float> noise = RandomFloats(x.size(), 1.0f, 5);
    std::copy(noise.begin(), noise.end(), x.begin());
    const SealedSide sealed(format, x);
    tables_ = sealed.tables;
    if (!tables_.widths.empty()) {
      planes_ = PlanesOf(tables_);
      planes_.centres = memory_.Copy(tables_.centres.data(), tables_.centres.size());
      planes_.centre_bytes = memory_.Copy(tables_.centre_bytes.data(), tables_.centre_bytes.size());
    }
    descriptor_ = sealed.descriptor;
    meta_ = memory_.Copy(sealed.page.data(), format.meta_bytes());
    codes_ = memory_.Copy(sealed.page.data() + format.meta_bytes(), format.codes_bytes());
    exact_ = memory_.Take<uint16_t>(size_t(kPageTokens) * format.padded_dim);
  }

  void Seal(const KernelTable& kernels) {
    for (const int first : {0, 3, 127, 128}) {
      const std::optional<SealJob> job = SealJobOf(format_, tables_, first);
      if (!job) return;
      float* scratch = memory_.Take<float>(SealScratchFloats(*job));
      kernels.seal(*job, exact_, meta_, codes_, scratch);
    }
  }

  void Unpack(const KernelTable& kernels) {
    if (!format_.plain() || format_.planes()) return;
    const int width = format_.axis == Axis::kChannel ? format_.padded_dim : kPageTokens;
    const size_t scales = format_.axis == Axis::kPage ? 1 : size_t(format_.groups()) * width;
    float* scale = memory_.Take<float>(scales);
    float* offset = format_.has_offset ? memory_.Take<float>(scales) : nullptr;
    float* mean = format_.mean ? memory_.Take<float>(format_.padded_dim) : nullptr;
    ReadMeta(format_, SidePart{}, meta_, descriptor_, scale, offset, mean);
    UnpackJob job = UnpackJobOf(format_, tables_, codes_, scale, offset);
    job.levels = memory_.Copy(job.levels, size_t{1} << format_.bits);
    float* x = memory_.Take<float>(size_t(kPageTokens) * format_.padded_dim);
    (format_.kind == SideKind::kKey ? kernels.unpack_k : kernels.unpack_v)(job, x);
  }

  // The integer kernels for 1 to 8 rows, products of tiles for some numbers of them.
  void Attend(const KernelTable& kernels, Fence fence) {
    const IntegerPath path(format_, tables_);
    if (!path.usable()) return;
    float* widened = memory_.Take<float>(path.meta_count());
    uint8_t* flips = memory_.Take<uint8_t>(path.meta_count());
    CodedSide8 side;
    path.Open(kernels, format_.planes() ? &planes_ : nullptr, meta_, codes_, widened, flips, &side);
    if (format_.mean || format_.hadamard > 0) return;  // steps change nothing from here on
    for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, kMaxPassRows}) {
      if (rows > kernels.max_rows()) break;
      FencedMemory rows_memory(fence);
      if (format_.kind == SideKind::kKey) {
        Score(kernels, side, path.code_rms(), rows, rows_memory);
      } else {
        Accumulate(kernels, side, path.weight_limbs(), rows, rows_memory);
      }
    }
  }

 private:
  static void Score(const KernelTable& kernels, const CodedSide8& side, float rms, int rows,
                    FencedMemory& memory) {
    const size_t folds = side.per_channel ? kPageTokens / side.group : 1;
    const float* q = TakeFloats(memory, size_t(rows) * side.dim, 6);
    float* scores = memory.Take<float>(size_t(rows) * kPageTokens);
    FoldedQueries folded = {};
    folded.bytes = memory.Take<int8_t>(folds * rows * kMaxLimbs * side.dim);
    kernels.fold_query(side, q, rms, rows, &folded);
    uint8_t* bytes = nullptr;
    if (kernels.tiles != nullptr && rows % kVectorRows <= 1) {
      bytes = memory.Take<uint8_t>(size_t(kPageTokens) * side.dim);
      kernels.tiles->expand_k(side, bytes);
    }
    for (int limbs = 1; limbs <= kMaxLimbs; ++limbs) {
      folded.limbs = limbs;
      for (const Range range : kRanges) {
        const int first = range.first / 16, end = (range.end + 15) / 16;
        if (rows <= kVectorRows) kernels.score_codes(side, folded, rows, first, end, scores);
      }
      if (bytes != nullptr) kernels.tiles->score(side, bytes, folded, rows, 0, 8, scores);
    }
  }

  static void Accumulate(const KernelTable& kernels, const CodedSide8& side, int limbs, int rows,
                         FencedMemory& memory) {
    const size_t groups = side.per_channel ? 1 : (side.dim + side.group - 1) / side.group;
    const float* shrink = TakeFloats(memory, rows, 2);
    float* weights = memory.Take<float>(size_t(rows) * kPageTokens);
    std::fill_n(weights, rows * kPageTokens, 0.5f);
    float* out = memory.Take<float>(size_t(rows) * side.dim);
    FoldedWeights folded = {};
    folded.limbs = limbs;
    folded.bytes = memory.Take<uint8_t>(groups * rows * kMaxLimbs * kPageTokens);
    kernels.fold_weights(side, weights, rows, &folded);
    for (const Range range : kRanges) {
      if (rows > kVectorRows) break;
      kernels.accumulate_codes(side, folded, shrink, range.first, range.end, rows, out);
    }
    if (kernels.tiles == nullptr || rows % kVectorRows > 1) return;
    uint8_t* bytes = memory.Take<uint8_t>(size_t(kPageTokens) * side.dim);
    kernels.tiles->expand_v(side, bytes);
    kernels.tiles->accumulate(side, bytes, folded, shrink, rows, out);
  }

  const SideFormat& format_;
  FencedMemory memory_;
  HeadTables tables_;
  KeyPlanes planes_;
  PageDescriptor descriptor_;
  uint8_t* meta_;
  uint8_t* codes_;
  uint16_t* exact_;
};

void CheckFormat(const std::string& text, SideKind kind, int dim) {
  const Result<SideFormat> format = TryResolveText(text, kind, dim);
  if (!format.ok()) return;
  for (const Fence fence : kFences) {
    FencedSide side(*format, fence);
    for (const KernelTable* kernels : RunnableTargets()) {
      Announce(std::string(kernels->name) + ", " + text + ", dim " + std::to_string(dim));
      side.Unpack(*kernels);
      side.Attend(*kernels, fence);
      side.Seal(*kernels);
    }
  }
}

TEST_F(PageBounds, SealedPages) {
  for (const int dim : kDims) {
    for (const Codec& codec : Registry()) {
      for (const std::string& side : EverySide(codec)) {
        CheckFormat(side, SideKind::kKey, dim);
        CheckFormat("mu:" + side, SideKind::kKey, dim);
        CheckFormat(side, SideKind::kValue, dim);
      }
      for (const std::string& side : KeySides(codec)) CheckFormat(side, SideKind::kKey, dim);
    }
  }
}

// The fences hold: without this the tests above would pass in vain.
TEST(FencedMemoryDeathTest, ALoadOutsideEndsTheProgram) {
  for (const size_t n : {size_t{64}, size_t{4096}}) {
    FencedMemory back(Fence::kBack), front(Fence::kFront);
    const volatile uint8_t* last = back.Take<uint8_t>(n);
    const volatile uint8_t* first = front.Take<uint8_t>(n);
    EXPECT_EQ(last[n - 1] + first[0], 0);
    EXPECT_DEATH(static_cast<void>(last[n]), "");
    EXPECT_DEATH(static_cast<void>(first[-1]), "");
  }
}

}  // namespace
}  // namespace shorthand
