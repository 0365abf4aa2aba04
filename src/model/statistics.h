// Statistics: gathers what a calibration says of one model from the rows that an observer sees.
//
// Sums run over all tokens; ranges of keys and learned levels are made of at most 2048 tokens at
// equal distances, so that long texts take no more memory. docs/formats/calibration.md has every
// number. Thread-safety: one thread at a time for an object.
#ifndef SHORTHAND_MODEL_STATISTICS_H_
#define SHORTHAND_MODEL_STATISTICS_H_

#include <cstdint>
#include <vector>

#include "model/observer.h"
#include "quant/learn_levels.h"
#include "shorthand/calibration.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

// The first tokens, whose keys and values are unlike all others, count only for what is largest.
inline constexpr int kSkippedTokens = 4;

class Statistics {
 public:
  // Of a text of `tokens` tokens. REQUIRES: the shape outlives the object; tokens > 4.
  Statistics(const Shape& shape, int64_t tokens);

  // The rows of one page, whose first one stands at `first_position`, a multiple of 128.
  void Add(const ObservedRows& seen, int64_t first_position);

  // Errors: kDataLoss if a number is not finite, naming the layer.
  Result<std::vector<LayerStatistics>> Finish() const;

 private:
  struct HeadSums {
    std::vector<double> k_variance;  // [k_dim] within pages, times the tokens
    std::vector<double> q_squares;   // [k_dim]
    float v_max = 0;
  };
  struct LayerSums {
    std::vector<HeadSums> heads;
    std::vector<float> keys;  // every stride_-th token: [tokens][heads][k_dim]
    LevelLearner v_levels;
  };

  void AddKeys(const ObservedRows& seen, int64_t first_position);
  void AddQueries(const ObservedRows& seen, int64_t first_position);
  void AddValues(const ObservedRows& seen, int64_t first_position);
  void LearnValues(const float* rows, int row_floats, int first, int dim, LayerSums* sums);

  HeadStatistics HeadOf(int layer, int head) const;
  // Of the kept keys [tokens][heads][k_dim].
  void SetRanges(const LayerShape& shape, const std::vector<float>& keys,
                 KeyRange HeadStatistics::* range, LayerStatistics* layer) const;
  LearnedLevels LearnKeys(const LayerShape& shape, const std::vector<float>& keys,
                          const LayerStatistics& layer) const;

  const Shape& shape_;
  const int64_t tokens_;
  const int64_t stride_;
  std::vector<LayerSums> layers_;
};

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_STATISTICS_H_
