#include "eval/evaluate.h"

#include <algorithm>
#include <utility>

#include "quant/footprint.h"

namespace shorthand {
namespace {

// The scores of a text over a lane, passage after passage; empty if the book misses one.
std::vector<PositionScore> ScoresOf(const TextPassages& text, const std::string& lane,
                                    const ScoreBook& book) {
  std::vector<PositionScore> all;
  for (const Passage& passage : text.passages) {
    const std::vector<PositionScore>* scores = book.Find(PassageId(passage), lane);
    if (scores == nullptr) return {};
    all.insert(all.end(), scores->begin(), scores->end());
  }
  return all;
}

// Over all texts, and of each.
struct Summaries {
  Summary all;
  std::vector<Summary> texts;
};

Summaries SummarizeTexts(std::span<const TextPassages> texts, const std::string& lane,
                         const ScoreBook& book) {
  Summaries result;
  std::vector<PositionScore> all;
  for (const TextPassages& text : texts) {
    const std::vector<PositionScore> scores = ScoresOf(text, lane, book);
    if (scores.empty()) return {};
    result.texts.push_back(Summarize(scores));
    all.insert(all.end(), scores.begin(), scores.end());
  }
  result.all = Summarize(all);
  return result;
}

}  // namespace

bool Evaluation::any_row() const {
  return std::any_of(rows.begin(), rows.end(),
                     [](const EvaluationRow& row) { return row.contender.status.ok(); });
}

std::vector<Contender> ContendersOf(const Shape& shape, std::span<const Recipe> recipes,
                                    int64_t tokens, const LaneFailures& failures) {
  std::vector<Contender> contenders;
  for (const Recipe& recipe : recipes) {
    Contender contender = {.program = Program::kShorthand,
                           .lane = LaneOf(recipe),
                           .canonical = recipe.ToString(),
                           .sink_tokens = recipe.sink_tokens,
                           .recent_tokens = recipe.recent_tokens};
    if (const auto failure = failures.find(contender.lane); failure != failures.end()) {
      contender.status = failure->second;
    }
    if (const auto groups = ResolveGroups(shape, recipe); groups.ok()) {
      const Footprint footprint = FootprintOf(*groups, tokens, 1);
      contender.bits = footprint.bits;
      contender.true_bits = footprint.true_bits;
    }
    contenders.push_back(std::move(contender));
  }
  return contenders;
}

Evaluation Tabulate(std::span<const TextPassages> texts, std::span<const Contender> contenders,
                    const ScoreBook& book) {
  Evaluation result;
  result.floor = {SummarizeTexts(texts, kScaledQueryLane, book).all,
                  SummarizeTexts(texts, kF32CacheLane, book).all};
  result.positions = result.floor.f32_cache.positions;
  result.ppl_exact = result.floor.f32_cache.ppl_exact;
  for (const Contender& contender : contenders) {
    Summaries summaries = SummarizeTexts(texts, contender.lane, book);
    EvaluationRow row = {
        .contender = contender, .summary = summaries.all, .texts = std::move(summaries.texts)};
    if (row.summary.positions > 0) {
      row.contender.status = OkStatus();
    } else if (row.contender.status.ok()) {
      row.contender.status = Internal("it was not evaluated");
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

Result<Evaluation> Evaluate(Model& model, const std::vector<Passage>& passages,
                            std::span<const Recipe> recipes, const ScoreOptions& options) {
  ScoreBook book;
  const auto failures = ScoreRecipes(model, passages, recipes, book, options);
  if (!failures.ok()) return failures.status();
  const auto tokens = static_cast<int64_t>(passages.front().tokens.size());
  const TextPassages text = {.name = "", .passages = passages};
  return Tabulate({&text, 1}, ContendersOf(model.shape(), recipes, tokens, *failures), book);
}

}  // namespace shorthand
