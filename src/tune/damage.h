// Damage: what storing one side of one layer by each rung is expected to cost, in nats of KL.
//
// Damages of layers and sides add up, closely as long as each is small (docs/tuning.md has the
// measurement). Predicted ones follow from the noise that a calibration found in each layer's
// attention; the tuner replaces them by measured ones.
// Thread-safety: values and pure functions.
#ifndef SHORTHAND_TUNE_DAMAGE_H_
#define SHORTHAND_TUNE_DAMAGE_H_

#include <span>
#include <vector>

#include "shorthand/calibration.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

// [layer][rung] of KeyRungs and ValueRungs; empty for a layer that seals nothing of its own.
struct Damage {
  std::vector<std::vector<double>> k, v;
};

// The noise at `bits`, of that which was measured at `measured_bits`, ascending: its logarithm is a
// straight line between two of them, and a quarter is left for each bit above the last.
// REQUIRES: as many of both, two or more; bits not below the first.
double NoiseAt(std::span<const double> measured_bits, std::span<const float> noise, double bits);

// Errors: kInvalidArgument if the calibration is of another shape; kFailedPrecondition if it has no
// noise, because its text was too short.
Result<Damage> PredictDamage(const Shape& shape, const Calibration& calibration);

}  // namespace shorthand

#endif  // SHORTHAND_TUNE_DAMAGE_H_
