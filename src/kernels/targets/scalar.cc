// The kernels for any CPU, one lane at a time.
// clang-format off: the operations come before the kernels that are written in them.
#include "kernels/table-inl.h"
#include "kernels/targets.h"
#include "simd/ops_scalar.h"
// clang-format on

namespace shorthand {

constexpr KernelTable kScalarKernels = MakeTable("scalar");

}  // namespace shorthand
