// The kernels for x86-64 with AVX-512 as of Ice Lake and Zen 4 (F, BW, DQ, VL, VNNI, VBMI).
// The operations come before the kernels that are written in them.
// clang-format off
#include "simd/ops_avx512.h"
#include "kernels/table-inl.h"
#include "kernels/targets.h"
// clang-format on

namespace shorthand {

constexpr KernelTable kAvx512Kernels = MakeTable("avx512");

}  // namespace shorthand
