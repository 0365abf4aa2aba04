#include "base/cpu.h"

#include <gtest/gtest.h>

namespace shorthand {
namespace {

// Sapphire Rapids under Linux, as far as looked at: FMA 12, OSXSAVE 27, AVX 28, F16C 29; AVX2 5,
// AVX-512 F 16, DQ 17, BW 30, VL 31; VBMI 1, GFNI 8, VNNI 11; AMX tiles 24, AMX INT8 25; AVX-VNNI
// 4; x87, SSE, AVX, AVX-512 and tile state saved.
constexpr CpuWords kFull = {.leaf1_ecx = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29,
                            .leaf7_ebx = 1u << 5 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31,
                            .leaf7_ecx = 1u << 1 | 1u << 8 | 1u << 11,
                            .leaf7_edx = 1u << 24 | 1u << 25,
                            .leaf7_1_eax = 1u << 4,
                            .xcr0 = 0x600e7,
                            .tiles_granted = true};

TEST(CpuTest, EverythingThere) {
  EXPECT_TRUE(FeaturesOf(kFull).HasAvx2());
  EXPECT_TRUE(FeaturesOf(kFull).HasAvxVnni());
  EXPECT_TRUE(FeaturesOf(kFull).HasAvx512());
  EXPECT_TRUE(FeaturesOf(kFull).HasAmx());
}

TEST(CpuTest, NothingThere) {
  EXPECT_FALSE(FeaturesOf({}).HasAvx2());
  EXPECT_FALSE(FeaturesOf({}).HasAvxVnni());
  EXPECT_FALSE(FeaturesOf({}).HasAvx512());
  EXPECT_FALSE(FeaturesOf({}).HasAmx());
}

TEST(CpuTest, RegistersTheSystemDoesNotSaveDoNotCount) {
  CpuWords words = kFull;
  words.xcr0 = 0x07;  // no AVX-512 state
  EXPECT_TRUE(FeaturesOf(words).HasAvx2());
  EXPECT_TRUE(FeaturesOf(words).HasAvxVnni());
  EXPECT_FALSE(FeaturesOf(words).HasAvx512());
  words.xcr0 = 0x67;  // the upper 16 registers missing
  EXPECT_FALSE(FeaturesOf(words).HasAvx512());
  words.xcr0 = 0x03;  // no AVX state
  EXPECT_FALSE(FeaturesOf(words).HasAvx2());
  EXPECT_FALSE(FeaturesOf(words).HasAvxVnni());
  words = kFull;
  words.leaf1_ecx &= ~(1u << 27);  // XGETBV not enabled
  EXPECT_FALSE(FeaturesOf(words).HasAvx2());
}

TEST(CpuTest, EachMissingFeatureDisablesItsTarget) {
  for (const int bit : {12, 28, 29}) {
    CpuWords words = kFull;
    words.leaf1_ecx &= ~(1u << bit);
    EXPECT_FALSE(FeaturesOf(words).HasAvx2()) << bit;
    EXPECT_FALSE(FeaturesOf(words).HasAvxVnni()) << bit;
    EXPECT_FALSE(FeaturesOf(words).HasAvx512()) << bit;
  }
  for (const int bit : {16, 17, 30, 31}) {
    CpuWords words = kFull;
    words.leaf7_ebx &= ~(1u << bit);
    EXPECT_TRUE(FeaturesOf(words).HasAvx2()) << bit;
    EXPECT_FALSE(FeaturesOf(words).HasAvx512()) << bit;
  }
  for (const int bit : {1, 8, 11}) {
    CpuWords words = kFull;
    words.leaf7_ecx &= ~(1u << bit);
    EXPECT_FALSE(FeaturesOf(words).HasAvx512()) << bit;
  }
  CpuWords words = kFull;
  words.leaf7_1_eax = 0;
  EXPECT_TRUE(FeaturesOf(words).HasAvx2());
  EXPECT_FALSE(FeaturesOf(words).HasAvxVnni());
}

TEST(CpuTest, TilesNeedTheSystemsConsent) {
  for (const int bit : {24, 25}) {
    CpuWords words = kFull;
    words.leaf7_edx &= ~(1u << bit);
    EXPECT_TRUE(FeaturesOf(words).HasAvx512()) << bit;
    EXPECT_FALSE(FeaturesOf(words).HasAmx()) << bit;
  }
  CpuWords words = kFull;
  words.xcr0 = 0xe7;  // no tile state
  EXPECT_FALSE(FeaturesOf(words).HasAmx());
  words = kFull;
  words.tiles_granted = false;
  EXPECT_TRUE(FeaturesOf(words).HasAvx512());
  EXPECT_FALSE(FeaturesOf(words).HasAmx());
  words = kFull;
  words.leaf7_ecx &= ~(1u << 11);  // no VNNI
  EXPECT_FALSE(FeaturesOf(words).HasAmx());
}

// Cortex-A72 under Linux has FP 0, ASIMD 1, AES 3 to CRC32 7; Neoverse N1 also, among others,
// ASIMDDP 20.
TEST(CpuTest, ArmNeedsDotProducts) {
  EXPECT_FALSE(FeaturesOf({.arm_hwcap = 0xfb}).HasNeon());
  EXPECT_TRUE(FeaturesOf({.arm_hwcap = 0xfb | 1u << 20}).HasNeon());
  EXPECT_FALSE(FeaturesOf({.arm_hwcap = ~0ull}).HasAvx2());
}

#if defined(__x86_64__)
// The compiler's runtime reads the same instructions in its own way.
TEST(CpuTest, AgreesWithTheCompilersRuntime) {
  EXPECT_EQ(Cpu().avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(Cpu().fma, __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(Cpu().avx512_f, __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(Cpu().avx512_vnni, __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(Cpu().avx512_vbmi, __builtin_cpu_supports("avx512vbmi") != 0);
  EXPECT_EQ(Cpu().gfni && Cpu().avx512_f,
            __builtin_cpu_supports("gfni") != 0 && __builtin_cpu_supports("avx512f") != 0);
}
#endif

}  // namespace
}  // namespace shorthand
