"""`shorthand inspect slice`: a model's keys and values, and what coding does to them."""

import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import unittest

SHORTHAND = ""
SOURCE = pathlib.Path(os.environ.get("SHORTHAND_SOURCE_DIR", "."))
DATA = pathlib.Path(os.environ.get("SHORTHAND_DATA", SOURCE / "../shared/data"))
STORIES = DATA / "models" / "stories260Ktok512.gguf"


def rounded(x, kind):
    return struct.unpack(kind, struct.pack(kind, x))[0]


def two_bits(group):
    """u2 of one group, by docs/formats/uniform.md: f32 arithmetic, scale and offset in f16."""
    f32 = lambda x: rounded(x, "<f")
    scale = rounded(f32(f32(max(group) - min(group)) / 3), "<e")
    offset = rounded(min(group), "<e")
    codes = [0 if scale == 0 else min(max(round(f32(f32(x - offset) / scale)), 0), 3)
             for x in group]
    return [f32(scale * code + offset) for code in codes]


@unittest.skipUnless(STORIES.is_file(), "stories260Ktok512.gguf is not in the data folder")
class SliceTest(unittest.TestCase):
    def shorthand(self, *arguments):
        return subprocess.run([SHORTHAND, "inspect", "slice", "-m", str(STORIES), "-t", "1",
                               *map(str, arguments)], capture_output=True, text=True, timeout=60)

    def slice(self, *arguments):
        done = self.shorthand(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_codes_and_errors_are_those_of_the_formula(self):
        for side in ("K", "V"):
            report = self.slice("--side", side, "--tokens", "40..63", "--channels", "0..7",
                                "--exact", 4, "--sink", 2, "--code", "u2/tok", "--code", "u2/ch")
            values = report["values"]
            self.assertEqual((len(values), len(values[0])), (24, 8))
            by_token = values[:2] + [two_bits(row) for row in values[2:20]] + values[20:]
            columns = [two_bits(column) for column in zip(*values[2:20])]
            by_channel = values[:2] + [list(row) for row in zip(*columns)] + values[20:]
            for coded, expected in zip(report["codes"], (by_token, by_channel)):
                self.assertEqual(coded["read"], expected, coded["code"])
                pairs = [(x, y) for a, b in zip(values, expected) for x, y in zip(a, b)]
                error = math.sqrt(sum((x - y) ** 2 for x, y in pairs) / sum(x * x for x, _ in pairs))
                self.assertAlmostEqual(coded["relative_error"], error, places=12)
            shapes = [(c["group_tokens"], c["group_channels"], c["scale_bits"])
                      for c in report["codes"]]
            self.assertEqual(shapes, [(1, 8, 32), (18, 1, 32)])

    def test_a_slice_of_the_whole_head_has_its_error(self):
        report = self.slice("-n", 100, "--tokens", "0..99", "--channels", "0..7", "--code", "u4/ch")
        self.assertEqual(report["captured_tokens"], 100)
        coded = report["codes"][0]
        self.assertEqual(report["dim"], 8)
        self.assertEqual(coded["relative_error"], coded["head_relative_error"])
        self.assertGreater(coded["relative_error"], 0)

    def test_a_layer_has_one_scale_for_all_heads(self):
        heads = [self.slice("-n", 100, "--head", head, "--tokens", "0..99", "--channels", "0..7",
                            "--code", "u4/page", "--code", "u4/layer") for head in range(4)]
        values = [report["values"] for report in heads]
        least = min(x for rows in values for row in rows for x in row)
        most = max(x for rows in values for row in rows for x in row)
        levels = {x for report in heads for row in report["codes"][1]["read"] for x in row}
        self.assertLessEqual(len(levels), 16)
        self.assertAlmostEqual(min(levels), least, delta=0.001 * abs(least))
        self.assertAlmostEqual(max(levels), most, delta=0.001 * most)
        for report in heads:
            page, layer = report["codes"]
            self.assertLessEqual(page["relative_error"], layer["relative_error"])
            self.assertEqual(layer["group_tokens"] * layer["group_channels"], 100 * 4 * 8)

    def test_the_table_names_codes_and_the_loudest_channel(self):
        done = self.shorthand("--tokens", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("Keys of layer 2, head 0: tokens 3..3", "Largest: channel", "u2/ch", "%"):
            self.assertIn(part, done.stdout)

    def test_what_there_is_not_is_refused(self):
        for code, part, *arguments in (
                (1, "the model has layers 0 to 4", "--layer", 5),
                (1, "KV heads 0 to 3", "--head", 4),
                (1, "there are channels 0 to 7", "--channels", "0..15"),
                (1, "there are tokens 0 to 99", "-n", 100, "--tokens", "90..100"),
                (1, "multiples of 8", "--channels", "0..3"),
                (1, "calibration", "--code", "w4/ch"),
                (1, "positions", "--code", "pre:u4/ch"),
                (2, "as in 64..87", "--tokens", "5..2"),
                (2, "as in 64..87", "--channels", "a..b"),
                (2, "not a width", "--code", "u9/ch"),
                (2, "uB alone", "--code", "i4/layer"),
                (2, "--side", "--side", "Q"),
                (1, "no file", "-f", "/none")):
            done = self.shorthand(*arguments)
            self.assertEqual((done.returncode, part in done.stderr), (code, True),
                             (arguments, done.stderr))
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    SHORTHAND = sys.argv.pop(1)
    unittest.main()
