#include "base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace shorthand {
namespace {

constexpr bool Bit(uint64_t word, int bit) { return (word >> bit & 1) != 0; }

constexpr bool AllOf(uint64_t word, uint64_t mask) { return (word & mask) == mask; }

// Bits of XCR0: SSE and AVX state, and the three parts of AVX-512 state.
constexpr uint64_t kYmmState = 0x06;
constexpr uint64_t kZmmState = 0xe6;
// The configuration and the data of tiles.
constexpr uint64_t kTileState = 0x60000;

// Linux saves the data of tiles of processes that asked for it, and of their threads.
[[maybe_unused]] bool AskForTiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // asm/prctl.h
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

CpuWords ReadWords() {
  CpuWords words;
#if defined(__x86_64__)
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return words;
  words.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    words.leaf7_ebx = ebx;
    words.leaf7_ecx = ecx;
    words.leaf7_edx = edx;
    const uint32_t last_subleaf = eax;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) {
      words.leaf7_1_eax = eax;
    }
  }
  constexpr int kOsXsave = 27;
  if (Bit(words.leaf1_ecx, kOsXsave)) {
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words.xcr0 = static_cast<uint64_t>(high) << 32 | low;
    words.tiles_granted = AllOf(words.xcr0, kTileState) && AskForTiles();
  }
#elif defined(__aarch64__) && defined(__linux__)
  words.arm_hwcap = getauxval(AT_HWCAP);
#endif
  return words;
}

}  // namespace

// Bit numbers: Intel SDM volume 2, CPUID; Linux, arch/arm64/include/uapi/asm/hwcap.h.
CpuFeatures FeaturesOf(const CpuWords& words) {
  CpuFeatures features;
  const bool avx = Bit(words.leaf1_ecx, 27) && Bit(words.leaf1_ecx, 28);
  if (avx && AllOf(words.xcr0, kYmmState)) {
    features.fma = Bit(words.leaf1_ecx, 12);
    features.f16c = Bit(words.leaf1_ecx, 29);
    features.avx2 = Bit(words.leaf7_ebx, 5);
    features.avx_vnni = Bit(words.leaf7_1_eax, 4);
  }
  if (avx && AllOf(words.xcr0, kZmmState)) {
    features.avx512_f = Bit(words.leaf7_ebx, 16);
    features.avx512_dq = Bit(words.leaf7_ebx, 17);
    features.avx512_bw = Bit(words.leaf7_ebx, 30);
    features.avx512_vl = Bit(words.leaf7_ebx, 31);
    features.avx512_vbmi = Bit(words.leaf7_ecx, 1);
    features.gfni = Bit(words.leaf7_ecx, 8);
    features.avx512_vnni = Bit(words.leaf7_ecx, 11);
  }
  features.amx_int8 = AllOf(words.xcr0, kTileState) && words.tiles_granted &&
                      Bit(words.leaf7_edx, 24) && Bit(words.leaf7_edx, 25);
  features.asimd_dp = Bit(words.arm_hwcap, 20);
  return features;
}

const CpuFeatures& Cpu() {
  static const CpuFeatures features = FeaturesOf(ReadWords());
  return features;
}

}  // namespace shorthand
