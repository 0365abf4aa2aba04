#include "eval_measure.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "eval/evaluate.h"
#include "eval/fingerprint.h"
#include "eval/scoring.h"
#include "eval/windows.h"
#include "model/model.h"
#include "model_path.h"
#include "plan/units.h"
#include "progress.h"
#include "shorthand/attention.h"

namespace shorthand {
namespace {

// What is kept between runs holds for the same model, weights, protocol and arithmetic.
Result<ScoreBook> OpenBook(const EvalRequest& request, const std::string& model_path) {
  if (request.resume_file.empty()) return ScoreBook();
  const auto model = FileFingerprint(model_path);
  if (!model.ok()) return model.status();
  const auto target = ActiveTarget();
  if (!target.ok()) return target.status();
  return ScoreBook::Open(request.resume_file,
                         {{"the model file of fingerprint", *model},
                          {"weights", std::string(WeightsName(request.weights))},
                          {"the protocol", "streaming"},
                          {"kernels for", target->name}});
}

// The windows of every text in one context.
Result<std::vector<TextPassages>> CutTexts(const Vocab& vocab, const EvalRequest& request,
                                           int64_t context_tokens) {
  std::vector<TextPassages> texts;
  for (const EvalText& text : request.texts) {
    auto windows =
        CutWindows(vocab, text.text, context_tokens, request.windows, request.skipped_tokens);
    if (!windows.ok()) {
      return Status(windows.status().code(),
                    fmt::format("{}: {}", text.name, windows.status().message()));
    }
    if (static_cast<int64_t>(windows->size()) < request.windows) {
      fmt::print(stderr, "shorthand: {} ends after {} of {} windows of {} tokens\n", text.name,
                 windows->size(), request.windows, FormatTokens(context_tokens));
    }
    texts.push_back({text.name, PassagesOf(std::move(*windows), FirstScored(context_tokens))});
  }
  return texts;
}

}  // namespace

Result<EvalReport> Measure(const EvalRequest& request) {
  const auto path = ModelPath(request.model);
  if (!path.ok()) return path.status();
  auto book = OpenBook(request, *path);
  if (!book.ok()) return book.status();
  Progress progress("evaluating");
  const auto model = Model::Load(*path, {.precision = request.weights, .threads = request.threads});
  if (!model.ok()) return model.status();
  const Shape& shape = (*model)->shape();

  EvalReport report = {.model = request.model,
                       .model_name = shape.name,
                       .weights = request.weights,
                       .rows = request.recipe_texts};
  std::vector<Passage> passages;
  for (const int64_t context_tokens : request.contexts) {
    auto texts = CutTexts((*model)->vocab(), request, context_tokens);
    if (!texts.ok()) return texts.status();
    for (const TextPassages& text : *texts) {
      passages.insert(passages.end(), text.passages.begin(), text.passages.end());
    }
    report.contexts.push_back({.tokens = context_tokens, .texts = std::move(*texts)});
  }
  const auto failures =
      ScoreRecipes(**model, passages, request.recipes, *book,
                   {.on_progress = [&progress](double share) { progress.Update(share); }});
  if (!failures.ok()) return failures.status();
  for (ContextReport& context : report.contexts) {
    const auto contenders = ContendersOf(shape, request.recipes, context.tokens, *failures);
    context.evaluation = Tabulate(context.texts, contenders, *book);
  }
  return report;
}

}  // namespace shorthand
