// Speed of the float kernels over one page, per target: cycles per element and the share of the
// peak of fused multiply-adds.
//
// Thread-safety: one thread.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/kernels.h"
#include "page_bench.h"

namespace shorthand {
namespace {

size_t ElementBytes(Element element) { return element == Element::kF32 ? 4 : 2; }

struct ExactCase {
  const KernelTable* table;
  Element element;
  int dim;
  int rows;
  size_t bytes;
};

void BenchScore(benchmark::State& state, ExactCase c) {
  const std::vector<float> q(static_cast<size_t>(c.rows) * c.dim, 0.5f);
  std::vector<float> scores(static_cast<size_t>(c.rows) * kSlots);
  RunPages(state, c.bytes, kSlots * c.dim * ElementBytes(c.element), c.dim, c.rows,
           [&](const uint8_t* page) {
             c.table->score(c.element, page, q.data(), c.dim, c.rows, 0, 8, scores.data());
             benchmark::DoNotOptimize(scores.data());
           });
}

void BenchAccumulate(benchmark::State& state, ExactCase c) {
  const std::vector<float> weights(static_cast<size_t>(c.rows) * kSlots, 0.01f);
  const std::vector<float> shrink(c.rows, 0.5f);
  std::vector<float> out(static_cast<size_t>(c.rows) * c.dim);
  RunPages(state, c.bytes, kSlots * c.dim * ElementBytes(c.element), c.dim, c.rows,
           [&](const uint8_t* page) {
             c.table->accumulate(c.element, page, weights.data(), shrink.data(), 0, kSlots, c.dim,
                                 c.rows, out.data());
             benchmark::DoNotOptimize(out.data());
           });
}

void BenchSoftmax(benchmark::State& state, const KernelTable* table, float softcap) {
  const std::vector<float> scores(kSlots, 1.0f);
  std::vector<float> work(kSlots);
  const double hertz = MeasureHertz();
  RowState row{0, 0};
  const RowView view{0, kSlots, 0};
  float shrink;
  const double start = CpuSeconds();
  for (auto _ : state) {
    work = scores;
    table->softmax({0.1f, softcap}, &view, 1, work.data(), &row, &shrink);
    benchmark::DoNotOptimize(shrink);
  }
  const double seconds = CpuSeconds() - start;
  state.counters["cycles/score"] =
      seconds * hertz / (static_cast<double>(state.iterations()) * kSlots);
}

// Sealed to f32. `key` sides have a scale and an offset a channel, value sides a token.
void BenchUnpack(benchmark::State& state, const KernelTable* table, int bits, bool key) {
  constexpr int kDim = 128;
  std::vector<float> levels(size_t{1} << bits);
  for (size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<float>(i) - 2.0f;
  const std::vector<float> factors(kSlots * kDim, 0.25f);
  const Pages out(kSlots * kDim * sizeof(float));
  UnpackJob job{nullptr, levels.data(), factors.data(), factors.data(), kDim,
                bits,    128,           key ? 1 : 0};
  RunPages(state, kResidentBytes, 16 * kDim * bits, kDim, 1, [&](const uint8_t* page) {
    job.lines = page;
    (key ? table->unpack_k : table->unpack_v)(job, reinterpret_cast<float*>(out.data));
    benchmark::DoNotOptimize(out.data);
  });
}

void RegisterExact(const KernelTable* table) {
  constexpr const char* kElementNames[] = {"f32", "f16", "bf16"};
  for (const Element element : {Element::kF16, Element::kF32}) {
    for (const int dim : {64, 128}) {
      for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8}) {
        for (const size_t bytes : {kResidentBytes, kStreamedBytes}) {
          const std::string name = std::string("/") + table->name + "/" +
                                   kElementNames[static_cast<int>(element)] + "/d" +
                                   std::to_string(dim) + "/rows" + std::to_string(rows) +
                                   (bytes == kResidentBytes ? "/resident" : "/streamed");
          const ExactCase c{table, element, dim, rows, bytes};
          benchmark::RegisterBenchmark(("score" + name).c_str(), BenchScore, c);
          benchmark::RegisterBenchmark(("accumulate" + name).c_str(), BenchAccumulate, c);
        }
      }
    }
  }
}

void RegisterAll() {
  for (const KernelTable* table : RunnableTargets()) {
    const std::string target = std::string("/") + table->name;
    RegisterExact(table);
    benchmark::RegisterBenchmark(("softmax" + target).c_str(), BenchSoftmax, table, 0.0f);
    benchmark::RegisterBenchmark(("softmax_capped" + target).c_str(), BenchSoftmax, table, 50.0f);
    for (const int bits : {2, 3, 4, 5, 6, 8}) {
      const std::string width = target + "/b" + std::to_string(bits);
      benchmark::RegisterBenchmark(("unpack_k" + width).c_str(), BenchUnpack, table, bits, true);
      benchmark::RegisterBenchmark(("unpack_v" + width).c_str(), BenchUnpack, table, bits, false);
    }
  }
}

}  // namespace
}  // namespace shorthand

int main(int argc, char** argv) {
  shorthand::RegisterAll();
  return shorthand::RunBenchmarks(argc, argv);
}
