// Speed of the integer attention of one page, per target and stage: cycles per token and KV head.
//
// A page's attention is widen, fold_query, score_codes, softmax, fold_weights, accumulate_codes, in
// this order; the stages that work on a row alone are measured for all rows of the pass.
// Thread-safety: one thread.
#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/kernels.h"
#include "page_bench.h"

namespace shorthand {
namespace {

constexpr int kDim = 128;

struct CodedCase {
  const KernelTable* table;
  int bits;
  int rows;
  int token_groups;  // of a page: 1, or 4 of 32 tokens
  int query_limbs;
};

// One page's worth of everything that the stages read and write.
struct PageAttention {
  explicit PageAttention(const CodedCase& c)
      : meta(size_t{2} * c.token_groups * kDim, 0.05f),
        queries(static_cast<size_t>(c.rows) * kDim, 0.5f),
        scores(static_cast<size_t>(c.rows) * kSlots, 1.0f),
        out(static_cast<size_t>(c.rows) * kDim),
        query_bytes(size_t{kMaxTokenGroups} * kMaxLimbs * c.rows * kDim),
        weight_bytes(size_t{kMaxLimbs} * c.rows * kSlots) {
    for (size_t i = 0; i < queries.size(); ++i) queries[i] = 0.01f * static_cast<float>(i % 89);
    folded.limbs = 1;
    folded.bytes = query_bytes.data();
    weights.bytes = weight_bytes.data();
    weights.limbs = c.bits >= 5 ? 2 : 1;
    // A root mean square that forces the limbs that are wanted.
    code_rms = c.query_limbs == 1 ? 0.0f : 1e6f;
    keys = {nullptr, meta.data(),          nullptr, 1.0f, 1 << (c.bits - 1), 0.0f, kDim, c.bits,
            true,    128 / c.token_groups, true};
    values = keys;
    values.per_channel = false;
    values.group = c.token_groups == 1 ? kDim : kDim / c.token_groups;
  }

  std::vector<float> meta, queries, scores, out;
  std::vector<int8_t> query_bytes;
  std::vector<uint8_t> weight_bytes;
  FoldedQueries folded;
  FoldedWeights weights;
  float code_rms;
  CodedSide8 keys, values;
};

void BenchWiden(benchmark::State& state, CodedCase c) {
  PageAttention a(c);
  const size_t count = a.meta.size();
  RunPages(state, kResidentBytes, count * sizeof(uint16_t), kDim, c.rows, [&](const uint8_t* page) {
    c.table->widen(page, static_cast<int>(count), a.meta.data());
    benchmark::DoNotOptimize(a.meta.data());
  });
}

void FoldQueries(const CodedCase& c, PageAttention* a) {
  c.table->fold_query(a->keys, a->queries.data(), a->code_rms, c.rows, &a->folded);
}

void FoldWeights(const CodedCase& c, PageAttention* a) {
  c.table->fold_weights(a->values, a->scores.data(), c.rows, &a->weights);
}

void BenchFoldQuery(benchmark::State& state, CodedCase c) {
  PageAttention a(c);
  RunPages(state, kResidentBytes, kSlots * kDim * c.bits / 8, kDim, c.rows, [&](const uint8_t*) {
    FoldQueries(c, &a);
    benchmark::DoNotOptimize(a.query_bytes.data());
  });
}

void BenchFoldWeights(benchmark::State& state, CodedCase c) {
  PageAttention a(c);
  RunPages(state, kResidentBytes, kSlots * kDim * c.bits / 8, kDim, c.rows, [&](const uint8_t*) {
    FoldWeights(c, &a);
    benchmark::DoNotOptimize(a.weight_bytes.data());
  });
}

void BenchScoreCodes(benchmark::State& state, CodedCase c) {
  PageAttention a(c);
  FoldQueries(c, &a);
  RunPages(state, kResidentBytes, kSlots * kDim * c.bits / 8, kDim, c.rows,
           [&](const uint8_t* page) {
             a.keys.lines = page;
             c.table->score_codes(a.keys, a.folded, c.rows, 0, 8, a.scores.data());
             benchmark::DoNotOptimize(a.scores.data());
           });
}

void BenchAccumulateCodes(benchmark::State& state, CodedCase c) {
  PageAttention a(c);
  FoldWeights(c, &a);
  const std::vector<float> shrink(c.rows, 0.5f);
  RunPages(state, kResidentBytes, kSlots * kDim * c.bits / 8, kDim, c.rows,
           [&](const uint8_t* page) {
             a.values.lines = page;
             c.table->accumulate_codes(a.values, a.weights, shrink.data(), 0, kSlots, c.rows,
                                       a.out.data());
             benchmark::DoNotOptimize(a.out.data());
           });
}

void BenchSoftmaxRows(benchmark::State& state, CodedCase c) {
  PageAttention a(c);
  const std::vector<float> scores = a.scores;
  std::vector<RowState> states(c.rows, {0, 0});
  const std::vector<RowView> views(c.rows, {0, kSlots, 0});
  std::vector<float> shrink(c.rows);
  RunPages(state, kResidentBytes, kSlots * kDim * c.bits / 8, kDim, c.rows, [&](const uint8_t*) {
    a.scores = scores;
    c.table->softmax({0.1f, 0.0f}, views.data(), c.rows, a.scores.data(), states.data(),
                     shrink.data());
    benchmark::DoNotOptimize(a.scores.data());
  });
}

void RegisterCase(const CodedCase& c) {
  const std::string name = std::string("/") + c.table->name + "/b" + std::to_string(c.bits) +
                           "/rows" + std::to_string(c.rows) +
                           (c.token_groups == 1 ? "" : "/groups32") +
                           (c.query_limbs == 1 ? "" : "/limbs2");
  const std::pair<const char*, void (*)(benchmark::State&, CodedCase)> stages[] = {
      {"widen", BenchWiden},
      {"fold_query", BenchFoldQuery},
      {"score_codes", BenchScoreCodes},
      {"softmax", BenchSoftmaxRows},
      {"fold_weights", BenchFoldWeights},
      {"accumulate_codes", BenchAccumulateCodes}};
  for (const auto& [stage, run] : stages) {
    benchmark::RegisterBenchmark((stage + name).c_str(), run, c);
  }
}

void RegisterAll() {
  for (const KernelTable* table : RunnableTargets()) {
    for (const int rows : {1, 2, 3, 4, 6, 7, 8}) {
      for (const int bits : {2, 3, 4, 5, 6, 8}) {
        for (const int limbs : {1, 2}) {
          for (const int groups : {1, 4}) {
            RegisterCase({table, bits, rows, groups, limbs});
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace shorthand

int main(int argc, char** argv) {
  shorthand::RegisterAll();
  return shorthand::RunBenchmarks(argc, argv);
}
