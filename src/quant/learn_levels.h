// LevelLearner: the levels of nuqB that fit a distribution, by weighted k-means in one dimension.
//
// Values are kept as counts, weights and weighted sums of 4096 equal bins of [-1, 1]; a bin belongs
// to one level as a whole. docs/formats/calibration.md has the rule.
// Thread-safety: one thread at a time for an object.
#ifndef SHORTHAND_QUANT_LEARN_LEVELS_H_
#define SHORTHAND_QUANT_LEARN_LEVELS_H_

#include <vector>

#include "shorthand/calibration.h"

namespace shorthand {

class LevelLearner {
 public:
  // A value in half-ranges from the middle of its group. REQUIRES: -1 <= z <= 1, weight >= 0.
  void Add(double z, double weight);

  // 2^bits levels, ascending: Lloyd's iteration from the normal-float levels, at most 50 rounds. At
  // 2 bits with Q-Norm. Without values they are the normal-float levels.
  // REQUIRES: 2 <= bits <= 4.
  std::vector<float> Levels(int bits) const;
  LearnedLevels AllLevels() const { return {Levels(2), Levels(3), Levels(4)}; }

 private:
  struct Bin {
    double count = 0, weight = 0, weighted = 0;  // values, their weights, weights times values
  };
  // Bins of level i are those from begin[i] to begin[i + 1].
  std::vector<size_t> BinsOf(const std::vector<double>& levels) const;
  // Moves the levels so that coded values have the mean and deviation of the values themselves.
  void NormaliseMoments(std::vector<double>* levels) const;

  std::vector<Bin> bins_;  // empty until there is a value
  double count_ = 0, sum_ = 0, squares_ = 0;
};

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_LEARN_LEVELS_H_
