#include "model/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/noise.h"

namespace shorthand {
namespace {

constexpr int kSkippedTokens = 4;
// More pages take memory, and change little.
constexpr int kNoisePages = 8;

// Sums over a text, of one KV head.
struct HeadSums {
  std::vector<double> k_variance;  // [k_dim] within pages, times the tokens
  std::vector<double> q_squares;   // [k_dim]
};

class Statistics {
 public:
  explicit Statistics(const Shape& shape) : shape_(shape) {
    for (const LayerShape& layer : shape.layers) {
      const int heads = layer.kv_owner >= 0 ? 0 : layer.kv_heads;
      const std::vector<double> zeros(layer.k_dim, 0.0);
      sums_.emplace_back(heads, HeadSums{zeros, zeros});
    }
  }

  // The rows from `skipped` on of one page.
  void Add(const ObservedRows& seen, int skipped) {
    if (seen.input == AttentionInput::kKeys) AddKeys(seen, skipped);
    if (seen.input == AttentionInput::kQueries) AddQueries(seen, skipped);
  }

  Result<Calibration> Finish(int64_t tokens, const CalibrateOptions& options) const {
    Calibration result = {
        .model = options.model_name, .source = options.source, .tokens = tokens, .layers = {}};
    const double count = static_cast<double>(tokens - kSkippedTokens);
    for (size_t i = 0; i < sums_.size(); ++i) {
      const LayerShape& shape = shape_.layers[i];
      LayerStatistics layer;
      layer.rope_pairs = shape.rope.pairs;
      layer.rope_dims = 2 * static_cast<int>(shape.rope.frequencies.size());
      for (const HeadSums& sums : sums_[i]) {
        const double queries = count * (shape.query_heads / shape.kv_heads);
        HeadStatistics head;
        for (int c = 0; c < shape.k_dim; ++c) {
          head.k_spread.push_back(static_cast<float>(std::sqrt(sums.k_variance[c] / count)));
          head.q_rms.push_back(static_cast<float>(std::sqrt(sums.q_squares[c] / queries)));
          if (std::isfinite(head.k_spread.back()) && std::isfinite(head.q_rms.back())) continue;
          return DataLoss(fmt::format(
              "the keys or queries of layer {} are not finite on this text; nothing is calibrated",
              i));
        }
        layer.heads.push_back(std::move(head));
      }
      result.layers.push_back(std::move(layer));
    }
    return result;
  }

 private:
  void AddKeys(const ObservedRows& seen, int skipped) {
    const int row_floats = seen.heads * seen.dim;
    const int rows = static_cast<int>(seen.rows.size()) / row_floats;
    for (size_t h = 0; h < sums_[seen.layer].size(); ++h) {
      for (int c = 0; c < seen.dim; ++c) {
        const float* at = seen.rows.data() + h * seen.dim + c;
        double sum = 0, squares = 0;
        for (int r = skipped; r < rows; ++r) {
          const double x = at[static_cast<size_t>(r) * row_floats];
          sum += x;
          squares += x * x;
        }
        const double variance = squares - sum * sum / (rows - skipped);
        sums_[seen.layer][h].k_variance[c] += std::max(variance, 0.0);
      }
    }
  }

  void AddQueries(const ObservedRows& seen, int skipped) {
    const LayerShape& shape = shape_.layers[seen.layer];
    std::vector<HeadSums>& sums = sums_[seen.layer];
    if (sums.empty()) return;  // the keys are another layer's
    const int group = shape.query_heads / shape.kv_heads;
    const size_t row_floats = static_cast<size_t>(seen.heads) * seen.dim;
    for (size_t at = skipped * row_floats; at < seen.rows.size(); at += row_floats) {
      for (int h = 0; h < seen.heads; ++h) {
        for (int c = 0; c < seen.dim; ++c) {
          const double x = seen.rows[at + h * seen.dim + c];
          sums[h / group].q_squares[c] += x * x;
        }
      }
    }
  }

  const Shape& shape_;
  std::vector<std::vector<HeadSums>> sums_;  // [layer][KV head]
};

// The rows of the first pages of a text, and the queries of the last of them.
class NoiseRows {
 public:
  NoiseRows(const Shape& shape, size_t pages)
      : pages_(std::min<int>(kNoisePages, static_cast<int>(pages))) {
    text_.tokens = pages_ * kPageTokens;
    text_.layers.resize(shape.layers.size());
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
  Status Measure(const Model& model, Calibration* calibration) const {
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
    const auto noise = AttentionNoise(model.shape(), recipes, calibration, text_, model.threads());
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
  Statistics statistics(model.shape());
  const size_t pages = tokens.size() / kPageTokens;
  NoiseRows noise(model.shape(), pages);
  constexpr std::array<int32_t, 1> kLastRow = {kPageTokens - 1};  // makes all layers attend
  Status failure;
  for (size_t p = 0; p < pages && failure.ok(); ++p) {
    const int skipped = p == 0 ? kSkippedTokens : 0;
    model.Observe([&](const ObservedRows& seen) {
      statistics.Add(seen, skipped);
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
  }
  model.Observe({});
  if (!failure.ok()) return failure;
  auto calibration = statistics.Finish(static_cast<int64_t>(pages) * kPageTokens, options);
  if (!calibration.ok()) return calibration;
  failure = noise.Measure(model, &*calibration);
  if (!failure.ok()) return failure;
  return calibration;
}

}  // namespace shorthand
