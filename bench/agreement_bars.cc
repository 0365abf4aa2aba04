#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "eval/lane.h"
#include "eval/llama_peer.h"
#include "eval/metrics.h"
#include "model_bars.h"

namespace shorthand {
namespace {

constexpr double kPerplexityMark = 0.002;  // relative difference
constexpr double kSameTopMark = 0.995;
constexpr double kViewsMark = 0.999;

// Bounds the logits that are held: gemma's 262144 entries of 128 positions are 128 MiB.
constexpr size_t kChunkTokens = 128;

constexpr int kViewChunks[] = {1, 7, 128};
constexpr int kViewReferenceChunk = 512;
constexpr const char* kViewRecipes[] = {"f16", "8bit", "4bit"};

std::vector<int32_t> LastRows(size_t rows, size_t outputs) {
  std::vector<int32_t> result(outputs);
  std::iota(result.begin(), result.end(), static_cast<int32_t>(rows - outputs));
  return result;
}

// Both engines read a window side by side; their logits are compared and dropped.
Status CompareWindow(Model& model, Lane& ours, LlamaPeer& llama, const Window& window,
                     ExactLogits& theirs) {
  ours.StartWindow();
  llama.Clear();
  const size_t end = window.size() - 1;  // the last token is only a target
  const size_t first_scored = static_cast<size_t>(FirstScored(window.size()));
  for (size_t at = 0; at < end;) {
    const bool scored = at >= first_scored;
    const size_t count = std::min(kChunkTokens, (scored ? end : first_scored) - at);
    const size_t outputs = scored ? count : 0;
    const auto tokens = std::span(window).subspan(at, count);
    const auto their_logits = llama.Feed(tokens, outputs);
    if (!their_logits.ok()) return their_logits.status();
    theirs.Set(*their_logits, std::span(window).subspan(at + 1, outputs));
    ours.Score(theirs, ours.Feed(model, tokens, LastRows(count, outputs)));
    if (!ours.status().ok()) return ours.status();
    at += count;
  }
  return OkStatus();
}

// The logits after each of the last `positions` of `text`, fed in chunks of `chunk`.
Result<std::vector<float>> LastLogits(Model& model, const Recipe& recipe,
                                      std::span<const Token> text, size_t chunk, size_t positions) {
  Lane lane(model.shape(), recipe);
  std::vector<float> result;
  result.reserve(positions * model.vocab().size());
  const size_t first = text.size() - positions;
  for (size_t at = 0; at < text.size();) {
    const size_t count = std::min(chunk, text.size() - at);
    const size_t outputs = std::min(count, at + count - std::min(at + count, first));
    const auto logits = lane.Feed(model, text.subspan(at, count), LastRows(count, outputs));
    if (!lane.status().ok()) return lane.status();
    result.insert(result.end(), logits.begin(), logits.end());
    at += count;
  }
  return result;
}

// The second half of `text` in chunks of each size against chunks of 512.
Status MeasureViewsOf(Model& model, std::string_view recipe_text, std::span<const Token> text,
                      BarReport& report) {
  const Recipe recipe = *Recipe::Parse(recipe_text);
  const size_t positions = text.size() / 2 - 1;
  const auto fed = text.first(text.size() - 1);
  const auto reference = LastLogits(model, recipe, fed, kViewReferenceChunk, positions);
  if (!reference.ok()) return reference.status();
  ExactLogits exact(model.vocab().size(), model.threads());
  exact.Set(*reference, text.last(positions));
  for (const int chunk : kViewChunks) {
    fmt::print(stderr, "views: recipe {}, chunks of {}\n", recipe_text, chunk);
    const auto logits = LastLogits(model, recipe, fed, chunk, positions);
    if (!logits.ok()) return logits.status();
    std::vector<PositionScore> scores;
    exact.Compare(*logits, scores);
    const Summary summary = Summarize(scores);
    report.Print(fmt::format("chunks of {} against {}, recipe {}, same likeliest token", chunk,
                             kViewReferenceChunk, recipe_text),
                 fmt::format("{:.3f} % of {}, mean KL {:.2g}", 100 * summary.same_top,
                             summary.positions, summary.kl_mean),
                 "at least 99.9 %", AtLeast(summary.same_top, kViewsMark));
  }
  return OkStatus();
}

}  // namespace

Status MeasureAgreement(Model& model, const std::string& f32_path, std::span<const Window> windows,
                        BarReport& report) {
  auto weights = LoadLlamaWeights(f32_path);
  if (!weights.ok()) return weights.status();
  const auto llama = LlamaPeer::Open(*std::move(weights),
                                     {.threads = model.threads(),
                                      .context_tokens = static_cast<int>(windows.front().size()),
                                      .chunk_tokens = static_cast<int>(kChunkTokens)});
  if (!llama.ok()) return llama.status();
  const int vocabulary = model.vocab().size();
  if ((*llama)->vocabulary() != vocabulary) {
    return Internal(fmt::format("a vocabulary of {} tokens, but llama.cpp reads one of {}",
                                vocabulary, (*llama)->vocabulary()));
  }
  Lane ours(model.shape(), *Recipe::Parse("f16"));
  ExactLogits theirs(vocabulary, model.threads());
  for (size_t i = 0; i < windows.size(); ++i) {
    fmt::print(stderr, "agreement: window {} of {}\n", i + 1, windows.size());
    if (Status status = CompareWindow(model, ours, **llama, windows[i], theirs); !status.ok()) {
      return status;
    }
  }
  const Summary summary = Summarize(ours.scores());
  const double difference = std::abs(summary.ppl_ratio - 1);
  report.Print(fmt::format("perplexity, {} windows of {}", windows.size(), windows.front().size()),
               fmt::format("ours {:.4f}, llama.cpp's {:.4f}, apart by {:.4f} %, mean KL {:.2g}",
                           summary.ppl, summary.ppl_exact, 100 * difference, summary.kl_mean),
               "at most 0.2 %", AtMost(difference, kPerplexityMark));
  report.Print("same likeliest token as llama.cpp",
               fmt::format("{:.3f} % of {}", 100 * summary.same_top, summary.positions),
               "at least 99.5 %", AtLeast(summary.same_top, kSameTopMark));
  return OkStatus();
}

Status MeasureViews(Model& model, std::span<const Token> text, BarReport& report) {
  for (const char* recipe : kViewRecipes) {
    if (Status status = MeasureViewsOf(model, recipe, text, report); !status.ok()) return status;
  }
  return OkStatus();
}

}  // namespace shorthand
