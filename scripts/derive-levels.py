#!/usr/bin/env python3
"""Derives the integer level tables of src/quant/levels.cc. Standard library only.

Levels are small signed integers times a scale, so that codecs, kernels and tests agree to the bit
and no 8-bit multiply-add saturates. For every table the ideal levels are rounded to integers whose
largest magnitude is L; L <= 63 is the one with the least mean squared error, the largest on a tie:
for lm and rn the error of quantized values, for nf, a published table, that of the levels.

  lm  Lloyd-Max of N(0,1). MSE in closed form; the step (sigma per integer) is the best for it.
  rn  levels of z = (x - mid) / half-range, trained on groups of 128 Gaussians; the step is the
      best for the same distribution, sampled with a fixed seed.
  nf  normal-float: quantiles of N(0,1), one more positive than negative level, scaled so that the
      largest is 1. The step is 1 / L, so that the absolute maximum of a group is exact.
"""
import math
import random
from statistics import NormalDist

MAX_LEVEL = 63
LLOYD_MAX = {
    2: [.452780, 1.510418],
    3: [.245094, .756005, 1.343909, 2.151946],
    4: [.128395, .388048, .656759, .942340, 1.256231, 1.618046, 2.069017, 2.732590],
}
RANGE_NORMALISED = {
    2: [.1798, .6020],
    3: [.0957, .2943, .5226, .8308],
    4: [.0488, .1476, .2496, .3567, .4720, .6007, .7531, .9529],
}
BINS = 4096


def symmetric(positive):
    return [-v for v in reversed(positive)] + list(positive)


def normal_float(bits):
    n = 1 << bits
    edge = 1 - .5 * (1 / (2 * (n - 1)) + 1 / (2 * n))
    ppf = NormalDist().inv_cdf

    def half(count):  # from the outermost inwards, zero left out
        return [ppf(edge + (.5 - edge) * i / count) for i in range(count)]

    levels = [-v for v in half(n // 2 - 1)] + [0.] + list(reversed(half(n // 2)))
    return [v / max(levels) for v in levels]


def gaussian_mse(levels):
    """E (x - nearest level)^2 for x ~ N(0,1)."""
    phi, cdf = NormalDist().pdf, NormalDist().cdf
    edges = [-math.inf] + [(a + b) / 2 for a, b in zip(levels, levels[1:])] + [math.inf]
    mse = 0.
    for level, a, b in zip(levels, edges, edges[1:]):
        fa, fb = (0. if math.isinf(e) else phi(e) for e in (a, b))
        afa, bfb = (0. if math.isinf(e) else e * phi(e) for e in (a, b))
        p = (cdf(b) if b < math.inf else 1.) - (cdf(a) if a > -math.inf else 0.)
        mse += p + afa - bfb - 2 * level * (fa - fb) + level * level * p
    return mse


def sample(groups, size, normalise):
    """A histogram over [-1, 1] of groups of Gaussians after `normalise`."""
    rng, counts = random.Random(1), [0] * BINS
    for _ in range(groups):
        for z in normalise([rng.gauss(0, 1) for _ in range(size)]):
            counts[min(BINS - 1, int((z + 1) / 2 * BINS))] += 1
    return [c / (groups * size) for c in counts]


def by_range(x):
    mid, half = (max(x) + min(x)) / 2, (max(x) - min(x)) / 2
    return [(v - mid) / half for v in x]


def histogram_mse(histogram):
    def mse(levels):
        code, total = 0, 0.
        for i, p in enumerate(histogram):
            z = (i + .5) / BINS * 2 - 1
            while code + 1 < len(levels) and z > (levels[code] + levels[code + 1]) / 2:
                code += 1
            total += p * (z - levels[code]) ** 2
        return total
    return mse


def best_step(mse, levels, start):
    low, high, ratio = start * .9, start * 1.1, (math.sqrt(5) - 1) / 2
    for _ in range(30):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        if mse([a * v for v in levels]) < mse([b * v for v in levels]):
            high = b
        else:
            low = a
    return (low + high) / 2


def distance_from(ideal):
    return lambda levels: sum((a - b) ** 2 for a, b in zip(levels, ideal)) / len(ideal)


def derive(name, ideal, mse, fixed_step):
    best = None
    for largest in range(len(ideal) // 2, MAX_LEVEL + 1):
        unit = largest / max(ideal)
        levels = [round(v * unit) for v in ideal]
        if len(set(levels)) < len(levels):
            continue
        step = 1 / largest if fixed_step else best_step(mse, levels, 1 / unit)
        error = mse([step * v for v in levels])
        if best is None or error <= best[0]:
            best = (error, levels, step)
    error, levels, step = best
    print(f"{name}: {levels} step {step:.9g} MSE {error:.8f} (ideal {mse(ideal):.8f})")


def main():
    ranged = histogram_mse(sample(4000, 128, by_range))
    for bits in (2, 3, 4):
        derive(f"lm{bits}", symmetric(LLOYD_MAX[bits]), gaussian_mse, False)
        derive(f"rn{bits}", symmetric(RANGE_NORMALISED[bits]), ranged, False)
        normal = normal_float(bits)
        derive(f"nf{bits}", normal, distance_from(normal), True)


if __name__ == "__main__":
    main()
