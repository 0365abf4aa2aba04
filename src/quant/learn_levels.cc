#include "quant/learn_levels.h"

#include <algorithm>
#include <cmath>

#include "quant/levels.h"

namespace shorthand {
namespace {

constexpr size_t kBins = 4096;
constexpr int kMostRounds = 50;

double CentreOf(size_t bin) { return (static_cast<double>(bin) + 0.5) * 2 / kBins - 1; }

double DeviationOf(double count, double sum, double squares) {
  return std::sqrt(std::max(squares / count - sum / count * (sum / count), 0.0));
}

}  // namespace

void LevelLearner::Add(double z, double weight) {
  if (bins_.empty()) bins_.resize(kBins);
  const auto at = static_cast<size_t>((z + 1) / 2 * kBins);
  Bin& bin = bins_[std::min(at, kBins - 1)];
  bin.count += 1;
  bin.weight += weight;
  bin.weighted += weight * z;
  count_ += 1;
  sum_ += z;
  squares_ += z * z;
}

std::vector<float> LevelLearner::Levels(int bits) const {
  const LevelTable table = LevelTableOf(Code::kNuq, bits);
  std::vector<double> levels;
  for (int i = 0; i < 1 << bits; ++i) levels.push_back(table.levels[i] * table.step);
  for (int round = 0; round < kMostRounds; ++round) {
    const std::vector<double> before = levels;
    const std::vector<size_t> begin = BinsOf(levels);
    for (size_t i = 0; i < levels.size(); ++i) {
      double weight = 0, weighted = 0;
      for (size_t bin = begin[i]; bin < begin[i + 1]; ++bin) {
        weight += bins_[bin].weight;
        weighted += bins_[bin].weighted;
      }
      if (weight > 0) levels[i] = weighted / weight;
    }
    if (levels == before) break;
  }
  if (bits == 2) NormaliseMoments(&levels);
  return {levels.begin(), levels.end()};
}

std::vector<size_t> LevelLearner::BinsOf(const std::vector<double>& levels) const {
  std::vector<size_t> begin(levels.size() + 1, bins_.size());
  begin[0] = 0;
  size_t bin = 0;
  for (size_t i = 1; i < levels.size(); ++i) {
    const double middle = (levels[i - 1] + levels[i]) / 2;
    while (bin < bins_.size() && CentreOf(bin) <= middle) ++bin;
    begin[i] = bin;
  }
  return begin;
}

void LevelLearner::NormaliseMoments(std::vector<double>* levels) const {
  if (count_ == 0) return;
  const std::vector<size_t> begin = BinsOf(*levels);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < levels->size(); ++i) {
    double count = 0;
    for (size_t bin = begin[i]; bin < begin[i + 1]; ++bin) count += bins_[bin].count;
    sum += count * (*levels)[i];
    squares += count * (*levels)[i] * (*levels)[i];
  }
  const double deviation = DeviationOf(count_, sum, squares);
  if (deviation == 0) return;
  const double factor = DeviationOf(count_, sum_, squares_) / deviation;
  for (double& level : *levels) level = level * factor + (sum_ - sum * factor) / count_;
}

}  // namespace shorthand
