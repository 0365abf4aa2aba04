"""`auto`, `--kv-budget` and `shorthand tune` as a user meets them."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SHORTHAND = ""
SOURCE = pathlib.Path(os.environ.get("SHORTHAND_SOURCE_DIR", "."))
DATA = pathlib.Path(os.environ.get("SHORTHAND_DATA", SOURCE / "../shared/data"))
STORIES = DATA / "models" / "stories260Ktok512.gguf"


@unittest.skipUnless(STORIES.is_file(), "stories260Ktok512.gguf is not in the data folder")
class TuneTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def shorthand(self, *arguments):
        environment = os.environ | {"XDG_CACHE_HOME": str(self.folder / "cache")}
        return subprocess.run([SHORTHAND, *map(str, arguments)], env=environment,
                              capture_output=True, text=True, timeout=120)

    def succeeds(self, *arguments):
        done = self.shorthand(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refuses(self, code, part, *arguments):
        done = self.shorthand(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(part, done.stderr)

    def calibration(self):
        """One whose text was long enough: layer 2 is far more sensitive than the others."""
        path = self.folder / "calibration.json"
        self.succeeds("calibrate", "-m", STORIES, "-o", path)
        calibration = json.loads(path.read_text(encoding="utf-8"))
        for number, layer in enumerate(calibration["layers"]):
            scale = 1000 if number == 2 else 1
            layer["k_noise"] = [noise * scale for noise in (0.016, 0.008, 0.004, 0.001)]
            layer["v_noise"] = [0.016, 0.004, 0.001]
        path.write_text(json.dumps(calibration), encoding="utf-8")
        return path

    def test_auto_becomes_a_recipe_that_is_said(self):
        path = self.calibration()
        done = self.succeeds("eval", "-m", STORIES, "-t", 1, "-c", 64, "--windows", 1, "--json",
                             "--kv", "auto:4", "--kv", "auto", "--calibration", path)
        first, second = json.loads(done.stdout)["rows"]
        self.assertEqual((first["recipe"], second["recipe"]), ("auto:4", "auto"))
        self.assertRegex(first["canonical"], r"^k=w.*,sink=4,recent=128,cal=\w+@2,k=w")
        self.assertIn("auto:4: ", done.stderr)
        self.assertIn("(layer 2)", done.stderr)
        # What was said can be given.
        said = done.stderr.splitlines()[1]
        again = self.succeeds("eval", "-m", STORIES, "-t", 1, "-c", 64, "--windows", 1, "--json",
                              "--kv", said, "--calibration", path)
        self.assertEqual(json.loads(again.stdout)["rows"][0]["canonical"], first["canonical"])

    def test_a_budget_becomes_a_recipe(self):
        run = ["run", "-m", STORIES, "-t", 1, "-p", "Once", "-n", 1, "--calibration",
               self.calibration(), "--json", "--kv-budget"]
        exact = json.loads(self.succeeds(*run, "1GiB").stdout)
        self.assertEqual(exact["cache"]["recipe"], "kv=f16")
        self.refuses(1, "the smallest recipe needs", *run, "1KiB")
        self.refuses(2, "size", *run, "much")
        self.refuses(2, "excludes", *run, "1GiB", "--kv", "4bit")

    def test_wishes_that_cannot_be_met(self):
        run = ["run", "-m", STORIES, "-p", "Once", "-n", 1, "--kv"]
        self.refuses(1, "fewer than 256 tokens", *run, "auto:4")  # the context is 128
        self.refuses(2, "2 to 8 bits", *run, "auto:1")
        self.refuses(2, "resolved to one when a model is loaded", "plan", "Llama-3-8B", "--kv",
                     "auto")

    def test_tune_writes_a_recipe_and_goes_on(self):
        recipe, book = self.folder / "tuned.recipe", self.folder / "book"
        tune = ["tune", "-m", STORIES, "-t", 1, "--bits", 3, "-c", 128, "--windows", 1, "--rounds",
                1, "--calibration", self.calibration(), "--resume", book, "-o", recipe, "--json"]
        report = json.loads(self.succeeds(*tune).stdout)
        self.assertEqual([step["step"] for step in report["steps"]],
                         ["layers alike", "as predicted", "round 1"])
        self.assertTrue(all(step["bits"] <= 3 for step in report["steps"]))
        self.assertEqual(len(report["layers"]), 10)
        self.assertEqual(recipe.read_text(encoding="utf-8"), report["recipe"] + "\n")
        self.assertEqual(json.loads(self.succeeds(*tune).stdout), report)
        table = self.succeeds(*tune[:-1]).stdout
        self.assertIn("as predicted", table)
        self.assertIn("Dearest alone", table)
        self.succeeds("inspect", "recipe", report["recipe"])

    def test_tune_within_a_memory(self):
        done = self.succeeds("tune", "-m", STORIES, "-t", 1, "-c", 128, "--windows", 1, "--rounds", 0,
                             "--calibration", self.calibration(), "--kv-budget", "4MiB",
                             "--kv-context", "4k", "--json")
        report = json.loads(done.stdout)
        self.assertEqual(report["budget"], {"allocated_bytes": 4 << 20, "tokens": 4096})
        for step in report["steps"]:
            self.assertLessEqual(step["allocated_bytes"], 4 << 20)
            self.assertGreater(step["bits"], 2)

    def test_tune_refuses(self):
        tune = ["tune", "-m", STORIES, "-c", 128, "--windows", 1]
        self.refuses(2, "--bits", *tune, "--bits", 9)
        self.refuses(2, "no file", *tune, "-f", self.folder / "none")
        self.refuses(2, "excludes", *tune, "--bits", 3, "--kv-budget", "1GiB")
        self.refuses(2, "requires", *tune, "--kv-context", "4k")
        self.refuses(2, "size", *tune, "--kv-budget", "much")
        self.refuses(1, "fewer than 256 tokens", *tune)
        self.refuses(1, "cannot be written", *tune, "-o", self.folder / "none/recipe")


if __name__ == "__main__":
    SHORTHAND = sys.argv.pop(1)
    unittest.main()
