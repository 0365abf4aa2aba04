// Water-filling: how many bits each quad of channels gets, so that the error which queries see is
// least for a number of bits.
//
// A channel of variance s^2 coded in b bits leaves an error of s^2 e(b), which a query multiplies
// by q. A quad is four channels that share a width; quads are given bits one after the other where
// the next bit takes away most of (s q)^2 e. Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_WATER_FILL_H_
#define SHORTHAND_QUANT_WATER_FILL_H_

#include <cstdint>
#include <span>
#include <vector>

namespace shorthand {

// Widths that a quad can have.
inline constexpr int kQuadWidths[] = {2, 3, 4, 5, 6, 8};

// Mean squared error of groups of 128 Gaussians of variance 1 in `bits` bits: minimum and maximum
// at 4 bits and above, fitted to the codes at 2 and 3.
// REQUIRES: `bits` is one of kQuadWidths.
double GaussianError(int bits);

// Widths of quads whose importance (mean (s q)^2) is given, summing to `total` bits, or one less
// where nothing else is possible. Equal quads are served in their order.
// REQUIRES: importance finite and not negative; 2 * quads <= total <= 8 * quads.
std::vector<uint8_t> FillWidths(std::span<const double> importance, int total);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_WATER_FILL_H_
