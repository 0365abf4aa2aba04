#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "model_bars.h"
#include "quant/footprint.h"
#include "quant/head_tables.h"
#include "shorthand/cache.h"

namespace shorthand {
namespace {

constexpr double kResidentMark = 0.05;  // of the allocated bytes, beyond their growth
constexpr std::array<const char*, 2> kRecipes = {"f16", "4bit"};

constexpr double kMiB = 1 << 20;

// From smaps_rollup, which counts pages; VmRSS lags behind by a few for each thread.
Result<int64_t> ResidentBytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word && word != "Rss:") {
  }
  int64_t kib = 0;
  if (!(file >> kib)) return Unimplemented("/proc/self/smaps_rollup does not tell the memory used");
  return kib * 1024;
}

Status Append(Model& model, Cache& cache, SequenceId sequence, std::span<const Token> tokens) {
  const BatchItem item = {.sequence = sequence, .tokens = static_cast<int>(tokens.size())};
  Result<std::unique_ptr<Batch>> batch = cache.Begin({&item, 1});
  if (!batch.ok()) return batch.status();
  const std::array<int32_t, 1> last = {item.tokens - 1};
  if (const auto logits = model.Forward(**batch, tokens, last); !logits.ok()) {
    return logits.status();
  }
  return (*batch)->Commit();
}

struct Memory {
  int64_t resident_bytes = 0;
  int64_t allocated_bytes = 0;
};
Result<Memory> Now(const Cache& cache) {
  const Result<int64_t> resident = ResidentBytes();
  if (!resident.ok()) return resident.status();
  return Memory{*resident, static_cast<int64_t>(cache.Stats().allocated_bytes)};
}

// The same chunk each time: every row of the embedding that is ever read is in memory after the
// first one.
Status MeasureResidentMemory(Model& model, const char* recipe, std::span<const Token> chunk,
                             int64_t text_tokens, BarReport& report) {
  const Calibration calibration = NeutralCalibration(model.shape());
  Result<std::unique_ptr<Cache>> cache =
      Cache::Open(model.shape(), *Recipe::Parse(recipe), {.calibration = &calibration});
  if (!cache.ok()) return cache.status();
  const SequenceId sequence = (*cache)->Create();
  const auto feed = [&](int64_t tokens) {
    return Append(model, **cache, sequence, chunk.first(static_cast<size_t>(tokens)));
  };
  const int64_t chunk_tokens = std::min(static_cast<int64_t>(chunk.size()), text_tokens);
  if (Status status = feed(chunk_tokens); !status.ok()) return status;
  const Result<Memory> begin = Now(**cache);
  for (int64_t at = chunk_tokens; at < text_tokens; at += chunk_tokens) {
    if (Status status = feed(std::min(chunk_tokens, text_tokens - at)); !status.ok()) return status;
  }
  const Result<Memory> end = Now(**cache);
  if (!begin.ok() || !end.ok()) return end.status();
  const int64_t resident = end->resident_bytes - begin->resident_bytes;
  const int64_t allocated = end->allocated_bytes - begin->allocated_bytes;
  const double beyond = static_cast<double>(resident - allocated) / end->allocated_bytes;
  report.Print(
      fmt::format("resident memory from {} to {} tokens, recipe {}", chunk_tokens, text_tokens,
                  recipe),
      fmt::format("grew by {:.2f} MiB, allocated by {:.2f} to {:.2f} MiB: {:+.2f} % of it",
                  resident / kMiB, allocated / kMiB, end->allocated_bytes / kMiB, 100 * beyond),
      "at most +5 %", AtMost(beyond, kResidentMark));
  return OkStatus();
}

// Any numbers will do: sizes do not depend on them.
Status AppendOne(Cache& cache, SequenceId sequence, std::span<const float> row) {
  const BatchItem item = {.sequence = sequence, .tokens = 1};
  Result<std::unique_ptr<Batch>> batch = cache.Begin({&item, 1});
  if (!batch.ok()) return batch.status();
  const std::vector<LayerShape>& layers = cache.shape().layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].kv_heads == 0 || layers[i].kv_owner >= 0) continue;
    (*batch)->Write(static_cast<int>(i), row.data(), row.data(), 0, 1);
    (*batch)->Seal(static_cast<int>(i), 0, 1);
  }
  return (*batch)->Commit();
}

Status MeasureAllocation(const Shape& shape, const char* recipe_text, int64_t tokens,
                         BarReport& report) {
  const Recipe recipe = *Recipe::Parse(recipe_text);
  const auto groups = ResolveGroups(shape, recipe);
  if (!groups.ok()) return groups.status();
  const Calibration calibration = NeutralCalibration(shape);
  Result<std::unique_ptr<Cache>> cache = Cache::Open(shape, recipe, {.calibration = &calibration});
  if (!cache.ok()) return cache.status();
  int row_floats = 0;
  for (const LayerShape& layer : shape.layers) {
    row_floats = std::max({row_floats, layer.kv_heads * layer.k_dim, layer.kv_heads * layer.v_dim});
  }
  std::vector<float> row(row_floats);
  for (int i = 0; i < row_floats; ++i) row[i] = static_cast<float>(i % 13 - 6);
  const SequenceId sequence = (*cache)->Create();
  for (int64_t i = 0; i < tokens; ++i) {
    if (Status status = AppendOne(**cache, sequence, row); !status.ok()) return status;
  }
  const uint64_t planned = FootprintOf(*groups, tokens, 1).allocated_bytes;
  const uint64_t allocated = (*cache)->Stats().allocated_bytes;
  report.Print(
      fmt::format("allocated for {} tokens appended singly, recipe {}", tokens, recipe_text),
      fmt::format("{} bytes, planned {}", allocated, planned), "equal",
      allocated == planned ? Outcome::kMet : Outcome::kMissed);
  return OkStatus();
}

}  // namespace

Status MeasureResidentMemory(Model& model, std::span<const Token> chunk, int64_t text_tokens,
                             BarReport& report) {
  for (const char* recipe : kRecipes) {
    fmt::print(stderr, "memory: recipe {}\n", recipe);
    Status status = MeasureResidentMemory(model, recipe, chunk, text_tokens, report);
    if (!status.ok()) return status;
  }
  return OkStatus();
}

Status MeasureAllocation(const Shape& shape, int64_t tokens, BarReport& report) {
  for (const char* recipe : kRecipes) {
    Status status = MeasureAllocation(shape, recipe, tokens, report);
    if (!status.ok()) return status;
  }
  return OkStatus();
}

}  // namespace shorthand
