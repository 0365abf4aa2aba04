// Lane: one recipe's cache under evaluation, with the sequence of the current passage and the
// scores so far. A failure is kept: the lane then does nothing more. Thread-safety: one thread at a
// time.
#ifndef SHORTHAND_EVAL_LANE_H_
#define SHORTHAND_EVAL_LANE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "eval/metrics.h"
#include "model/model.h"
#include "shorthand/cache.h"
#include "shorthand/recipe.h"
#include "shorthand/status.h"

namespace shorthand {

// Appends the scores of `logits` against `exact`. Errors: kDataLoss if one is not a number.
Status CompareFinite(const ExactLogits& exact, std::span<const float> logits,
                     std::vector<PositionScore>& scores);

class Lane {
 public:
  // Opens a cache; status() says whether it could be.
  // The calibration is for recipes that need one; null if there is none.
  Lane(const Shape& shape, const Recipe& recipe, const Calibration* calibration = nullptr);

  const Status& status() const { return status_; }
  std::span<const PositionScore> scores() const { return scores_; }

  // The scores so far, which the lane forgets.
  std::vector<PositionScore> TakeScores() { return std::exchange(scores_, {}); }

  // Starts an empty sequence.
  void StartWindow();

  // Appends `tokens` and returns the logits after `output_rows`, valid until the model's next step;
  // nothing after a failure.
  std::span<const float> Feed(Model& model, std::span<const Token> tokens,
                              std::span<const int32_t> output_rows);

  // Appends `tokens` tokens whose keys and values were computed elsewhere: Begin, then every layer
  // that has its own, then End. Nothing after a failure.
  //   k  [tokens][kv_heads][k_dim], v  [tokens][kv_heads][v_dim]
  void BeginRows(int tokens);
  void CopyRows(int layer, const float* k, const float* v);
  void EndRows();

  // Scores the positions of `exact`, whose logits in this lane are `logits`.
  void Score(const ExactLogits& exact, std::span<const float> logits);

 private:
  Result<std::span<const float>> Step(Model& model, std::span<const Token> tokens,
                                      std::span<const int32_t> output_rows);

  Result<std::unique_ptr<Batch>> Begin(int tokens);

  Status status_;
  std::unique_ptr<Cache> cache_;
  std::unique_ptr<Batch> rows_;  // between BeginRows and EndRows
  SequenceId sequence_ = 0;
  std::vector<PositionScore> scores_;
};

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_LANE_H_
