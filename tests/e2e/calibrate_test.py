"""`shorthand calibrate`, and what uses its file: contents, refusals, the probe that is kept."""

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
class CalibrateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def shorthand(self, *arguments):
        return subprocess.run([SHORTHAND, *map(str, arguments)], capture_output=True, text=True,
                              timeout=120,
                              env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")})

    def succeeds(self, *arguments):
        done = self.shorthand(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refuses(self, code, part, *arguments):
        done = self.shorthand(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(part, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def evaluates(self, *arguments):
        return json.loads(self.succeeds("eval", "-m", STORIES, "-t", 1, "-c", 64, "--windows", 1,
                                        "--json", *arguments))["rows"]

    def test_the_file_holds_what_the_document_says(self):
        path = self.folder / "c.json"
        said = json.loads(self.succeeds("calibrate", "-m", STORIES, "-o", path, "--json"))
        calibration = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual((calibration["format"], calibration["version"]),
                         ("shorthand calibration", 3))
        self.assertEqual(calibration["source"], "built-in probe")
        self.assertEqual((calibration["tokens"], said["tokens"]), (128, 128))
        self.assertEqual([len(layer["heads"]) for layer in calibration["layers"]], [4] * 5)
        for layer in calibration["layers"]:
            self.assertEqual((layer["rope_pairs"], layer["rope_dims"]), ("adjacent", 8))
            for head in layer["heads"]:
                self.assertEqual((len(head["k_spread"]), len(head["q_rms"])), (8, 8))
                self.assertTrue(all(x > 0 for x in head["k_spread"] + head["q_rms"]))
                for keys in (head["keys"], head["keys_before_rope"]):
                    for low, high in (("min", "low"), ("low", "mean"), ("mean", "high"),
                                      ("high", "max")):
                        self.assertEqual(len(keys[low]), 8)
                        self.assertTrue(all(a <= b for a, b in zip(keys[low], keys[high])))
                self.assertGreater(head["v_max"], 0)
            for levels in (layer["k_levels"], layer["v_levels"]):
                self.assertEqual([len(of_bits) for of_bits in levels], [4, 8, 16])
            self.assertEqual((layer["k_noise"], layer["v_noise"]), ([], []))  # one page
        rows = self.evaluates("--kv", "4bit", "--calibration", path)
        self.assertTrue(rows[0]["canonical"].endswith(",cal=" + said["hash"]))

    def test_the_same_text_gives_the_same_file(self):
        paths = [self.folder / name for name in ("a", "b")]
        for threads, path in enumerate(paths, 1):
            self.succeeds("calibrate", "-m", STORIES, "-f", SOURCE / "README.md", "-n", 128, "-t",
                          threads, "-o", path)
        self.assertEqual(*(path.read_bytes() for path in paths))

    def test_the_probe_is_kept_and_used_again(self):
        first = self.evaluates("--kv", "2bit")
        probes = list((self.folder / "cache/shorthand/probes").iterdir())
        self.assertEqual(len(probes), 1)
        self.assertEqual(self.evaluates("--kv", "2bit"), first)
        probes[0].write_text("cut off", encoding="utf-8")  # is made again
        self.assertEqual(self.evaluates("--kv", "2bit"), first)
        self.assertNotEqual(probes[0].read_text(encoding="utf-8"), "cut off")

    def test_bad_input_is_refused(self):
        path = self.folder / "c.json"
        self.refuses(1, "at least 128", "calibrate", "-m", STORIES, "-n", 100, "-o", path)
        self.refuses(1, "made for 128 at most", "calibrate", "-m", STORIES, "-n", 1000, "-f",
                     SOURCE / "README.md", "-o", path)
        self.refuses(1, "no file", "calibrate", "-m", STORIES, "-f", self.folder / "none", "-o",
                     path)
        self.refuses(1, "cannot be written", "calibrate", "-m", STORIES, "-o",
                     self.folder / "none/c.json")
        self.assertFalse(path.exists())

        eval_with = ["eval", "-m", STORIES, "-c", 64, "--windows", 1, "--kv", "4bit",
                     "--calibration"]
        self.refuses(1, "no file", *eval_with, path)
        self.succeeds("calibrate", "-m", STORIES, "-o", path)
        text = path.read_text(encoding="utf-8")
        path.write_text(text[:-100], encoding="utf-8")
        self.refuses(1, "cut off", *eval_with, path)
        for version in (1, 9):
            path.write_text(text.replace('"version":3', f'"version":{version}'), encoding="utf-8")
            self.refuses(1, f"version {version}, this build reads version 3; make it anew",
                         *eval_with, path)
        shorter = json.loads(text)
        del shorter["layers"][0]
        path.write_text(json.dumps(shorter), encoding="utf-8")
        self.refuses(1, "4 layers, the model 5", *eval_with, path)

    def test_another_calibration_than_named_is_refused(self):
        done = self.shorthand("eval", "-m", STORIES, "-c", 64, "--windows", 1, "--kv",
                              "4bit,cal=0123456789abcdef")
        self.assertEqual(done.returncode, 1)
        self.assertIn("names calibration 0123456789abcdef", done.stdout)


if __name__ == "__main__":
    SHORTHAND = sys.argv.pop(1)
    unittest.main()
