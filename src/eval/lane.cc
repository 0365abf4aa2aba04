#include "eval/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace shorthand {

Lane::Lane(const Shape& shape, const Recipe& recipe, const Calibration* calibration) {
  Result<std::unique_ptr<Cache>> cache = Cache::Open(shape, recipe, {.calibration = calibration});
  if (!cache.ok()) {
    status_ = cache.status();
    return;
  }
  cache_ = std::move(*cache);
  sequence_ = cache_->Create();
}

void Lane::StartWindow() {
  if (status_.ok()) status_ = cache_->Crop(sequence_, 0);
}

std::span<const float> Lane::Feed(Model& model, std::span<const Token> tokens,
                                  std::span<const int32_t> output_rows) {
  if (!status_.ok()) return {};
  const Result<std::span<const float>> logits = Step(model, tokens, output_rows);
  if (logits.ok()) return *logits;
  status_ = logits.status();
  return {};
}

Result<std::span<const float>> Lane::Step(Model& model, std::span<const Token> tokens,
                                          std::span<const int32_t> output_rows) {
  Result<std::unique_ptr<Batch>> batch = Begin(static_cast<int>(tokens.size()));
  if (!batch.ok()) return batch.status();
  Result<std::span<const float>> logits = model.Forward(**batch, tokens, output_rows);
  if (!logits.ok()) return logits;
  if (Status status = (*batch)->Commit(); !status.ok()) return status;
  return logits;
}

Result<std::unique_ptr<Batch>> Lane::Begin(int tokens) {
  const BatchItem item = {.sequence = sequence_, .tokens = tokens};
  return cache_->Begin({&item, 1});
}

void Lane::BeginRows(int tokens) {
  if (!status_.ok()) return;
  Result<std::unique_ptr<Batch>> batch = Begin(tokens);
  if (batch.ok()) {
    rows_ = std::move(*batch);
  } else {
    status_ = batch.status();
  }
}

void Lane::CopyRows(int layer, const float* k, const float* v) {
  if (!status_.ok()) return;
  rows_->Write(layer, k, v, 0, 1);
  rows_->Seal(layer, 0, 1);
}

void Lane::EndRows() {
  if (status_.ok()) status_ = rows_->Commit();
  rows_.reset();
}

void Lane::Score(const ExactLogits& exact, std::span<const float> logits) {
  if (status_.ok()) status_ = CompareFinite(exact, logits, scores_);
}

Status CompareFinite(const ExactLogits& exact, std::span<const float> logits,
                     std::vector<PositionScore>& scores) {
  const size_t first = scores.size();
  exact.Compare(logits, scores);
  const auto finite = [](const PositionScore& score) {
    return std::isfinite(score.kl) && std::isfinite(score.nll) && std::isfinite(score.nll_exact);
  };
  const auto bad = std::find_if_not(scores.begin() + first, scores.end(), finite);
  if (bad == scores.end()) return OkStatus();
  return DataLoss(fmt::format("the model's output at scored position {} is not a number",
                              bad - scores.begin()));
}

}  // namespace shorthand
