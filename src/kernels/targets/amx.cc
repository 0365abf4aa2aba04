// The passes of many rows for x86-64 with AMX's products of bytes; all else is AVX-512's.
// The operations come before the kernels that are written in them.
// clang-format off
#include "simd/ops_avx512.h"
#include "simd/tiles_amx.h"
#include "kernels/tiles-inl.h"
#include "kernels/targets.h"
// clang-format on

namespace shorthand {

constexpr TileKernels kAmxTileKernels = kTileKernels;

}  // namespace shorthand
