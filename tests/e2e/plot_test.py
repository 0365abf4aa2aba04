"""`shorthand plot`: pictures that other programs can read and whose figures are the command's own."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SHORTHAND = ""
SOURCE = pathlib.Path(os.environ.get("SHORTHAND_SOURCE_DIR", "."))
DATA = pathlib.Path(os.environ.get("SHORTHAND_DATA", SOURCE / "../shared/data"))
STORIES = DATA / "models" / "stories260Ktok512.gguf"
SVG = "{http://www.w3.org/2000/svg}"


class PlotTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "picture.svg"

    def shorthand(self, *arguments):
        return subprocess.run([SHORTHAND, *map(str, arguments)], capture_output=True, text=True,
                              timeout=60)

    def report(self, *arguments):
        done = self.shorthand(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def picture(self, *arguments):
        """The picture's texts and the sizes of its rectangles by colour."""
        done = self.shorthand("plot", *arguments, "-o", self.file)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        root = xml.etree.ElementTree.parse(self.file).getroot()
        width = float(root.get("width"))
        rectangles = {}
        for rectangle in root.iter(SVG + "rect"):
            if rectangle.get("x") is None:
                continue  # the sheet
            self.assertLessEqual(float(rectangle.get("x")) + float(rectangle.get("width")), width)
            rectangles.setdefault(rectangle.get("fill"), []).append(float(rectangle.get("width")))
        return [text.text for text in root.iter(SVG + "text")], rectangles

    def test_memory_is_the_plan(self):
        plan = ["Llama-3-8B", "-c", "32k", "--users", 8, "--memory", "24GB", "--kv", "f16", "--kv",
                "fp8_e4m3", "--kv", "4bit"]
        texts, rectangles = self.picture("memory", *plan)
        self.assertIn("8 users with 32k tokens each; f16 takes 128 KiB a token; weights 4.2 GiB",
                      texts)
        self.assertIn("24 GB", texts)
        report = self.report("plan", *plan)
        weights, budget = rectangles["#b0b0b0"][0], report["memory_bytes"]
        too_much, fits = rectangles["#ff725c"], rectangles["#4269d0"]
        self.assertEqual((len(too_much), len(fits)), (1, 3), "two bars and the legend")
        for row, length in zip(report["recipes"], too_much + fits):
            self.assertAlmostEqual(length / weights, row["allocated_bytes"] / report["weights_bytes"],
                                   delta=0.01)
            spare = budget - report["weights_bytes"] - row["allocated_bytes"]
            verdict = f"fits, {spare / 2**30:.1f} GiB to spare" if spare > 0 else \
                f"{-spare / 2**30:.1f} GiB too much"
            self.assertIn(verdict, texts)

    @unittest.skipUnless(STORIES.is_file(), "stories260Ktok512.gguf is not in the data folder")
    def test_slices_have_the_errors_of_inspect(self):
        options = ["-m", STORIES, "-t", 1, "--tokens", "8..23", "--channels", "0..7", "--exact", 3]
        for side in ("K", "V"):
            report = self.report("inspect", "slice", *options, "--side", side)
            for picture in ("slice", "grouping"):
                codes = sum((["--code", coded["code"]] for coded in report["codes"]), [])
                texts, _ = self.picture(picture, *options, "--side", side, *codes)
                everything = "\n".join(texts)
                for coded in report["codes"]:
                    self.assertIn(coded["code"], everything)
                    self.assertIn(f"{100 * coded['relative_error']:.1f} %", everything)
                    self.assertIn(f"{100 * coded['head_relative_error']:.1f} %", everything)

    @unittest.skipUnless(STORIES.is_file(), "stories260Ktok512.gguf is not in the data folder")
    def test_groupings_say_what_shares_a_scale(self):
        texts, _ = self.picture("grouping", "-m", STORIES, "-t", 1, "--code", "u4/tok", "--code",
                                "u4/ch", "--tokens", "0..15")
        self.assertIn("8 numbers share the scale of the largest", texts)
        self.assertIn("scale and offset: 4 bits for each number", texts)
        self.assertIn("16 numbers share the scale of the largest", texts)
        self.assertIn("scale and offset: 2 bits for each number", texts)

    def test_results_become_charts(self):
        folder = self.file.parent
        kl = folder / "kl.json"
        rows = [{"recipe": name, "program": program, "bits": bits, "kld_mean": value}
                for name, program, bits, value in (
                    ("4bit", "shorthand", 4.25, 0.001), ("8bit", "shorthand", 8.25, 1e-5),
                    ("kivi2,sink=4", "shorthand", 3, 0.1), ("f16", "shorthand", 16, 0),
                    ("q9", "shorthand", None, None), ("llama.cpp q4_0", "llama.cpp", 4.5, 0.02))]
        kl.write_text(json.dumps({"model": "small", "tokens": 77, "rows": rows}), encoding="utf-8")
        texts, _ = self.picture("pareto", kl)
        self.assertIn("small: what storing keys and values costs", texts)
        self.assertIn("Mean KL from the exact cache, nats; 77 positions", texts)
        for name in ("4bit", "8bit", "kivi2", "llama.cpp q4_0"):
            self.assertIn(name, texts)
        self.assertNotIn("f16", texts, "nothing lost has no place on a scale of powers of ten")
        self.assertNotIn("q9", texts)

        other = folder / "other.json"
        other.write_text(json.dumps([{"model": "large", "tokens": 3, "rows": rows[:1]}]))
        texts, _ = self.picture("pareto", kl, other)
        self.assertIn("small 4bit", texts)
        self.assertIn("large 4bit", texts)
        self.assertIn("Mean KL from the exact cache, nats; 80 positions", texts)

        speed = folder / "speed.json"
        rows = [{"engine": "shorthand", "recipe": recipe, "depth": depth,
                 "decode_ms_per_token": 1 + depth / 1000}
                for recipe in ("f16", "4bit") for depth in (0, 2048)]
        speed.write_text(json.dumps({"model": "small", "threads": 2, "rows": rows}))
        texts, _ = self.picture("speed", speed)
        self.assertIn("small: ms of one generated token, 2 threads", texts)
        self.assertIn("shorthand 4bit", texts)

        self.file.unlink()
        broken = folder / "broken.json"
        for text, part in (("{", "is not JSON"), ("{}", "a model and rows"), ("[3]", "a model and rows"),
                           ('{"model": "m", "rows": [{"recipe": 3}]}', "a model and rows")):
            broken.write_text(text)
            for chart in ("pareto", "speed"):
                done = self.shorthand("plot", chart, kl if chart == "pareto" else speed, broken,
                                      "-o", self.file)
                self.assertEqual((done.returncode, part in done.stderr), (1, True), done.stderr)
                self.assertIn("broken.json", done.stderr)
                self.assertFalse(self.file.exists())
        done = self.shorthand("plot", "speed", kl, "-o", self.file)
        self.assertEqual((done.returncode, "no results of the kind" in done.stderr), (1, True))

    def test_nothing_is_written_where_something_is_wrong(self):
        for code, part, *arguments in (
                (2, "--out is required", "memory", "Llama-3-8B"),
                (1, "cannot be written", "memory", "Llama-3-8B", "-o", self.file / "none"),
                (2, "users", "memory", "Llama-3-8B", "--users", 0, "-o", self.file),
                (1, "no-model", "slice", "-m", "no-model", "-o", self.file),
                (2, "not a width", "slice", "-m", "x", "--code", "u9/ch", "-o", self.file)):
            done = self.shorthand("plot", *arguments)
            self.assertEqual((done.returncode, part in done.stderr), (code, True),
                             (arguments, done.stderr))
            self.assertFalse(self.file.exists())


if __name__ == "__main__":
    SHORTHAND = sys.argv.pop(1)
    unittest.main()
