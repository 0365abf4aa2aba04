// Powers of two and the hyperbolic tangent, the only transcendental functions of the project.
// Compiled per target, after that target's ops file.
//
// NaN stays NaN in every function here.
// Thread-safety: pure functions.
#ifndef SHORTHAND_KERNELS_MATH_INL_H_
#define SHORTHAND_KERNELS_MATH_INL_H_

namespace shorthand {
namespace {

inline constexpr float kInfinity = __builtin_inff();
inline constexpr float kLog2E = 0x1.715476p+0f;

// 2^x for x in [-126, 128), with a relative error below 1.2e-7 (2^-23), exact for integers; NaN for
// the NaN of arithmetic, whose low bits are zero; anything for other x.
//
// x = n + r with n the nearest integer and |r| <= 1/2. The polynomial of 2^r has its constant term
// fixed to 1; its own relative error is 3e-9.
inline F32 Exp2InRange(F32 x) {
  // Adding 1.5 * 2^23 rounds to an integer, n, which then stands in the lowest bits of the sum.
  const F32 magic = Set(0x1.8p23f);
  const F32 shifted = Add(x, magic);
  const F32 r = Sub(x, Sub(shifted, magic));

  F32 p = Set(0x1.416b5ep-13f);
  p = Fma(p, r, Set(0x1.5f083p-10f));
  p = Fma(p, r, Set(0x1.3b2de0p-7f));
  p = Fma(p, r, Set(0x1.c6af7cp-5f));
  p = Fma(p, r, Set(0x1.ebfbdcp-3f));
  p = Fma(p, r, Set(0x1.62e430p-1f));
  p = Fma(p, r, Set(1.0f));

  // p * 2^n: n joins the exponent field. In range, because x >= -126 has p >= 1 where n = -126, and
  // x < 128 has p < 1 where n = 128.
  return FloatOf(AddBits(BitsOf(p), ShiftLeft<23>(BitsOf(shifted))));
}

// 2^x for x <= 0, as weights of a softmax need it: the same bits as Exp2.
inline F32 Exp2OfWeight(F32 x) { return IfLess(x, Set(-126.0f), Set(0.0f), Exp2InRange(x)); }

// 2^x for every x: 0 below -126, so that no result is subnormal; infinity from 128 on.
inline F32 Exp2(F32 x) {
  // Infinity from 128 on, and NaN.
  const F32 beyond = Mul(x, Set(0x1.fffffep127f));
  return IfLess(x, Set(-126.0f), Set(0.0f), IfLess(x, Set(128.0f), Exp2InRange(x), beyond));
}

// tanh(y) for z = 2 * log2(e) * y, with an absolute error below 2e-7; +-1 for large |z|.
inline F32 TanhOfScaled(F32 z) {
  const U32 sign_bit = SetBits(0x80000000u);
  const U32 sign = And(BitsOf(z), sign_bit);
  const F32 minus_magnitude = FloatOf(Or(BitsOf(z), sign_bit));
  // tanh(y) = (1 - e^-2y) / (1 + e^-2y) for y >= 0.
  const F32 t = Exp2(minus_magnitude);
  const F32 one = Set(1.0f);
  return FloatOf(Or(BitsOf(Div(Sub(one, t), Add(one, t))), sign));
}

}  // namespace
}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_MATH_INL_H_
