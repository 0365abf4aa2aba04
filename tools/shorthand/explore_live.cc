#include "explore_live.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "eval_measure.h"
#include "eval_report.h"
#include "explore_data.h"
#include "model_path.h"

namespace shorthand {

Status LiveRuns::Start(const std::string& recipe) {
  if (request_.model.empty()) {
    return InvalidArgument("without a model nothing can be measured; start explore with -m MODEL");
  }
  auto parsed = ParseRecipeRequest(recipe);
  if (!parsed.ok()) return parsed.status();
  const std::lock_guard lock(mutex_);
  if (running_) {
    return FailedPrecondition(
        fmt::format("{} is being measured; stop it, or wait for it", running_->recipe));
  }
  running_ = Running{recipe};
  error_ = nullptr;
  worker_ = std::jthread([this, recipe, parsed = *std::move(parsed)](std::stop_token stop) {
    Finish(Measure(recipe, parsed, std::move(stop)));
  });
  return OkStatus();
}

void LiveRuns::Stop() {
  const std::lock_guard lock(mutex_);
  worker_.request_stop();
}

nlohmann::ordered_json LiveRuns::State() const {
  const std::lock_guard lock(mutex_);
  Json running;
  if (running_) running = {{"recipe", running_->recipe}, {"done", running_->done}};
  return {{"running", std::move(running)}, {"report", report_}, {"error", error_}};
}

Status LiveRuns::Load() {
  if (model_ != nullptr) return OkStatus();
  auto path = ModelPath(request_.model);
  if (!path.ok()) return path.status();
  auto text = ReadEvalText(request_.text_file);
  if (!text.ok()) return text.status();
  auto model = Model::Load(*path, {.precision = Precision::kF32, .threads = request_.threads});
  if (!model.ok()) return model.status();
  path_ = *std::move(path);
  text_ = *std::move(text);
  model_ = *std::move(model);
  return OkStatus();
}

Result<nlohmann::ordered_json> LiveRuns::Measure(const std::string& name,
                                                 const RecipeRequest& recipe,
                                                 std::stop_token stop) {
  if (Status status = Load(); !status.ok()) return status;
  int64_t context_tokens = kLiveContextTokens;
  if (const int64_t most = model_->shape().max_context_tokens; most > 0) {
    context_tokens = std::min(context_tokens, most);
  }
  const EvalRequest request = {.model = request_.model,
                               .texts = {text_},
                               .contexts = {context_tokens},
                               .windows = 1,
                               .recipe_texts = {name},
                               .recipes = {recipe}};
  const auto on_progress = [this](double share) {
    const std::lock_guard lock(mutex_);
    running_->done = share;
  };
  const auto report = MeasureLoaded(*model_, path_, request, book_, on_progress, std::move(stop));
  if (!report.ok()) return report.status();
  const Contender& contender = report->contexts.front().evaluation.rows.front().contender;
  if (!contender.status.ok()) return contender.status;
  return EvalJson(*report);
}

void LiveRuns::Finish(const Result<Json>& measured) {
  const std::lock_guard lock(mutex_);
  running_.reset();
  if (measured.ok()) {
    AddRow(ShownKl(*measured, "measured here"));
  } else if (measured.status().code() != StatusCode::kCancelled) {
    error_ = measured.status().message();
  }
}

void LiveRuns::AddRow(Json report) {
  report["options"] = {"-m", request_.model, "-c", report.at("context").dump(), "--windows", "1"};
  if (!request_.text_file.empty()) {
    report["options"].push_back("-f");
    report["options"].push_back(request_.text_file);
  }
  Json rows = report_.is_null() ? Json::array() : std::move(report_.at("rows"));
  const Json& row = report.at("rows").front();
  bool known = false;
  for (const Json& other : rows) known = known || other.at("recipe") == row.at("recipe");
  if (!known) rows.push_back(row);
  report["rows"] = std::move(rows);
  report_ = std::move(report);
}

}  // namespace shorthand
