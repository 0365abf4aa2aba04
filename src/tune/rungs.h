// Rungs: the formats that keys and values of a layer are chosen from, from the smallest up. They
// are the ones of the presets 2bit to 8bit and what lies between.
// Thread-safety: immutable.
#ifndef SHORTHAND_TUNE_RUNGS_H_
#define SHORTHAND_TUNE_RUNGS_H_

#include <vector>

#include "shorthand/recipe.h"

namespace shorthand {

struct Rung {
  double bits = 0;  // of a code; scales and offsets come on top, the same for all
  Side side;
};

const std::vector<Rung>& KeyRungs();
const std::vector<Rung>& ValueRungs();

}  // namespace shorthand

#endif  // SHORTHAND_TUNE_RUNGS_H_
