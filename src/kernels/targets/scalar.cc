// The kernels for any CPU, one lane at a time.
// The operations come before the kernels that are written in them.
// clang-format off
#include "simd/ops_scalar.h"
#include "simd/field_shifted.h"
#include "simd/tiles_scalar.h"
#include "kernels/table-inl.h"
#include "kernels/tiles-inl.h"
#include "kernels/targets.h"
// clang-format on

namespace shorthand {

constexpr KernelTable kScalarKernels = MakeTable("scalar", &kTileKernels);

}  // namespace shorthand
