// The kernels for x86-64 with AVX2, FMA and F16C.
// clang-format off: the operations come before the kernels that are written in them.
#include "kernels/table-inl.h"
#include "kernels/targets.h"
#include "simd/ops_avx2.h"
// clang-format on

namespace shorthand {

constexpr KernelTable kAvx2Kernels = MakeTable("avx2");

}  // namespace shorthand
