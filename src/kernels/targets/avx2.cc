// The kernels for x86-64 with AVX2, FMA and F16C.
// The operations come before the kernels that are written in them.
// clang-format off
#include "simd/ops_avx2.h"
#include "simd/dot_avx2.h"
#include "simd/field_shifted.h"
#include "kernels/table-inl.h"
#include "kernels/targets.h"
// clang-format on

namespace shorthand {

constexpr KernelTable kAvx2Kernels = MakeTable("avx2");

}  // namespace shorthand
