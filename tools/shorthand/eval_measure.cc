#include "eval_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "eval/evaluate.h"
#include "eval/greedy.h"
#include "eval/layers.h"
#include "eval/needle.h"
#include "eval/peer_scoring.h"
#include "eval/scoring.h"
#include "eval_inputs.h"
#include "f32_copy.h"
#include "model/model.h"
#include "model_calibration.h"
#include "model_path.h"
#include "progress.h"
#include "quant/head_tables.h"

namespace shorthand {
namespace {

// More tokens would take memory and time, and change little.
constexpr size_t kMostDiagnosed = 2048;

std::vector<Passage> AllPassages(const EvalReport& report) {
  std::vector<Passage> passages;
  for (const ContextReport& context : report.contexts) {
    for (const TextPassages& text : context.texts) {
      passages.insert(passages.end(), text.passages.begin(), text.passages.end());
    }
    for (const NeedlePassage& needle : context.needles) passages.push_back(needle.passage);
    passages.insert(passages.end(), context.greedy.begin(), context.greedy.end());
  }
  return passages;
}

// The needles in every window.
Status AddNeedles(const Vocab& vocab, int needles, ContextReport& context) {
  for (const TextPassages& text : context.texts) {
    for (const Passage& window : text.passages) {
      auto hidden = HideNeedles(vocab, window.tokens, needles);
      if (!hidden.ok()) return hidden.status();
      context.needles.push_back(std::move(*hidden));
    }
  }
  return OkStatus();
}

// What the exact cache writes behind the prompt of every window.
Status AddGreedy(Model& model, int64_t tokens, ScoreBook& book, ContextReport& context) {
  Progress progress("writing with the exact cache");
  const auto all = static_cast<double>(context.windows() * tokens);
  int64_t done = 0;
  for (const TextPassages& text : context.texts) {
    for (const Passage& window : text.passages) {
      const auto prompt = std::span<const Token>(window.tokens).first(window.first_scored);
      auto passage = ContinueGreedily(model, prompt, tokens, book,
                                      [&] { progress.Update(static_cast<double>(++done) / all); });
      if (!passage.ok()) return passage.status();
      context.greedy.push_back(std::move(*passage));
    }
  }
  return OkStatus();
}

// On the first window. A recipe that does not fit has no layers, as a row of llama.cpp has none.
Status AddLayers(Model& model, std::span<const Recipe> recipes, const Calibration* calibration,
                 ContextReport& context) {
  const std::span<const Token> window = context.texts.front().passages.front().tokens;
  const auto capture = CaptureLayers(model, window.first(std::min(window.size(), kMostDiagnosed)));
  if (!capture.ok()) return capture.status();
  context.captured_tokens = capture->tokens;
  Progress progress("diagnosing layers");
  for (const Recipe& recipe : recipes) {
    auto layers = DiagnoseLayers(model.shape(), recipe, calibration, *capture, model.threads());
    context.layer_rows.push_back(layers.ok() ? std::move(*layers) : std::vector<LayerScore>());
    progress.Update(static_cast<double>(context.layer_rows.size()) /
                    static_cast<double>(recipes.size()));
  }
  return OkStatus();
}

// Every passage of one context.
Result<ContextReport> Prepare(Model& model, const EvalRequest& request, ScoreBook& book,
                              int64_t context_tokens) {
  auto texts = CutTexts(model.vocab(), request.texts,
                        {.context_tokens = context_tokens,
                         .windows = request.windows,
                         .skipped_tokens = request.skipped_tokens,
                         .prompt_tokens = request.prompt_tokens});
  if (!texts.ok()) return texts.status();
  ContextReport context = {.tokens = context_tokens, .texts = std::move(*texts)};
  if (request.needles > 0) {
    const Status status = AddNeedles(model.vocab(), request.needles, context);
    if (!status.ok()) return status;
  }
  if (request.greedy_tokens > 0) {
    const Status status = AddGreedy(model, request.greedy_tokens, book, context);
    if (!status.ok()) return status;
  }
  return context;
}

void TabulateTasks(const ScoreBook& book, ContextReport& context) {
  for (const EvaluationRow& row : context.evaluation.rows) {
    context.needle_rows.push_back(FoundNeedles(context.needles, row.contender.lane, book));
    context.greedy_rows.push_back(AgreementLengths(context.greedy, row.contender.lane, book));
  }
  context.layer_rows.resize(context.evaluation.rows.size());
}

struct Watch {
  std::function<void(double)> on_progress;  // from 0 on, when all is prepared
  std::stop_token stop;
};

// What our caches scored.
struct Ours {
  EvalReport report;  // without figures
  std::vector<Recipe> recipes;
  LaneFailures failures;
};

Result<Ours> ScoreOurs(Model& model, const std::string& path, const EvalRequest& request,
                       ScoreBook& book, const Watch& watch) {
  Ours ours = {.report = {.model = request.model,
                          .shape = model.shape(),
                          .threads = model.threads(),
                          .weights = request.weights,
                          .protocol = request.protocol,
                          .rows = request.recipe_texts},
               .recipes = {},
               .failures = {}};
  for (const int64_t context_tokens : request.contexts) {
    auto context = Prepare(model, request, book, context_tokens);
    if (!context.ok()) return context.status();
    ours.report.contexts.push_back(std::move(*context));
  }
  auto resolved = RecipesFor(model, path, request.recipes, request.calibration_file, watch.stop);
  if (!resolved.ok()) return resolved.status();
  const Calibration* calibration = resolved->calibration_or_null();
  const std::string hash = calibration == nullptr ? "" : calibration->Hash();
  for (Recipe& recipe : resolved->recipes) {
    ours.recipes.push_back(WithCalibration(std::move(recipe), hash));
  }
  if (request.layers) {
    for (ContextReport& context : ours.report.contexts) {
      const Status status = AddLayers(model, ours.recipes, calibration, context);
      if (!status.ok()) return status;
    }
  }
  watch.on_progress(0);
  auto failures = ScoreRecipes(model, AllPassages(ours.report), ours.recipes, book,
                               {.protocol = request.protocol,
                                .calibration = calibration,
                                .on_progress = watch.on_progress,
                                .stop = watch.stop});
  if (!failures.ok()) return failures.status();
  ours.failures = std::move(*failures);
  return ours;
}

// The model is there for no longer than that.
Result<Ours> LoadAndScoreOurs(const std::string& path, const EvalRequest& request,
                              ScoreBook& book) {
  const auto model = Model::Load(path, {.precision = request.weights, .threads = request.threads});
  if (!model.ok()) return model.status();
  std::optional<Progress> progress;
  return ScoreOurs(**model, path, request, book,
                   {.on_progress =
                        [&progress](double share) {
                          if (!progress) progress.emplace("evaluating");
                          progress->Update(share);
                        },
                    .stop = {}});
}

Result<LaneFailures> ScoreTheirs(const EvalRequest& request, const std::string& path,
                                 const EvalReport& report, ScoreBook& book) {
  if (request.peers.empty()) return LaneFailures{};
  const auto weights_path = request.weights == Precision::kF32 ? F32CopyOf(path, report.threads)
                                                               : Result<std::string>(path);
  if (!weights_path.ok()) return weights_path.status();
  const auto weights = LoadLlamaWeights(*weights_path);
  if (!weights.ok()) return weights.status();
  Progress progress("evaluating llama.cpp");
  return ScorePeers(*weights, report.threads, report.shape, AllPassages(report), request.peers,
                    book, {.on_progress = [&progress](double share) { progress.Update(share); }});
}

EvalReport WithFigures(const EvalRequest& request, Ours ours, const LaneFailures& peer_failures,
                       const ScoreBook& book) {
  EvalReport report = std::move(ours.report);
  for (const LlamaCacheType& peer : request.peers) {
    report.rows.push_back("llama.cpp " + ToString(peer));
  }
  for (ContextReport& context : report.contexts) {
    auto contenders = ContendersOf(report.shape, ours.recipes, context.tokens, ours.failures);
    for (const LlamaCacheType& peer : request.peers) {
      contenders.push_back(ContenderOf(report.shape, peer, peer_failures));
    }
    context.evaluation = Tabulate(context.texts, contenders, book);
    TabulateTasks(book, context);
  }
  return report;
}

}  // namespace

Result<EvalReport> Measure(const EvalRequest& request) {
  const auto path = ModelPath(request.model);
  if (!path.ok()) return path.status();
  auto book = OpenBook(request.resume_file, *path, request.weights, request.protocol);
  if (!book.ok()) return book.status();
  auto ours = LoadAndScoreOurs(*path, request, *book);
  if (!ours.ok()) return ours.status();
  const auto peer_failures = ScoreTheirs(request, *path, ours->report, *book);
  if (!peer_failures.ok()) return peer_failures.status();
  return WithFigures(request, *std::move(ours), *peer_failures, *book);
}

Result<EvalReport> MeasureLoaded(Model& model, const std::string& path, const EvalRequest& request,
                                 ScoreBook& book, const std::function<void(double)>& on_progress,
                                 std::stop_token stop) {
  auto ours = ScoreOurs(model, path, request, book, {on_progress, std::move(stop)});
  if (!ours.ok()) return ours.status();
  return WithFigures(request, *std::move(ours), {}, book);
}

}  // namespace shorthand
