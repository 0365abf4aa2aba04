#include <fmt/format.h>
#include <ggml-cpp.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "bench_attention_lanes.h"
#include "bench_lane_limits.h"

namespace shorthand {
namespace {

ggml_type TypeOf(PeerType type) {
  switch (type) {
    case PeerType::kF16:
      return GGML_TYPE_F16;
    case PeerType::kQ8_0:
      return GGML_TYPE_Q8_0;
    case PeerType::kQ4_0:
      return GGML_TYPE_Q4_0;
  }
  return GGML_TYPE_F16;
}

// The one token of decoding is not counted, so that lengths stay round.
int64_t KeysOf(const AttentionCase& what) {
  return what.queries == 1 ? what.length : what.length + what.queries;
}

// llama.cpp's masks have whole blocks of queries.
int64_t PaddedQueries(const AttentionCase& what) {
  constexpr int64_t kBlock = 64;
  return what.queries == 1 ? 1 : (what.queries + kBlock - 1) / kBlock * kBlock;
}

// Rows as llama.cpp stores them: a token's heads side by side.
ggml_tensor* NewRows(ggml_context* context, ggml_type type, const AttentionCase& what) {
  return ggml_new_tensor_3d(context, type, what.dim, what.kv_heads, KeysOf(what));
}

// Causal: query i sees the tokens before the first and i more.
ggml_tensor* NewMask(ggml_context* context, const AttentionCase& what) {
  ggml_tensor* mask = ggml_new_tensor_2d(context, GGML_TYPE_F16, KeysOf(what), PaddedQueries(what));
  std::vector<float> row(KeysOf(what));
  for (int64_t i = 0; i < mask->ne[1]; ++i) {
    for (int64_t t = 0; t < mask->ne[0]; ++t) row[t] = t <= what.length + i ? 0 : -INFINITY;
    ggml_fp32_to_fp16_row(row.data(), static_cast<ggml_fp16_t*>(mask->data) + i * mask->ne[0],
                          mask->ne[0]);
  }
  return mask;
}

// One stretch of numbers over and over: the time does not depend on them.
void FillRows(ggml_tensor* rows, const std::vector<float>& numbers, int dim) {
  const int64_t count = ggml_nrows(rows);
  const int64_t stretch = std::min<int64_t>(count, static_cast<int64_t>(numbers.size()) / dim);
  const size_t row_bytes = ggml_row_size(rows->type, dim);
  auto* data = static_cast<uint8_t*>(rows->data);
  ggml_quantize_chunk(rows->type, numbers.data(), data, 0, stretch, dim, nullptr);
  for (int64_t row = stretch; row < count; row += stretch) {
    std::memcpy(data + row * row_bytes, data, std::min(stretch, count - row) * row_bytes);
  }
}

struct FreeThreadpool {
  void operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
};

}  // namespace

struct GgmlLane::Impl {
  ggml_context_ptr context;
  std::unique_ptr<ggml_threadpool, FreeThreadpool> threadpool;
  std::vector<ggml_cgraph*> graphs;  // one a layer
  std::vector<uint8_t> work;
  int threads = 1;
  size_t next_layer = 0;

  bool Compute(ggml_cgraph* graph) {
    ggml_cplan plan = ggml_graph_plan(graph, threads, threadpool.get());
    work.resize(std::max(work.size(), plan.work_size));
    plan.work_data = work.data();
    return ggml_graph_compute(graph, &plan) == GGML_STATUS_SUCCESS;
  }

  void AddLayer(const AttentionCase& what, ggml_type type, ggml_tensor* q, ggml_tensor* mask,
                const SyntheticRows& data) {
    constexpr size_t kStretch = size_t{1} << 10;
    ggml_tensor* k = NewRows(context.get(), type, what);
    ggml_tensor* v = NewRows(context.get(), type, what);
    FillRows(k, data.Keys(0, kStretch, what.dim), what.dim);
    FillRows(v, data.Plain(1, kStretch * what.dim), what.dim);
    ggml_tensor* out =
        ggml_flash_attn_ext(context.get(), q, ggml_permute(context.get(), k, 0, 2, 1, 3),
                            ggml_permute(context.get(), v, 0, 2, 1, 3), mask,
                            1 / std::sqrt(static_cast<float>(what.dim)), 0, 0);
    ggml_cgraph* graph = ggml_new_graph_custom(context.get(), 16, false);
    ggml_build_forward_expand(graph, out);
    graphs.push_back(graph);
  }
};

GgmlLane::GgmlLane(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GgmlLane::~GgmlLane() = default;

Result<std::unique_ptr<GgmlLane>> GgmlLane::Open(const AttentionCase& what, PeerType peer,
                                                 const SyntheticRows& data, int threads) {
  const ggml_type type = TypeOf(peer);
  if (what.dim % ggml_blck_size(type) != 0) {
    return InvalidArgument(
        fmt::format("ggml's {} has blocks of {} values; a head dim of {} is not "
                    "a multiple of it",
                    NameOf(peer), ggml_blck_size(type), what.dim));
  }
  ggml_cpu_init();
  const size_t side_bytes = ggml_row_size(type, what.dim) * what.kv_heads * KeysOf(what);
  const int layers = LayersFor(what.working_set, 2 * side_bytes);
  const size_t small_bytes =
      (size_t{64} << 10) * (layers + 1) +
      sizeof(float) * what.dim * what.rows * what.kv_heads * what.queries * 2 * (layers + 1) +
      KeysOf(what) * PaddedQueries(what) * sizeof(ggml_fp16_t);
  auto impl = std::make_unique<Impl>();
  impl->threads = threads;
  impl->context.reset(ggml_init({.mem_size = 2 * side_bytes * layers + small_bytes,
                                 .mem_buffer = nullptr,
                                 .no_alloc = false}));
  ggml_threadpool_params params = ggml_threadpool_params_default(threads);
  impl->threadpool.reset(ggml_threadpool_new(&params));
  if (impl->context == nullptr || impl->threadpool == nullptr) {
    return ResourceExhausted("ggml has no memory for the peer");
  }
  ggml_context* context = impl->context.get();
  const int query_heads = what.rows * what.kv_heads;
  ggml_tensor* q = ggml_new_tensor_3d(context, GGML_TYPE_F32, what.dim, what.queries, query_heads);
  const std::vector<float> numbers = data.Plain(2, ggml_nelements(q));
  std::memcpy(q->data, numbers.data(), ggml_nbytes(q));
  ggml_tensor* mask = NewMask(context, what);
  for (int layer = 0; layer < layers; ++layer) impl->AddLayer(what, type, q, mask, data);
  return std::unique_ptr<GgmlLane>(new GgmlLane(std::move(impl)));
}

Result<double> GgmlLane::SecondsPerLayer() {
  double seconds = 0;
  int runs = 0;
  for (; seconds < kLeastSampleSeconds; ++runs) {
    ggml_cgraph* graph = impl_->graphs[impl_->next_layer];
    impl_->next_layer = (impl_->next_layer + 1) % impl_->graphs.size();
    const double begin = WorkSeconds(impl_->threads);
    if (!impl_->Compute(graph)) return Internal("ggml could not compute its attention");
    seconds += WorkSeconds(impl_->threads) - begin;
  }
  return seconds / runs;
}

}  // namespace shorthand
