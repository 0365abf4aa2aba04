// Speed of writing rows into exact pages and of sealing pages, in nanoseconds of processor time a
// value, per target.
//
// `codec`: the same side read back and sealed by the codec that defines its bytes.
// Thread-safety: one thread.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cache/page_sealer.h"
#include "kernels/dispatch.h"
#include "page_bench.h"

namespace shorthand {
namespace {

constexpr int kDim = 128;
constexpr int kHeads = 8;

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<uint8_t, FreeDeleter>;

Memory Allocate(size_t bytes) {
  return Memory(static_cast<uint8_t*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
}

// A layer of one head in which `side` stands for keys or for values, the other one being f16.
LayerFormat LayerOf(const std::string& side, SideKind kind) {
  const bool key = kind == SideKind::kKey;
  const Result<Recipe> recipe = Recipe::Parse(key ? "k=" + side + ",v=f16" : "k=f16,v=" + side);
  LayerFormat layer;
  layer.kv_heads = 1;
  layer.k = *ResolveSide(recipe->kv.k, SideKind::kKey, kDim);
  layer.v = *ResolveSide(recipe->kv.v, SideKind::kValue, kDim);
  layer.exact_k = ExactFormatOf(layer.k);
  layer.exact_v = ExactFormatOf(layer.v);
  layer.sealed = LayoutOf(layer.k, layer.v);
  layer.exact = LayoutOf(layer.exact_k, layer.exact_v);
  return layer;
}

// Of the neutral calibration, if the side needs tables.
HeadTables NeutralTables(const SideFormat& side) {
  if (!NeedsCalibration(side.tunes)) return {};
  Shape shape;
  shape.layers.push_back({.query_heads = 1, .kv_heads = 1, .k_dim = kDim, .v_dim = kDim});
  return TablesOf(side, NeutralCalibration(shape).layers[0], 0);
}

std::vector<float> Rows(int rows) {
  std::vector<float> x(static_cast<size_t>(rows) * kHeads * kDim);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i % 1009));
  return x;
}

// One side of a page, and what sealing it by a target or by its codec takes.
struct SealCase {
  std::string side;
  SideKind kind;
  const KernelTable* table;  // null: the codec
};

void BenchSeal(benchmark::State& state, const SealCase& c) {
  const LayerFormat layer = LayerOf(c.side, c.kind);
  const bool key = c.kind == SideKind::kKey;
  const SideFormat& side = key ? layer.k : layer.v;
  const SidePart& part = key ? layer.sealed.k : layer.sealed.v;
  const ExactRows rows(layer);
  const Memory exact = Allocate(layer.exact.bytes), page = Allocate(layer.sealed.bytes);
  const std::vector<float> x = Rows(kPageTokens);
  rows.WriteKeys(exact.get(), 0, kPageTokens, x.data(), kDim);
  uint8_t* values = exact.get() + rows.ValueOffset(kPageTokens);
  rows.WriteValues(values, 0, kPageTokens, x.data(), kDim);

  const HeadTables tables = NeutralTables(side);
  const SealJob job = SealJobOf(side, tables, 0).value_or(SealJob{});
  const Memory scratch = Allocate(c.table != nullptr ? SealScratchFloats(job) * sizeof(float)
                                                     : SealScratchBytes(side));
  std::vector<float> read(static_cast<size_t>(kPageTokens) * kDim);
  PageDescriptor descriptor;
  const double start = CpuSeconds();
  for (auto _ : state) {
    if (c.table != nullptr) {
      c.table->seal(job, key ? exact.get() : values, page.get() + part.meta_offset,
                    page.get() + part.codes_offset, reinterpret_cast<float*>(scratch.get()));
    } else {
      if (key) {
        rows.ReadKeys(exact.get(), kPageTokens, read.data());
      } else {
        rows.ReadValues(values, kPageTokens, read.data());
      }
      SealSide(side, tables, read.data(), 0, part, page.get(), &descriptor, scratch.get());
    }
    benchmark::DoNotOptimize(page.get());
    benchmark::ClobberMemory();
  }
  state.counters["ns/value"] =
      (CpuSeconds() - start) * 1e9 / (static_cast<double>(state.iterations()) * kPageTokens * kDim);
}

// Rows of kHeads heads into the pages of each, `run` tokens at a time.
void BenchWrite(benchmark::State& state, const KernelTable* table, SideKind kind, int run) {
  const std::vector<float> x = Rows(kPageTokens);
  const size_t page_bytes = size_t{2} * kPageTokens * kDim;
  const Memory pages = Allocate(page_bytes * kHeads);
  const auto write = kind == SideKind::kKey ? table->write_keys : table->write_values;
  const double start = CpuSeconds();
  for (auto _ : state) {
    for (int t = 0; t < kPageTokens; t += run) {
      for (int h = 0; h < kHeads; ++h) {
        const float* from = x.data() + (static_cast<size_t>(t) * kHeads + h) * kDim;
        benchmark::DoNotOptimize(
            write(Element::kF16, from, kHeads * kDim, run, kDim, t, pages.get() + h * page_bytes));
      }
    }
    benchmark::ClobberMemory();
  }
  state.counters["ns/value"] =
      (CpuSeconds() - start) * 1e9 / (static_cast<double>(state.iterations()) * x.size());
}

// Of keys alone.
constexpr const char* kKeySides[] = {"w6/ch",          "w5/ch",        "w4/ch",
                                     "w3/ch",          "w2.6/ch",      "bal:had:u8/ch",
                                     "mu:had:lm4/tok", "u2/ch:hi12.5", "smooth:u4/tok"};
// Sides of the presets, then every family, with and without steps; last what has no kernel.
constexpr const char* kSides[] = {
    "u8/ch",         "had:i8/tok",     "u4/ch",     "had:lm4/tok", "u3/ch",     "had:lm3/tok",
    "rn2/ch",        "had:lm2/tok",    "u4/tok",    "u4/tok32",    "u4/tok64",  "u4/tok:clip0.9",
    "i8/tok",        "i8/ch",          "u2/ch32",   "u5/tok",      "u6/ch",     "had:u4/tok",
    "rn4/tok",       "nf4/tok",        "nf4/tok64", "lm4/tok",     "lm4/ch",    "lm3/tok32",
    "had:lm3/tok32", "had:lm4/tok:ub", "had:u4/ch", "e4m3/page",   "e5m2/page", "q8_0",
    "q5_1",          "q5_0",           "q4_1",      "q4_0",        "had:q4_0",  "u4/ch:mse",
    "u4/tok:mse",    "i4/tok:mse"};
constexpr const char* kSidesOfCodecs[] = {"iq4_nl", "mxfp4", "nvfp4"};

void RegisterKeys(const std::string& side, const std::string& name, const KernelTable* table) {
  benchmark::RegisterBenchmark(("seal_k/" + side + "/" + name).c_str(), BenchSeal,
                               SealCase{side, SideKind::kKey, table});
}

void RegisterSeal(const std::string& side, const std::string& name, const KernelTable* table) {
  RegisterKeys(side, name, table);
  benchmark::RegisterBenchmark(("seal_v/" + side + "/" + name).c_str(), BenchSeal,
                               SealCase{side, SideKind::kValue, table});
}

void RegisterTarget(const std::string& name, const KernelTable* table) {
  for (const char* side : kKeySides) RegisterKeys(side, name, table);
  for (const char* side : kSides) RegisterSeal(side, name, table);
  if (table == nullptr) return;
  for (const int run : {1, 16, 128}) {
    const std::string suffix = "/run" + std::to_string(run) + "/" + name;
    benchmark::RegisterBenchmark(("write_k" + suffix).c_str(), BenchWrite, table, SideKind::kKey,
                                 run);
    benchmark::RegisterBenchmark(("write_v" + suffix).c_str(), BenchWrite, table, SideKind::kValue,
                                 run);
  }
}

void RegisterAll() {
  for (const KernelTable* table : RunnableTargets()) RegisterTarget(table->name, table);
  RegisterTarget("codec", nullptr);
  for (const char* side : kSidesOfCodecs) RegisterSeal(side, "codec", nullptr);
}

}  // namespace
}  // namespace shorthand

int main(int argc, char** argv) {
  shorthand::RegisterAll();
  return shorthand::RunBenchmarks(argc, argv);
}
