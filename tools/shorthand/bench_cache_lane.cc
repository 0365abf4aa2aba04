#include <algorithm>
#include <cmath>
#include <utility>

#include "attention/integer_path.h"
#include "attention/reference.h"
#include "bench_attention_lanes.h"
#include "bench_lane_limits.h"
#include "cache/cache_impl.h"
#include "quant/footprint.h"
#include "quant/head_tables.h"
#include "shorthand/attention.h"

namespace shorthand {
namespace {

constexpr int64_t kErrorTokens = 1000;
constexpr uint64_t kQueryStream = uint64_t{1} << 40;

std::string PathOf(const SideFormat& side, const HeadTables& tables) {
  if (side.exact) return "exact";
  if (!side.plain()) return "unsealed";
  return IntegerPath(side, tables).usable() ? "integer" : "generic";
}

const LayerFormat& FirstLayer(const Cache& cache) {
  return cache.impl()->format(cache.impl()->place(0));
}

struct Attended {
  std::vector<float> ours;
  std::vector<double> exact;
};

Result<Attended> AttendOnce(Cache& cache, SequenceId sequence, const SyntheticRows& data,
                            ThreadTeam& team) {
  const LayerShape& layer = cache.shape().layers[0];
  const std::vector<float> q =
      data.Plain(kQueryStream, static_cast<size_t>(layer.query_heads) * layer.k_dim);
  const size_t outputs = static_cast<size_t>(layer.query_heads) * layer.v_dim;
  Attended result{std::vector<float>(outputs), std::vector<double>(outputs)};
  const BatchItem item = {.sequence = sequence, .tokens = 1};
  auto batch = cache.Begin({&item, 1});
  if (!batch.ok()) return batch.status();
  WriteRows(**batch, cache.shape(), data, team);
  const auto plan = AttentionPlan::Create(**batch);
  if (!plan.ok()) return plan.status();
  const AttentionArgs args = {.layer = 0, .q = q.data(), .out = result.ours.data()};
  (*plan)->Run(args, 0, 1);
  ReferenceAttention(**batch, args, result.exact.data());
  if (Status status = (*batch)->status(); !status.ok()) return status;
  return result;
}

}  // namespace

const char* NameOf(PeerType type) {
  switch (type) {
    case PeerType::kF16:
      return "f16";
    case PeerType::kQ8_0:
      return "q8_0";
    case PeerType::kQ4_0:
      return "q4_0";
  }
  return "";
}

Shape AttentionCase::ShapeOf(int layers) const {
  const LayerShape layer = {
      .query_heads = rows * kv_heads, .kv_heads = kv_heads, .k_dim = dim, .v_dim = dim};
  Shape shape;
  shape.name = "bench";
  shape.layers.assign(layers, layer);
  return shape;
}

CacheLane::CacheLane(std::unique_ptr<Cache> cache, int queries, const SyntheticRows& data,
                     ThreadTeam& team)
    : cache_(std::move(cache)),
      queries_(queries),
      data_(data),
      team_(team),
      sequence_(cache_->Create()) {
  const LayerShape& layer = cache_->shape().layers[0];
  const size_t heads = static_cast<size_t>(queries) * layer.query_heads;
  q_ = data.Plain(kQueryStream, heads * layer.k_dim);
  out_.resize(heads * layer.v_dim);
}

Result<std::unique_ptr<CacheLane>> CacheLane::Open(const AttentionCase& what, const Recipe& recipe,
                                                   const SyntheticRows& data, ThreadTeam& team,
                                                   const std::function<void(double)>& on_progress) {
  const auto groups = ResolveGroups(what.ShapeOf(1), recipe);
  if (!groups.ok()) return groups.status();
  const int layers = LayersFor(what.working_set, LogicalBytes(*groups, what.length));
  const Shape shape = what.ShapeOf(layers);
  const Calibration calibration = NeutralCalibration(shape);
  auto cache = Cache::Open(shape, recipe, {.calibration = &calibration});
  if (!cache.ok()) return cache.status();
  std::unique_ptr<CacheLane> lane(new CacheLane(std::move(*cache), what.queries, data, team));
  const Status filled =
      FillTo(*lane->cache_, lane->sequence_, what.length, data, team, on_progress);
  if (!filled.ok()) return filled;
  return lane;
}

Result<double> CacheLane::SecondsPerLayer() {
  const BatchItem item = {.sequence = sequence_, .tokens = queries_};
  double seconds = 0;
  int runs = 0;
  for (; seconds < kLeastSampleSeconds; ++runs) {
    auto batch = cache_->Begin({&item, 1});
    if (!batch.ok()) return batch.status();
    WriteRows(**batch, cache_->shape(), data_, team_);
    const double begin = WorkSeconds(team_.size());
    const auto plan = AttentionPlan::Create(**batch);
    if (!plan.ok()) return plan.status();
    for (int layer = 0; layer < layers(); ++layer) {
      const AttentionArgs args = {.layer = layer, .q = q_.data(), .out = out_.data()};
      team_.Run([&](int worker) { (*plan)->Run(args, worker, team_.size()); });
    }
    seconds += WorkSeconds(team_.size()) - begin;
    if (Status status = (*batch)->status(); !status.ok()) return status;
  }
  return seconds / runs / layers();
}

std::string CacheLane::k_path() const {
  const LayerFormat& layer = FirstLayer(*cache_);
  return PathOf(layer.k, layer.k_tables.front());
}

std::string CacheLane::v_path() const {
  const LayerFormat& layer = FirstLayer(*cache_);
  return PathOf(layer.v, layer.v_tables.front());
}

PeerType CacheLane::peer() const {
  constexpr double kQ8FromBits = 6;
  const LayerFormat& format = FirstLayer(*cache_);
  if (format.k.exact && format.v.exact) return PeerType::kF16;
  const auto bits_of = [](const SideFormat& side) {
    return 8.0 * static_cast<double>(side.codes_bytes()) / (kPageTokens * side.padded_dim);
  };
  const double bits = (bits_of(format.k) + bits_of(format.v)) / 2;
  return bits >= kQ8FromBits ? PeerType::kQ8_0 : PeerType::kQ4_0;
}

Result<double> ArithmeticError(const AttentionCase& what, const Recipe& recipe,
                               const SyntheticRows& data, ThreadTeam& team) {
  const Shape shape = what.ShapeOf(1);
  const Calibration calibration = NeutralCalibration(shape);
  auto cache = Cache::Open(shape, recipe, {.calibration = &calibration});
  if (!cache.ok()) return cache.status();
  const SequenceId sequence = (*cache)->Create();
  const int64_t tokens = std::min(what.length, kErrorTokens);
  if (Status status = FillTo(**cache, sequence, tokens, data, team, [](double) {}); !status.ok()) {
    return status;
  }
  const auto attended = AttendOnce(**cache, sequence, data, team);
  if (!attended.ok()) return attended.status();
  double error = 0, size = 0;
  for (size_t i = 0; i < attended->exact.size(); ++i) {
    error += std::pow(attended->ours[i] - attended->exact[i], 2);
    size += std::pow(attended->exact[i], 2);
  }
  return std::sqrt(error / size);
}

}  // namespace shorthand
