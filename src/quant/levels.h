// Level tables: what each code stands for, in units of its group's scale.
//
// Every table but those of the 8-bit floats holds integers of magnitude up to 127 (the tables of
// nf, lm and rn up to 63), so that integer kernels can use them as signed bytes.
// scripts/derive-levels.py derives nf, lm and rn; docs/formats/ has the tables in words.
//
// Thread-safety: immutable.
#ifndef SHORTHAND_QUANT_LEVELS_H_
#define SHORTHAND_QUANT_LEVELS_H_

#include <cstdint>

#include "shorthand/recipe.h"

namespace shorthand {

// Levels of nfB, lmB, rnB and nuqB (those of nfB), ascending. `step` is one integer in units of
// what the codec normalises by: the group's sigma (lm), half-range (rn, nuq) or absolute maximum
// (nf).
struct LevelTable {
  const float* levels;  // [2^bits]
  float step;
};
// REQUIRES: code is kNf, kLm, kRn or kNuq; 2 <= bits <= 4.
LevelTable LevelTableOf(Code code, int bits);

// Code minus 2^(bits-1).
const float* SignedLevels(int bits);  // [2^bits]
const float* UnsignedLevels();        // [256] the code itself
const float* E4m3Levels();            // [256]
const float* E5m2Levels();            // [256]
float LargestFloat8(Code code);       // REQUIRES: code is kE4m3 or kE5m2
const float* E2m1Levels();            // [16] doubled: 0 1 2 3 4 6 8 12 and their negatives
const float* Iq4NlLevels();           // [16]

// The code whose level is nearest zero, the lower of two. `levels` [2^bits].
uint8_t ZeroCode(const float* levels, int bits);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_LEVELS_H_
