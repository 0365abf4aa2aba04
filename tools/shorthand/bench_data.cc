#include "bench_data.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shorthand {
namespace {

constexpr size_t kNoise = size_t{1} << 20;
constexpr int kBatchTokens = 512;

uint64_t Mix(uint64_t x) {  // SplitMix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double Uniform(uint64_t seed) { return (static_cast<double>(Mix(seed) >> 11) + 0.5) * 0x1p-53; }

bool KeepsItsOwn(const LayerShape& layer) { return layer.kv_heads > 0 && layer.kv_owner < 0; }

}  // namespace

SyntheticRows::SyntheticRows() : noise_(kNoise) {
  for (size_t i = 0; i < kNoise; i += 2) {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log(Uniform(i)));
    const double angle = 2 * std::numbers::pi * Uniform(i + 1);
    noise_[i] = static_cast<float>(radius * std::cos(angle));
    noise_[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

std::vector<float> SyntheticRows::Plain(uint64_t stream, size_t count) const {
  std::vector<float> out(count);
  size_t from = Mix(stream) % kNoise;
  for (size_t done = 0; done < count;) {
    const size_t part = std::min(count - done, kNoise - from);
    std::copy_n(noise_.begin() + static_cast<ptrdiff_t>(from), part,
                out.begin() + static_cast<ptrdiff_t>(done));
    done += part;
    from = 0;
  }
  return out;
}

std::vector<float> SyntheticRows::Keys(uint64_t stream, size_t rows, int dim) const {
  std::vector<float> out = Plain(stream, rows * dim);
  for (size_t row = 0; row < rows; ++row) {
    for (const int loud : {1 % dim, dim / 2, dim - 1}) {
      float& x = out[row * dim + loud];
      x = 6 + 2 * x;
    }
  }
  return out;
}

void WriteRows(Batch& batch, const Shape& shape, const SyntheticRows& data, ThreadTeam& team) {
  const uint64_t position = static_cast<uint64_t>(batch.Position(0));
  for (size_t l = 0; l < shape.layers.size(); ++l) {
    const LayerShape& layer = shape.layers[l];
    if (!KeepsItsOwn(layer)) continue;
    const size_t rows = static_cast<size_t>(batch.rows()) * layer.kv_heads;
    const uint64_t stream = (position * shape.layers.size() + l) * 2;
    const std::vector<float> k = data.Keys(stream, rows, layer.k_dim);
    const std::vector<float> v = data.Plain(stream + 1, rows * layer.v_dim);
    const int index = static_cast<int>(l);
    team.Run([&](int worker) { batch.Write(index, k.data(), v.data(), worker, team.size()); });
    team.Run([&](int worker) { batch.Seal(index, worker, team.size()); });
  }
}

Status FillTo(Cache& cache, SequenceId sequence, int64_t tokens, const SyntheticRows& data,
              ThreadTeam& team, const std::function<void(double)>& on_progress) {
  for (;;) {
    const Result<int64_t> held = cache.Tokens(sequence);
    if (!held.ok()) return held.status();
    if (*held >= tokens) return OkStatus();
    const BatchItem item = {
        .sequence = sequence,
        .tokens = static_cast<int>(std::min<int64_t>(kBatchTokens, tokens - *held))};
    Result<std::unique_ptr<Batch>> batch = cache.Begin({&item, 1});
    if (!batch.ok()) return batch.status();
    WriteRows(**batch, cache.shape(), data, team);
    if (Status status = (*batch)->Commit(); !status.ok()) return status;
    on_progress(static_cast<double>(*held + item.tokens) / static_cast<double>(tokens));
  }
}

}  // namespace shorthand
