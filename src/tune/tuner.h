// The tuner: a recipe chosen layer by layer from what storing the keys or the values of each layer
// alone is measured to cost, in KL on a text.
//
// It starts from what a calibration predicts, measures one side of one layer at a time, corrects
// the predicted damages by the measured ones, allocates bits anew, and measures the result. A
// second round measures at the rungs that the first has chosen. All scores go into a ScoreBook, so
// that a tuning which was stopped goes on where it was. Thread-safety: one thread at a time for a
// model.
#ifndef SHORTHAND_TUNE_TUNER_H_
#define SHORTHAND_TUNE_TUNER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eval/passage.h"
#include "eval/score_book.h"
#include "model/model.h"
#include "shorthand/calibration.h"
#include "shorthand/recipe.h"
#include "shorthand/status.h"
#include "tune/budget.h"

namespace shorthand {

struct TuneOptions {
  Budget budget;
  int rounds = 2;  // of measuring every layer
  std::function<void(double)> on_progress = {};
};

struct TuneStep {
  std::string name;
  Recipe recipe;
  double bits = 0;               // of a code, mean
  uint64_t allocated_bytes = 0;  // for the tokens of a memory budget
  double expected_kl = 0;        // the sum of damages, nats
  double kl = 0;                 // measured
  double kl_error = 0;           // standard error
};

// What storing one side of one layer alone costs.
struct LayerCost {
  int layer = 0;
  bool keys = false;
  double bits = 0;
  double predicted_kl = 0;
  double kl = 0;
};

struct TuneResult {
  std::vector<TuneStep> steps;   // layers alike, as predicted, then one for each round
  std::vector<LayerCost> costs;  // round after round
  size_t parts = 0;              // of them are the first round's: every layer's keys and values
  size_t best = 0;               // the step with the least KL
};

// `calibration`: of the model, with noise. Errors: those of LargestWithin, PredictDamage and
// ScoreRecipes.
Result<TuneResult> Tune(Model& model, std::span<const Passage> passages,
                        const Calibration& calibration, ScoreBook& book,
                        const TuneOptions& options);

// Corrects one row of a damage table by measurements of some rungs: between two of them the
// logarithm of measured over predicted is a straight line over the bits, beyond them it is that of
// the nearest. REQUIRES: measurements in ascending order of their rungs, at least one.
struct Measured {
  int rung = 0;
  double kl = 0;
};
std::vector<double> Corrected(std::span<const double> predicted, std::span<const double> bits,
                              std::span<const Measured> measured);

}  // namespace shorthand

#endif  // SHORTHAND_TUNE_TUNER_H_
