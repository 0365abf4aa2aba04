// The tables that this library may hold, one a target file; amx is made of two (dispatch.cc). Which
// of them exist is decided by the build: scalar everywhere, neon on 64-bit Arm, the others on
// x86-64. Thread-safety: constants.
#ifndef SHORTHAND_KERNELS_TARGETS_H_
#define SHORTHAND_KERNELS_TARGETS_H_

#include "kernels/kernels.h"

namespace shorthand {

extern const KernelTable kScalarKernels;
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvxVnniKernels;
extern const KernelTable kAvx512Kernels;
extern const TileKernels kAmxTileKernels;  // beside avx512
extern const KernelTable kNeonKernels;

}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_TARGETS_H_
