// The kernels for any CPU, one lane at a time.
// The operations come before the kernels that are written in them.
// clang-format off
#include "simd/ops_scalar.h"
#include "simd/field_shifted.h"
#include "kernels/table-inl.h"
#include "kernels/targets.h"
// clang-format on

namespace shorthand {

constexpr KernelTable kScalarKernels = MakeTable("scalar");

}  // namespace shorthand
