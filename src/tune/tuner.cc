#include "tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "eval/metrics.h"
#include "eval/scoring.h"
#include "quant/head_tables.h"
#include "tune/rungs.h"

namespace shorthand {
namespace {

// The first round measures here: what it costs stands above the noise floor, and far below where
// damages stop adding up.
constexpr double kFirstRoundBits = 3;
// Later rounds measure at the layer's own rung, but no higher.
constexpr double kMostMeasuredBits = 4;
// What cannot be told from nothing counts as this.
constexpr double kLeastKl = 1e-7;

int HighestWithin(const std::vector<Rung>& rungs, double bits) {
  int rung = 0;
  while (rung + 1 < static_cast<int>(rungs.size()) && rungs[rung + 1].bits <= bits) ++rung;
  return rung;
}

std::vector<double> BitsOf(const std::vector<Rung>& rungs) {
  std::vector<double> bits;
  for (const Rung& rung : rungs) bits.push_back(rung.bits);
  return bits;
}

// One side of one layer.
struct Part {
  int layer = 0;
  bool keys = false;
  friend auto operator<=>(const Part&, const Part&) = default;

  const std::vector<Rung>& rungs() const { return keys ? KeyRungs() : ValueRungs(); }
  std::vector<double>& Of(Damage& damage) const { return keys ? damage.k[layer] : damage.v[layer]; }
  int RungIn(const Allocation& allocation) const {
    return keys ? allocation.layers[layer].k : allocation.layers[layer].v;
  }
};

class Tuning {
 public:
  Tuning(Model& model, std::span<const Passage> passages, const Calibration& calibration,
         ScoreBook& book, const TuneOptions& options, Damage predicted)
      : model_(model),
        passages_(passages),
        calibration_(calibration),
        book_(book),
        options_(options),
        predicted_(std::move(predicted)) {
    for (int l = 0; l < static_cast<int>(predicted_.k.size()); ++l) {
      if (predicted_.k[l].empty()) continue;
      parts_.push_back({l, true});
      parts_.push_back({l, false});
    }
  }

  Result<TuneResult> Run() {
    result_.parts = parts_.size();
    Damage damage = predicted_;
    const auto alike = Within(AllocationsAlike(damage));
    if (!alike.ok()) return alike.status();
    auto allocation = Within(AllocationsByBits(model_.shape(), damage));
    if (!allocation.ok()) return allocation.status();
    bits_ = allocation->bits;
    Status status = AddSteps({{"layers alike", *alike}, {"as predicted", *allocation}});
    for (int round = 1; round <= options_.rounds && status.ok(); ++round) {
      status = MeasureParts(round == 1 ? nullptr : &*allocation);
      if (!status.ok()) break;
      for (const Part& part : parts_) {
        part.Of(damage) =
            Corrected(part.Of(predicted_), BitsOf(part.rungs()), MeasurementsOf(part));
      }
      allocation = Within(AllocationsByBits(model_.shape(), damage));
      if (!allocation.ok()) return allocation.status();
      status = AddSteps({{fmt::format("round {}", round), *allocation}});
    }
    if (!status.ok()) return status;
    result_.best = std::min_element(result_.steps.begin(), result_.steps.end(),
                                    [](const auto& a, const auto& b) { return a.kl < b.kl; }) -
                   result_.steps.begin();
    return std::move(result_);
  }

 private:
  Result<Allocation> Within(const std::vector<Allocation>& allocations) const {
    return LargestWithin(model_.shape(), allocations, options_.budget);
  }

  // Everything exact but one side of one layer.
  Recipe Alone(const Part& part, int rung) const {
    Recipe recipe = RecipeOf({.layers = {{}}, .bits = bits_});
    recipe.kv = SidePair();
    Override only = {.set = LayerSet::kSpans, .spans = {{part.layer, part.layer}}, .kv = {}};
    (part.keys ? only.kv.k : only.kv.v) = part.rungs()[rung].side;
    recipe.overrides = {std::move(only)};
    return recipe;
  }

  // The share of the whole work that one lane is: two steps, then the parts and a step each round.
  double LaneShare() const {
    const auto per_round = static_cast<double>(parts_.size() + 1);
    return 1 / (2 + options_.rounds * per_round);
  }

  // The mean KL over each recipe, and its error.
  Result<std::vector<Summary>> Score(std::vector<Recipe> recipes) {
    const std::string hash = calibration_.Hash();
    for (Recipe& recipe : recipes) recipe = WithCalibration(std::move(recipe), hash);
    const double begin = done_;
    const double share = LaneShare() * static_cast<double>(recipes.size());
    const auto failures =
        ScoreRecipes(model_, passages_, recipes, book_,
                     {.calibration = &calibration_, .on_progress = [&](double part) {
                        if (options_.on_progress) options_.on_progress(begin + share * part);
                      }});
    done_ += share;
    if (!failures.ok()) return failures.status();
    std::vector<Summary> summaries;
    for (const Recipe& recipe : recipes) {
      const std::string lane = LaneOf(recipe);
      if (const auto failure = failures->find(lane); failure != failures->end()) {
        return failure->second;
      }
      std::vector<PositionScore> scores;
      for (const Passage& passage : passages_) {
        const auto* of_passage = book_.Find(PassageId(passage), lane);
        scores.insert(scores.end(), of_passage->begin(), of_passage->end());
      }
      summaries.push_back(Summarize(scores));
    }
    return summaries;
  }

  Status AddSteps(const std::vector<std::pair<std::string, Allocation>>& steps) {
    std::vector<Recipe> recipes;
    for (const auto& [name, allocation] : steps) recipes.push_back(RecipeOf(allocation));
    const auto summaries = Score(recipes);
    if (!summaries.ok()) return summaries.status();
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto& [name, allocation] = steps[i];
      uint64_t bytes = 0;
      if (const auto* memory = std::get_if<MemoryBudget>(&options_.budget)) {
        const auto allocated = AllocatedBytes(model_.shape(), recipes[i], memory->tokens);
        if (!allocated.ok()) return allocated.status();
        bytes = *allocated;
      }
      result_.steps.push_back({.name = name,
                               .recipe = recipes[i],
                               .bits = allocation.bits,
                               .allocated_bytes = bytes,
                               .expected_kl = allocation.kl,
                               .kl = (*summaries)[i].kl_mean,
                               .kl_error = (*summaries)[i].kl_mean_error});
    }
    return OkStatus();
  }

  // At the rungs of `allocation`; null: at those of the first round. Each rung once.
  Status MeasureParts(const Allocation* allocation) {
    std::vector<std::pair<Part, int>> missing;
    std::vector<Recipe> recipes;
    for (const Part& part : parts_) {
      const double bits = allocation == nullptr ? kFirstRoundBits : kMostMeasuredBits;
      int rung = HighestWithin(part.rungs(), bits);
      if (allocation != nullptr) rung = std::min(rung, part.RungIn(*allocation));
      if (measured_[part].contains(rung)) continue;
      missing.emplace_back(part, rung);
      recipes.push_back(Alone(part, rung));
    }
    const auto summaries = Score(std::move(recipes));
    if (!summaries.ok()) return summaries.status();
    for (size_t i = 0; i < missing.size(); ++i) {
      const auto& [part, rung] = missing[i];
      const double kl = (*summaries)[i].kl_mean;
      measured_[part][rung] = std::max(kl, kLeastKl);
      result_.costs.push_back({.layer = part.layer,
                               .keys = part.keys,
                               .bits = part.rungs()[rung].bits,
                               .predicted_kl = part.Of(predicted_)[rung],
                               .kl = kl});
    }
    return OkStatus();
  }

  std::vector<Measured> MeasurementsOf(const Part& part) const {
    std::vector<Measured> measurements;
    for (const auto& [rung, kl] : measured_.at(part)) measurements.push_back({rung, kl});
    return measurements;
  }

  Model& model_;
  std::span<const Passage> passages_;
  const Calibration& calibration_;
  ScoreBook& book_;
  const TuneOptions& options_;
  Damage predicted_;
  double bits_ = 0;  // of the recipe as predicted
  std::vector<Part> parts_;
  std::map<Part, std::map<int, double>> measured_;  // KL by rung
  TuneResult result_;
  double done_ = 0;  // share of the work
};

}  // namespace

std::vector<double> Corrected(std::span<const double> predicted, std::span<const double> bits,
                              std::span<const Measured> measured) {
  const auto log_ratio = [&](const Measured& m) { return std::log(m.kl / predicted[m.rung]); };
  std::vector<double> corrected;
  for (int rung = 0; rung < static_cast<int>(predicted.size()); ++rung) {
    const auto above = std::find_if(measured.begin(), measured.end(),
                                    [&](const Measured& m) { return m.rung >= rung; });
    double log = 0;
    if (above == measured.begin() || above == measured.end()) {
      log = log_ratio(above == measured.end() ? measured.back() : *above);
    } else {
      const Measured& below = *std::prev(above);
      const double share = (bits[rung] - bits[below.rung]) / (bits[above->rung] - bits[below.rung]);
      log = (1 - share) * log_ratio(below) + share * log_ratio(*above);
    }
    corrected.push_back(predicted[rung] * std::exp(log));
  }
  return corrected;
}

Result<TuneResult> Tune(Model& model, std::span<const Passage> passages,
                        const Calibration& calibration, ScoreBook& book,
                        const TuneOptions& options) {
  auto damage = PredictDamage(model.shape(), calibration);
  if (!damage.ok()) return damage.status();
  return Tuning(model, passages, calibration, book, options, *std::move(damage)).Run();
}

}  // namespace shorthand
