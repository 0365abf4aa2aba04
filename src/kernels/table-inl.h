// All kernels of one target, as the table that its spine file exports. Include it after that
// target's ops file.
// Thread-safety: tables are constants.
#ifndef SHORTHAND_KERNELS_TABLE_INL_H_
#define SHORTHAND_KERNELS_TABLE_INL_H_

#include "kernels/accumulate-inl.h"
#include "kernels/accumulate_codes-inl.h"
#include "kernels/hadamard-inl.h"
#include "kernels/math-inl.h"
#include "kernels/planes-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/score-inl.h"
#include "kernels/seal-inl.h"
#include "kernels/softmax-inl.h"
#include "kernels/unpack-inl.h"

namespace shorthand {
namespace {

void Exp2Array(float* x, int n) {
  for (int i = 0; i < n; i += kLanes) Store(Exp2(Load(x + i)), x + i);
}

constexpr KernelTable MakeTable(const char* name, const TileKernels* tiles = nullptr) {
  return {name,        Score, Softmax,   Join,       Accumulate,  UnpackK,         UnpackV,
          Hadamard,    Widen, FoldQuery, ScoreCodes, FoldWeights, AccumulateCodes, WriteKeys,
          WriteValues, Seal,  Exp2Array, tiles};
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_TABLE_INL_H_
