// The kernels for 64-bit Arm with the dot product extension.
// The operations come before the kernels that are written in them.
// clang-format off
#include "simd/ops_neon.h"
#include "simd/field_shifted.h"
#include "kernels/table-inl.h"
#include "kernels/targets.h"
// clang-format on

namespace shorthand {

constexpr KernelTable kNeonKernels = MakeTable("neon");

}  // namespace shorthand
