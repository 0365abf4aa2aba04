// What this CPU, and the operating system on it, can run.
// Thread-safety: Cpu() is initialised once; the rest are pure functions.
#ifndef SHORTHAND_BASE_CPU_H_
#define SHORTHAND_BASE_CPU_H_

#include <cstdint>

namespace shorthand {

// The words that CPUID and XGETBV answer on x86-64, and what Linux tells programs on 64-bit Arm, as
// far as they are looked at; 0 where there is no such word.
struct CpuWords {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint32_t leaf7_edx = 0;
  uint32_t leaf7_1_eax = 0;    // of subleaf 1
  uint64_t xcr0 = 0;           // which registers the operating system saves
  bool tiles_granted = false;  // Linux lets this process use them
  uint64_t arm_hwcap = 0;
};

struct CpuFeatures {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx_vnni = false;
  bool avx512_f = false;
  bool avx512_bw = false;
  bool avx512_dq = false;
  bool avx512_vl = false;
  bool avx512_vnni = false;
  bool avx512_vbmi = false;
  bool gfni = false;      // products with matrices of bits, in AVX-512's registers
  bool amx_int8 = false;  // products of tiles of bytes
  bool asimd_dp = false;  // Arm's dot products of bytes

  // All that the target of that name needs.
  bool HasAvx2() const { return avx2 && fma && f16c; }
  bool HasAvxVnni() const { return HasAvx2() && avx_vnni; }
  bool HasAvx512() const {
    return HasAvx2() && avx512_f && avx512_bw && avx512_dq && avx512_vl && avx512_vnni &&
           avx512_vbmi && gfni;
  }
  bool HasAmx() const { return HasAvx512() && amx_int8; }
  bool HasNeon() const { return asimd_dp; }
};

// A feature is there if the CPU has it and the operating system saves its registers.
CpuFeatures FeaturesOf(const CpuWords& words);

// This machine's. All false on architectures other than x86-64 and, with Linux, 64-bit Arm.
const CpuFeatures& Cpu();

}  // namespace shorthand

#endif  // SHORTHAND_BASE_CPU_H_
