#include "model/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/noise.h"
#include "model/statistics.h"

namespace shorthand {
namespace {

// More pages take memory, and change little.
constexpr int kNoisePages = 8;

// The rows of the first pages of a text, and the queries of the last of them.
class NoiseRows {
 public:
  NoiseRows(const Shape& shape, size_t pages)
      : pages_(std::min<int>(kNoisePages, static_cast<int>(pages))) {
    text_.tokens = pages_ * kPageTokens;
    text_.layers.resize(shape.layers.size());
    for (size_t l = 0; l < shape.layers.size(); ++l) {
      const LayerShape& layer = shape.layers[l];
      if (layer.kv_owner >= 0) continue;
      const auto heads = static_cast<size_t>(text_.tokens) * layer.kv_heads;
      text_.layers[l].k.reserve(heads * layer.k_dim);
      text_.layers[l].v.reserve(heads * layer.v_dim);
    }
  }

  void Add(const ObservedRows& seen, int page) {
    if (page >= pages_) return;
    LayerRows& layer = text_.layers[seen.layer];
    const auto append = [&](std::vector<float>& rows) {
      rows.insert(rows.end(), seen.rows.begin(), seen.rows.end());
    };
    if (seen.input == AttentionInput::kKeys) append(layer.k);
    if (seen.input == AttentionInput::kValues) append(layer.v);
    if (seen.input == AttentionInput::kQueries && page == pages_ - 1) append(layer.q);
  }

  // Adds the noise of every width to the calibration.
  Status Measure(const Model& model, const std::stop_token& stop, Calibration* calibration) const {
    if (pages_ < 2) return OkStatus();
    std::vector<Recipe> recipes;
    Status failure;
    const auto add = [&](std::string_view text) {
      auto recipe = Recipe::Parse(fmt::format("{},sink={}", text, kSkippedTokens));
      if (recipe.ok()) recipes.push_back(*std::move(recipe));
      if (!recipe.ok()) failure = recipe.status();
    };
    for (const double bits : kKeyNoiseBits) add(fmt::format("k=w{}/ch,v=f32", bits));
    for (const double bits : kValueNoiseBits) add(fmt::format("k=f32,v=had:lm{}/tok:ub", bits));
    if (!failure.ok()) return failure;
    const auto noise =
        AttentionNoise(model.shape(), recipes, calibration, text_, model.threads(), stop);
    if (!noise.ok()) return noise.status();
    for (size_t i = 0; i < noise->size(); ++i) {
      for (size_t l = 0; l < calibration->layers.size(); ++l) {
        LayerStatistics& layer = calibration->layers[l];
        auto& of_side = i < kKeyNoiseBits.size() ? layer.k_noise : layer.v_noise;
        of_side.push_back(static_cast<float>((*noise)[i][l]));
      }
    }
    return OkStatus();
  }

 private:
  const int pages_;
  TextRows text_;
};

Status CheckTokens(const Model& model, int64_t tokens) {
  const int64_t most = model.shape().max_context_tokens;
  const int64_t least =
      most > 0 ? std::min(most, kLeastCalibrationTokens) : kLeastCalibrationTokens;
  if (tokens < std::max<int64_t>(least, kPageTokens)) {
    return InvalidArgument(
        fmt::format("a text of {} tokens; calibration takes at least {}", tokens, least));
  }
  if (most > 0 && tokens > most) {
    return OutOfRange(
        fmt::format("a text of {} tokens; this model was made for {} at most", tokens, most));
  }
  return OkStatus();
}

}  // namespace

Result<Calibration> Calibrate(Model& model, std::span<const Token> tokens,
                              const CalibrateOptions& options) {
  if (Status status = CheckTokens(model, static_cast<int64_t>(tokens.size())); !status.ok()) {
    return status;
  }
  Recipe exact;
  Result<std::unique_ptr<Cache>> cache = Cache::Open(model.shape(), exact);
  if (!cache.ok()) return cache.status();
  const BatchItem page = {.sequence = (*cache)->Create(), .tokens = kPageTokens};
  const size_t pages = tokens.size() / kPageTokens;
  Statistics statistics(model.shape(), static_cast<int64_t>(pages) * kPageTokens);
  NoiseRows noise(model.shape(), pages);
  constexpr std::array<int32_t, 1> kLastRow = {kPageTokens - 1};  // makes all layers attend
  Status failure;
  for (size_t p = 0; p < pages && failure.ok(); ++p) {
    const auto position = static_cast<int64_t>(p) * kPageTokens;
    model.Observe([&](const ObservedRows& seen) {
      statistics.Add(seen, position);
      noise.Add(seen, static_cast<int>(p));
    });
    Result<std::unique_ptr<Batch>> batch = (*cache)->Begin({&page, 1});
    if (!batch.ok()) {
      failure = batch.status();
      break;
    }
    const auto logits =
        model.Forward(**batch, tokens.subspan(p * kPageTokens, kPageTokens), kLastRow);
    failure = logits.ok() ? (*batch)->Commit() : logits.status();
    if (options.on_progress) {
      options.on_progress(static_cast<double>(p + 1) / static_cast<double>(pages));
    }
    if (options.stop.stop_requested()) failure = Status(StatusCode::kCancelled, "it was stopped");
  }
  model.Observe({});
  if (!failure.ok()) return failure;
  cache->reset();  // the noise takes caches of its own
  Result<std::vector<LayerStatistics>> layers = statistics.Finish();
  if (!layers.ok()) return layers.status();
  Calibration calibration = {.model = options.model_name,
                             .source = options.source,
                             .tokens = static_cast<int64_t>(pages) * kPageTokens,
                             .layers = *std::move(layers)};
  failure = noise.Measure(model, options.stop, &calibration);
  if (!failure.ok()) return failure;
  return Calibration::Parse(calibration.ToText());  // as whoever reads its file has it
}

}  // namespace shorthand
