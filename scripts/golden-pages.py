#!/usr/bin/env python3
"""Writes tests/golden/pages.csv: bytes of sealed pages, worked out from docs/formats/ alone.

Standard library only; shares nothing with the C++ code. f32 arithmetic is done in double and
rounded after every operation, which for + - * / and sqrt gives the f32 result exactly.

Input of a page: x[t][c] for t = 0..127, c = 0..d-1 in that order from the generator
    state = (1664525 state + 1013904223) mod 2^32,   state = d before the first value,
    x = ((state >> 24) - 128) / 16 + (c mod 5) - 2.

Tables that a calibration would give: balance 2^((c mod 5) - 2) of channel c; channel (5 p + 3) mod d
at place p; widths of quads in the cycle 8 6 5 4 3 2, each lowered until two bits are left for every
quad behind it. With `cal`: mean (c mod 5) - 9/4; page scale 1/64; levels of rnB, of which one is 1/64 half-range; of channel c
the range -5 - (c mod 3) to 5 + (c mod 4), divided by the balance if there is one.

Keys before RoPE: channels c and c + d/2 turn by f32(1 / (1 + c)) a position, slot 0 has position 1000.

A row: format, d, side, first token, f32 bits of the page scale, bytes of meta and codes, the first
32 bytes of each, and the 64-bit FNV-1a hash of meta and codes together.
"""
import copy
import math
import os
import struct

from golden_codes import (
    dot, encode_group, encode_table, encode_water, f16, f32, fp8_codes, total, zero_code)

TOKENS = 128
CASES = """
u4/tok u4/tok32 u4/ch u2/ch32 u3/ch u2/tok32 u5/ch u6/ch u8/tok
i8/tok i4/ch i3/tok i5/tok i6/ch i2/ch
had:u4/tok:clip0.95 mu:had:lm4/tok:norm had:lm4/tok lm3/tok lm2/tok had:lm2/tok64 lm3/ch
rn2/ch rn3/ch rn4/ch rn4/tok32 nf4/tok64 nf3/tok nf2/ch mu:u4/tok had64:u3/ch
q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl mxfp4 nvfp4 had64:q4_0
e4m3/page e5m2/page e4m3/page:one mu:had:e4m3/page
bal:had:u4/ch bal:u8/ch w4/ch w2.5/ch w3/ch w8/ch
had:lm2/tok:ub mu:had:lm4/tok:ub lm3/ch32:ub
had:u4/grid u2/grid lm3/grid u2/ch:hi12.5 u3/ch32:hi30 u2/ch:mse:hi20
smooth:u4/tok mu:smooth:had:lm4/tok smooth:u2/ch
pre:u4/ch pre:mu:u4/tok pre:nuq3/ch:out1
nuq2/ch nuq4/tok32 nuq3/ch:out1 had:nuq2/tok:out1 nuq4/ch32:out80
u2/ch:cal:hi12.5 u3/ch32:mse:cal:hi30 bal:had:u4/ch:cal:hi20
e4m3/page:cal mu:had:e5m2/page:cal smooth:u4/tok:cal mu:smooth:had:lm4/tok:cal pre:mu:u4/tok:cal
nuq4/tok:cal had:nuq2/tok:cal:out1 nuq3/ch:cal nuq2/ch32:cal:out1 bal:nuq4/ch:cal:out3
pre:smooth:nuq3/ch:cal:out1 had:nuq3/ch:cal nuq2/grid:cal
u4/ch:mse had:u2/tok:mse u5/ch32:mse i3/tok:mse had:i4/tok:mse rn2/ch:mse mu:rn4/tok:mse
""".split()


def inputs(d):
    state, rows = d, []
    for _ in range(TOKENS):
        row = []
        for c in range(d):
            state = (1664525 * state + 1013904223) % (1 << 32)
            row.append(((state >> 24) - 128) / 16 + (c % 5) - 2)
        rows.append(row)
    return rows


class Format:
    """A side's text, taken apart."""

    def __init__(self, text, d, side):
        tunes = ("clip", "mse", "norm", "ub", "cal", "one", "out", "hi")
        *steps, rest = (p for p in text.split(":") if not p.startswith(tunes))
        self.clip = next((float(p[4:]) for p in text.split(":") if p.startswith("clip")), 1.)
        self.mse, self.norm, self.ub, self.cal, self.one = (
            ":" + t in text for t in ("mse", "norm", "ub", "cal", "one"))
        self.mu = "mu" in steps
        had = next((s[3:] for s in steps if s.startswith("had")), None)
        self.had = 0 if had is None else int(had) if had else d & -d
        self.code, _, group = rest.partition("/")
        self.axis = group.rstrip("0123456789") or "tok"
        self.grid = self.axis == "grid"
        if self.grid:
            self.axis = "ch" if side == "k" else "tok"
        size = group[len(group.rstrip("0123456789")):]
        self.blocks = not group
        if self.blocks:
            self.group = 16 if self.code == "nvfp4" else 32
        elif self.axis == "tok":
            self.group = int(size) if size else d
        else:
            self.group = int(size) if size else TOKENS
        self.d, self.padded, self.side = d, (d + 15) // 16 * 16, side
        self.fits = not (self.axis == "tok" and d % self.group) and not (self.had and d % self.had)
        self.bal, self.planes = "bal" in steps, self.code[0] == "w"
        out = next((float(p[3:]) for p in text.split(":") if p.startswith("out")), 0)
        self.out = math.ceil(TOKENS * d * out / 100)
        self.hi = next((float(p[2:]) for p in text.split(":") if p.startswith("hi")), 0)
        self.smooth = "smooth" in steps
        self.pre = "pre" in steps
        keys_only = self.pre or self.mu or self.smooth or self.bal or self.planes or self.hi
        self.fits = self.fits and not (keys_only and side == "v")
        widths = {"q8_0": 8, "q5_1": 5, "q5_0": 5, "iq4_nl": 4, "e4m3": 8, "e5m2": 8}
        if self.planes:
            self.set_planes(float(self.code[1:]))
        else:
            self.bits = widths.get(self.code) or (4 if self.blocks else int(self.code[-1]))
        if self.hi:
            self.hi = -(-math.ceil(d * self.hi / 100) // 4) * 4
            self.widths = [2 * self.bits] * (self.hi // 4)
            self.widths += [self.bits] * (self.padded // 4 - len(self.widths))
            self.lines = sum(self.widths)
        self.learned = self.cal and self.code.startswith("nuq")
        self.head_range = (self.learned and side == "k" and self.axis == "ch"
                           and not (self.grid or self.had))
        self.offset = (self.code[0] in "urw" or self.code in ("q4_1", "q5_1")
                       or self.code.startswith("nuq"))

    def with_bits(self, bits):
        other = copy.copy(self)
        other.bits = bits
        return other

    def set_planes(self, average):
        quads = self.padded // 4
        self.lines = left = math.floor(average * quads)
        self.bits, self.widths = 8, []
        for i in range(quads):
            most = left - 2 * (quads - i - 1)
            width = [8, 6, 5, 4, 3, 2][i % 6]
            self.widths.append(max(b for b in (2, 3, 4, 5, 6, 8) if b <= min(width, most)))
            left -= self.widths[-1]


def before_rope(rows):
    """Pairs c and c + d/2 turn by 1 / (1 + c) a position, the page begins at position 1000."""
    rows, half = [list(row) for row in rows], len(rows[0]) // 2
    for i in range(half):
        step = f32(1 / (1 + i))
        c, s = math.cos(1000 * step), math.sin(1000 * step)
        for row in rows:
            a, b, cos, sin = row[i], row[i + half], f32(c), f32(s)
            row[i] = f32(f32(a * cos) + f32(b * sin))
            row[i + half] = f32(f32(b * cos) - f32(a * sin))
            c, s = (c * math.cos(step) - s * math.sin(step),
                    s * math.cos(step) + c * math.sin(step))
    return rows


def steps(f, rows, first):
    """Rows after all steps, the mean, the factors of smooth."""
    mean, factors = [0.] * f.d, []
    if f.pre:
        rows = before_rope(rows)
    if f.mu:
        count = TOKENS - first
        mean = [c % 5 - 2.25 if f.cal else
                f16(f32(total([r[c] for r in rows[first:]], False) / count)) for c in range(f.d)]
        rows = [[f32(v - m) for v, m in zip(r, mean)] for r in rows]
    if f.smooth and not f.cal:
        loudest = [max(abs(v) for v in column) for column in zip(*rows[first:])]
        for c in range(f.d // 2):
            m = max(loudest[c], loudest[c + f.d // 2])
            factors.append(f16(f32(math.sqrt(m))) if m else 1.)
        rows = [[f32(v / factors[c % (f.d // 2)]) for c, v in enumerate(r)] for r in rows]
    if f.bal or (f.smooth and f.cal):
        rows = [[f32(v * 2. ** (2 - c % 5)) for c, v in enumerate(r)] for r in rows]
    if f.had:
        rows = [hadamard(r, f.had) for r in rows]
    if f.planes or (f.hi and f.cal):
        rows = [[r[(5 * p + 3) % f.d] for p in range(f.d)] for r in rows]
    return rows, mean, factors


def hadamard(row, block):
    row, distance = list(row), 1
    while distance < block:
        for i in range(len(row)):
            if not i & distance:
                a, b = row[i], row[i + distance]
                row[i], row[i + distance] = f32(a + b), f32(a - b)
        distance *= 2
    factor = f32(1 / math.sqrt(block))
    return [f32(v * factor) for v in row]


def deviation(values, lanes):
    if len(values) < 2:
        return 0.
    mean = f32(total(values, lanes) / len(values))
    off = [f32(v - mean) for v in values]
    return f32(math.sqrt(f32(dot(off, off, lanes) / (len(values) - 1))))


def clamp(x, low, high):
    return max(low, min(high, x))


def balance(rows):
    """Factors of the rows, of the columns."""
    t, c = [1.] * len(rows), [1.] * len(rows[0])
    least, kept = math.inf, None
    low, high = f32(.740818), f32(22026.4658)
    for turn in range(16):
        y = [[f32(v / f32(a * b)) for v, b in zip(row, c)] for row, a in zip(rows, t)]
        r = [deviation(row, True) for row in y]
        q = [deviation(column, False) for column in zip(*y)]
        smallest = min(r + q)
        imbalance = f32(max(r + q) / max(smallest, f32(1e-12)))
        if turn == 0:
            tau = f32(clamp(smallest, f32(1e-3), 1e3) + f32(1e-6))
        if imbalance > least:
            break
        if imbalance < least:
            least, kept = imbalance, (t, c)
        t = [clamp(f32(a * clamp(f32(s / tau), f32(.7), 2.)), low, high) for a, s in zip(t, r)]
        c = [clamp(f32(a * clamp(f32(s / tau), f32(.7), 2.)), low, high) for a, s in zip(c, q)]
    return kept


def grid_side(f, rows, first):
    """Rows divided by the factors that are stored, and these."""
    t, c = balance(rows[first:])
    t, c = [0.] * first + [f16(v) for v in t], [f16(v) for v in c]
    if f.side == "k":
        return rows[:first] + [[f32(v / a) for v in row]
                               for row, a in zip(rows[first:], t[first:])], t
    return rows[:first] + [[f32(v / b) for v, b in zip(row, c)]
                           for row in rows[first:]], c + [0.] * (f.padded - f.d)


def code_side(f, rows, first):
    """Codes [128][padded], scales and offsets {(group, index): number}."""
    codes = [[zero_code(f)] * f.padded for _ in range(TOKENS)]
    scales, offsets = {}, {}
    if f.axis == "tok":
        for t in range(first, TOKENS):
            for g in range(f.d // f.group):
                x = rows[t][g * f.group:(g + 1) * f.group]
                c, scales[g, t], offsets[g, t] = encode_group(f, x, True)
                codes[t][g * f.group:(g + 1) * f.group] = c
    else:
        for g in range(TOKENS // f.group):
            tokens = range(max(first, g * f.group), (g + 1) * f.group)
            for c in range(f.d if tokens else 0):
                column = [rows[t][c] for t in tokens]
                coded, scales[g, c], offsets[g, c] = (
                    encode_water(column, f.widths[c // 4]) if f.planes
                    else encode_table(f, column, False, head_range(f, c)) if f.head_range
                    else encode_group(f.with_bits(f.widths[c // 4]) if f.hi else f, column, False))
                for t, code in zip(tokens, coded):
                    codes[t][c] = code
    return codes, scales, offsets


def head_range(f, c):
    factor = 2. ** (2 - c % 5) if f.bal or f.smooth else 1.
    return (-5 - c % 3) * factor, (5 + c % 4) * factor


def promote(f, rows, first):
    """Rows with the loudest channels in front, and these."""
    loudness = [total([abs(v) for v in column], False) for column in zip(*rows[first:])]
    chosen = sorted(sorted(range(f.d), key=lambda c: (-loudness[c], c))[:f.hi])
    order = chosen + [c for c in range(f.d) if c not in chosen]
    return [[row[c] for c in order] for row in rows], chosen


def set_apart(f, rows, first):
    """Places and values of the outliers, and rows that have None there."""
    groups = {}
    for t in range(first, TOKENS):
        for c in range(f.d):
            key = (t, c // f.group) if f.axis == "tok" else (t // f.group, c)
            groups.setdefault(key, []).append((t, c))
    ranked = []
    for cells in groups.values():
        x = [rows[t][c] for t, c in cells]
        if f.head_range:
            low, high = head_range(f, cells[0][1])
            middle, half = f32(f32(high + low) / 2), f32(f32(high - low) / 2)
            off = [f32(v - middle) for v in x]
            ranked += [(-f32(abs(o) / half), cell) for o, cell in zip(off, cells)]
            continue
        m = f32(total(x, f.axis == "tok") / len(x))
        off = [f32(v - m) for v in x]
        v = f32(math.sqrt(f32(dot(off, off, f.axis == "tok") / len(x))))
        ranked += [(-f32(abs(o) / v) if v else 0., cell) for o, cell in zip(off, cells)]
    chosen = sorted(cell for _, cell in sorted(ranked)[:f.out])
    spare = f.out - len(chosen)
    places = [0] * spare + [t * f.padded + c for t, c in chosen]
    values = [0.] * spare + [rows[t][c] for t, c in chosen]
    rows = [list(row) for row in rows]
    for t, c in chosen:
        rows[t][c] = None
    return (places, values), rows


def meta_bytes(f, mean, smooth, promoted, factors, scales, offsets, apart):
    out = bytearray()

    def put(table, g, indices):
        for i in indices:
            v = table.get((g, i), 0)
            out.extend(bytes([v]) if "fp4" in f.code else struct.pack("<e", v))

    parts = [scales, offsets] if f.offset else [scales]
    if f.mu and not f.cal:
        out.extend(b"".join(struct.pack("<e", m) for m in mean + [0.] * (f.padded - f.d)))
    out.extend(b"".join(struct.pack("<e", v) for v in smooth))
    out.extend(b"".join(struct.pack("<H", c) for c in promoted))
    out.extend(b"".join(struct.pack("<e", v) for v in factors))
    if f.axis == "ch":
        for g in range(TOKENS // f.group):
            for p in parts:
                put(p, g, range(f.padded))
    elif f.axis == "tok":
        runs = [range(32 * p, 32 * p + 32) for p in range(4)] if f.side == "k" else [range(TOKENS)]
        for run in runs:
            for g in range(f.d // f.group):
                for p in parts:
                    put(p, g, run)
    out.extend(b"".join(struct.pack("<H", p) for p in apart[0]))
    out.extend(b"".join(struct.pack("<e", f16(v)) for v in apart[1]))
    return bytes(out) + bytes(-len(out) % 64)


def tiles(f, codes):
    if f.side == "k":
        for p in range(4):
            for quad in range(f.padded // 4):
                for i in (0, 1):
                    token, channel = 32 * p + 16 * i, 4 * quad
                    yield [codes[token + a][channel + b] for a in range(16) for b in range(4)]
        return
    for p in range(f.padded // 32):
        for quad in range(32):
            for i in (0, 1):
                token, channel = 4 * quad, 32 * p + 16 * i
                yield [codes[token + b][channel + a] for a in range(16) for b in range(4)]
    if f.padded // 16 % 2:
        for quad in range(32):
            yield [codes[4 * quad + b][f.padded - 16 + a] for a in range(16) for b in range(4)]


def pack(bits, t):
    """Lines of a pack of tiles, for one byte of each."""
    def fields(values, width):
        return sum(v << i * width for i, v in enumerate(values))

    low = [v & 15 for v in t]
    nibbles = [fields(low[i:i + 2], 4) for i in range(0, len(t), 2)]
    if bits == 3:
        spread = t[6] + 8 * t[7]
        return [t[2 * i] + 8 * t[2 * i + 1] + 64 * (spread >> 2 * i & 3) for i in range(3)]
    if bits == 5:
        return [fields([v >> 4 for v in t], 1)] + nibbles
    if bits == 6:
        return [fields([v >> 4 for v in t], 2)] + nibbles
    return [fields(t, bits)]


def pack_all(bits, all_tiles):
    count, out = {8: 1, 6: 4, 5: 8, 4: 2, 3: 8, 2: 4}[bits], bytearray()
    for first in range(0, len(all_tiles), count):
        group = all_tiles[first:first + count]
        packed = [pack(bits, [tile[j] for tile in group]) for j in range(64)]
        for line in zip(*packed):
            out.extend(line)
    return bytes(out)


def lines(f, codes):
    if not (f.planes or f.hi):
        return pack_all(f.bits, list(tiles(f, codes)))
    out = bytearray()
    for quad, width in enumerate(f.widths):
        out += pack_all(width, [[codes[16 * i + a][4 * quad + b] for a in range(16)
                                 for b in range(4)] for i in range(8)])
    return bytes(out) + bytes(64 * f.lines - len(out))


def fnv1a64(data):
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 % (1 << 64)
    return h


def seal(f, first):
    """Meta bytes, code bytes, page scale."""
    rows, mean, smooth = steps(f, inputs(f.d), first)
    if f.axis != "page":
        rows, factors = grid_side(f, rows, first) if f.grid else (rows, [])
        rows, promoted = promote(f, rows, first) if f.hi and not f.cal else (rows, [])
        apart, rows = set_apart(f, rows, first) if f.out else (([], []), rows)
        codes, scales, offsets = code_side(f, rows, first)
        meta = meta_bytes(f, mean, smooth, promoted, factors, scales, offsets, apart)
        return meta, lines(f, codes), 0.
    coded, scale = fp8_codes(f, rows[first:])
    codes = [[0] * f.padded for _ in range(first)] + [r + [0] * (f.padded - f.d) for r in coded]
    return meta_bytes(f, mean, smooth, [], [], {}, {}, ([], [])), lines(f, codes), scale


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.path.join(root, "tests", "golden", "pages.csv")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii", newline="\n") as out:
        out.write("format,dim,side,first_token,page_scale_hex,meta_bytes,codes_bytes,meta_head,"
                  "codes_head,fnv1a64\n")
        for text in CASES:
            for d in (8, 64, 80, 128):
                for side, first in (("k", 0), ("v", 0), ("k", 37)):
                    f = Format(text, d, side)
                    if not f.fits:
                        continue
                    meta, codes, scale = seal(f, first)
                    out.write(f"{text},{d},{side},{first},{struct.pack('>f', scale).hex()},"
                              f"{len(meta)},{len(codes)},{meta[:32].hex()},{codes[:32].hex()},"
                              f"{fnv1a64(meta + codes):016x}\n")


if __name__ == "__main__":
    main()
