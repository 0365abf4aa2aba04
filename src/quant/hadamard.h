// Walsh-Hadamard transform over blocks of channels: orthonormal, symmetric, its own inverse.
//
// Sylvester order: butterflies at distance 1, 2, 4, ..., then one multiplication by 1/sqrt(block).
// This is the reference that every target's kernel equals to the bit.
//
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_HADAMARD_H_
#define SHORTHAND_QUANT_HADAMARD_H_

namespace shorthand {

// The largest power of two that divides n. REQUIRES: n > 0.
constexpr int LargestPowerOfTwoDividing(int n) { return n & -n; }

// f32 nearest to 1 / sqrt(block).
float HadamardFactor(int block);

// Transforms blocks of `block` of x [n] in place. REQUIRES: block is a power of two, divides n.
void Hadamard(float* x, int n, int block);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_HADAMARD_H_
