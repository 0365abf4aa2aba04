"""What groups of values become: the encoders of golden-pages.py, from docs/formats/ alone."""
import math
import struct

TABLES = {
    "lm2": ([-60, -18, 18, 60], .0251724962),
    "lm3": ([-62, -39, -22, -7, 7, 22, 39, 62], .0346364953),
    "lm4": ([-61, -46, -36, -28, -21, -15, -9, -3, 3, 9, 15, 21, 28, 36, 46, 61], .0448032326),
    "rn2": ([-60, -18, 18, 60], .0101532171),
    "rn3": ([-62, -39, -22, -7, 7, 22, 39, 62], .0134473143),
    "rn4": ([-57, -45, -36, -28, -21, -15, -9, -3, 3, 9, 15, 21, 28, 36, 45, 57], .0166210106),
    "nuq2": ([-39, 0, 17, 39], 1 / 39),
    "nuq3": ([-60, -32, -15, 0, 11, 23, 37, 60], 1 / 60),
    "nuq4": ([-53, -37, -28, -21, -15, -10, -5, 0, 4, 9, 13, 18, 23, 30, 38, 53], 1 / 53),
    "nf2": ([-39, 0, 17, 39], 1 / 39),
    "nf3": ([-60, -32, -15, 0, 11, 23, 37, 60], 1 / 60),
    "nf4": ([-53, -37, -28, -21, -15, -10, -5, 0, 4, 9, 13, 18, 23, 30, 38, 53], 1 / 53),
}
E2M1 = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12]
IQ4_NL = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def f16(x):
    """Nearest f16, saturating."""
    x = max(-65504., min(65504., x))
    return struct.unpack("<e", struct.pack("<e", x))[0]


def rne(x):
    return round(x)  # Python rounds ties to even


def trunc(x):
    return int(x)


def table_of(f):
    """Levels and their step; learned ones are made up."""
    if f.learned:
        return TABLES["rn" + f.code[-1]][0], 1 / 64
    return TABLES[f.code]


def levels_of(f):
    if f.code in TABLES:
        return table_of(f)[0]
    if f.code == "iq4_nl":
        return IQ4_NL
    if f.blocks and "fp4" in f.code:
        return E2M1
    if f.code[0] == "e":
        return [0]
    if f.offset:
        return range(1 << f.bits)
    return [c - (1 << f.bits - 1) for c in range(1 << f.bits)]


def zero_code(f):
    return min(range(len(levels_of(f))), key=lambda c: abs(levels_of(f)[c]))


def total(terms, lanes):
    """Sum in the order of the documents."""
    if not lanes:
        s = 0.
        for t in terms:
            s = f32(s + t)
        return s
    acc = [0.] * 16
    for i, t in enumerate(terms):
        acc[i % 16] = f32(acc[i % 16] + t)
    for half in (8, 4, 2, 1):
        acc = [f32(acc[i] + acc[i + half]) for i in range(half)]
    return acc[0]


def dot(a, b, lanes):
    return total([f32(x * y) for x, y in zip(a, b)], lanes)


def by_midpoints(levels, y):
    return sum(y > (a + b) / 2 for a, b in zip(levels, levels[1:]))


RATIOS = {2: [1, .9, .8, .7, .6, .5], 3: [1, .9, .8, .7, .6, .5], 4: [1, .92, .84, .76, .68, .6]}


def least_error(f, x, low, high, lanes, encode):
    """encode(low, high) with the narrowed range that leaves the least squared error."""
    best = None
    middle, half = f32(f32(low + high) / 2), f32(f32(high - low) / 2)
    for r in RATIOS.get(f.bits, [1, .96, .92, .88]):
        part = f32(half * f32(r))
        coded = encode(low, high) if r == 1 else encode(f32(middle - part), f32(middle + part))
        codes, s, z = coded
        off = [f32(v - fma(s, levels_of(f)[c], z)) for v, c in zip(x, codes)]
        e = dot(off, off, lanes)
        if best is None or e < best[0]:
            best = e, coded
    return best[1]


def fma(a, b, c):
    """One rounding, where the product is exact in double and the sum nearly so."""
    return f32(a * b + c)


def encode_uniform(f, x, lanes):
    clip = f32(f.clip)
    low, high = f32(min(x) * clip), f32(max(x) * clip)
    if f.mse:
        return least_error(f, x, low, high, lanes, lambda a, b: encode_between(f, x, a, b))
    return encode_between(f, x, low, high)


def encode_between(f, x, low, high):
    top = (1 << f.bits) - 1
    s, z = f16(f32(f32(high - low) / top)), f16(low)
    return [0 if s == 0 else max(0, min(top, rne(f32(f32(v - z) / s)))) for v in x], s, z


def encode_water(x, bits):
    """Minimum and maximum; at 2 and 3 bits two lines fitted to the codes of the one before."""
    top, low, high, n = (1 << bits) - 1, min(x), max(x), len(x)
    if bits < 4:
        ratio = {2: .65, 3: .82}[bits]
        middle, half = f32(f32(low + high) / 2), f32(f32(f32(high - low) / 2) * f32(ratio))
        low, high = f32(middle - half), f32(middle + half)
    s, z = f32(f32(high - low) / top), low

    def by_token(terms, add=lambda s, v: f32(s + v)):
        lanes = [0.] * 16
        for t, term in enumerate(terms, 128 - n):
            lanes[t % 16] = add(lanes[t % 16], term)
        return total(lanes, True)

    for _ in range(2 if bits < 4 else 0):
        inverse = f32(1 / s) if s > 0 else 0.
        start = f32(0 - f32(z * inverse))
        c = [max(0, min(top, rne(fma(v, inverse, start)))) for v in x]
        sx, sc, scc = by_token(x), by_token(c), by_token([k * k for k in c])
        sxc = by_token(list(zip(x, c)), lambda s, vk: fma(*vk, s))
        covariance, variance = f32(f32(n * sxc) - f32(sx * sc)), f32(f32(n * scc) - f32(sc * sc))
        if covariance > 0 and variance > 0:
            s = f32(covariance / variance)
            z = f32(f32(sx - f32(s * sc)) / n)
    s, z = f16(s), f16(z)
    return [0 if s == 0 else max(0, min(top, rne(f32(f32(v - z) / s)))) for v in x], s, z


def encode_signed(f, x, lanes):
    largest = f32(max(map(abs, x)) * f32(f.clip))
    if f.mse:
        return least_error(f, x, -largest, largest, lanes, lambda _, b: encode_up_to(f, x, b))
    return encode_up_to(f, x, largest)


def encode_up_to(f, x, largest):
    m = (1 << f.bits - 1) - 1
    s = f16(f32(largest / m))
    return [m + 1 + (0 if s == 0 else max(-m, min(m, rne(f32(v / s))))) for v in x], s, 0.


def encode_table(f, x, lanes, head_range=None):
    levels, step = table_of(f)[0], f32(table_of(f)[1])

    def codes(unit, z=0.):
        return [0 if v is None else by_midpoints(levels, 0. if unit == 0 else f32(f32(v - z) / unit))
                for v in x]

    if f.code.startswith("nf"):
        s = f16(f32(max(map(abs, x)) * step))
        return codes(s), s, 0.
    if f.code.startswith(("rn", "nuq")):
        clip, known = f32(f.clip), [v for v in x if v is not None] or [0.]
        low, high = f32(min(known) * clip), f32(max(known) * clip)

        def between(low, high):
            s, z = f16(f32(f32(f32(high - low) / 2) * step)), f16(f32(f32(high + low) / 2))
            return codes(s, z), s, z

        if head_range:
            return between(*head_range)
        return least_error(f, x, low, high, lanes, between) if f.mse else between(low, high)
    squares = dot(x, x, lanes)
    sigma = f32(math.sqrt(f32(squares / len(x))))
    chosen = codes(f32(sigma * step))
    if sigma == 0:
        return chosen, 0., 0.
    at = [levels[c] for c in chosen]
    if f.norm:
        return chosen, f16(f32(math.sqrt(f32(squares / dot(at, at, lanes))))), 0.
    if f.ub:
        return chosen, f16(f32(squares / dot(x, at, lanes))), 0.
    return chosen, f16(f32(dot(x, at, lanes) / dot(at, at, lanes))), 0.


def encode_ggml(f, x):
    largest = max(map(abs, x))
    m = next(v for v in x if abs(v) == largest)
    low, high = min(x), max(x)
    if f.code == "iq4_nl":
        inverse = f32(1 / f32(m / -127))
        codes = [min(range(16), key=lambda c: (abs(IQ4_NL[c] - y), -c))
                 for y in (f32(inverse * v) for v in x)]
        qx = qq = 0.
        for c, v in zip(codes, x):
            w, q = f32(v * v), IQ4_NL[c]
            qx, qq = f32(qx + f32(f32(w * q) * v)), f32(qq + f32(f32(w * q) * q))
        return codes, f16(f32(qx / qq)), 0.
    if f.code == "q8_0":
        d = f32(largest / 127)
        inverse = f32(1 / d) if d else 0.
        rounded = [math.copysign(math.floor(abs(f32(v * inverse)) + .5), v) for v in x]
        return [128 + int(v) for v in rounded], f16(d), 0.
    if f.offset:
        top = (1 << f.bits) - 1
        d = f32(f32(high - low) / top)
        inverse = f32(1 / d) if d else 0.
        codes = [min(top, trunc(f32(f32(f32(v - low) * inverse) + .5))) for v in x]
        return codes, f16(d), f16(low)
    middle = 1 << f.bits - 1
    d = f32(m / -middle)
    inverse = f32(1 / d) if d else 0.
    codes = [min(2 * middle - 1, trunc(f32(f32(v * inverse) + middle + .5))) for v in x]
    return codes, f16(d), 0.


def e4m3(code):
    e, m = code >> 3 & 15, code & 7
    return math.ldexp(m, -9) if e == 0 else math.ldexp(8 + m, e - 10)


def encode_mx(f, x):
    largest = max(map(abs, x))
    if f.code == "mxfp4":
        byte = 0 if largest == 0 else math.frexp(largest)[1] - 1 - 2 + 127
        s = math.ldexp(1, byte - 128)
    else:
        byte = nearest_ue4m3(f32(largest / 6))
        s = e4m3(byte) / 2
    codes = [min(range(16), key=lambda c: (abs(f32(f32(E2M1[c] * s) - v)), c)) for v in x]
    return codes, byte, 0.


def nearest_ue4m3(v):
    if v >= 256:
        return 0x7e
    if v < 2 ** -6:
        return min(7, math.floor(v * 512 + .5))
    byte = min(range(8, 0x7f), key=lambda c: (abs(e4m3(c) - v), -c))
    return byte if e4m3(byte) < 256 else 0x7e


def fp8_codes(f, rows):
    """Codes of rows, the page scale."""
    if f.code == "e4m3":
        values, largest = [e4m3(c) for c in range(0x7f)], 448.
    else:
        values, largest = [struct.unpack("<e", bytes([0, c]))[0] for c in range(0x7c)], 57344.
    top = max(abs(v) for row in rows for v in row)
    s = 1. if f.one else 1 / 64 if f.cal else f32(top / largest)

    def code(v):
        y = f32(v / s)
        near = min(range(len(values)), key=lambda c: (abs(values[c] - abs(y)), c & 1))
        return near | (0x80 if math.copysign(1, y) < 0 else 0)

    return [[code(v) for v in row] for row in rows], s


def encode_group(f, x, lanes):
    if f.code in TABLES:
        return encode_table(f, x, lanes)
    if "fp4" in f.code:
        return encode_mx(f, x)
    if f.blocks:
        return encode_ggml(f, x)
    return encode_uniform(f, x, lanes) if f.code[0] == "u" else encode_signed(f, x, lanes)
