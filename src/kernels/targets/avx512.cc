// The kernels for x86-64 with AVX-512 as of Ice Lake and Zen 4 (F, BW, DQ, VL, VNNI, VBMI).
// clang-format off: the operations come before the kernels that are written in them.
#include "kernels/table-inl.h"
#include "kernels/targets.h"
#include "simd/ops_avx512.h"
// clang-format on

namespace shorthand {

constexpr KernelTable kAvx512Kernels = MakeTable("avx512");

}  // namespace shorthand
