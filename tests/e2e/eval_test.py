"""`shorthand eval` and `shorthand inspect model` on the command line: fields, files, exit codes."""

import csv
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

MODELS = pathlib.Path(os.environ.get("SHORTHAND_MODELS") or
                      pathlib.Path.home() / ".cache/shorthand/models")
SMOLLM2 = MODELS / "smollm2.gguf"


def shorthand(*arguments, **environment):
    return subprocess.run([SHORTHAND, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, env={**os.environ, **environment})


@unittest.skipUnless(STORIES.is_file(), "stories260Ktok512.gguf is not in the data folder")
class EvalTest(unittest.TestCase):
    def evaluates(self, *arguments):
        done = shorthand("eval", "-m", STORIES, "-t", 1, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def refuses(self, code, part, *arguments):
        """The command fails with one sentence on stderr that holds `part`."""
        done = shorthand("eval", "-m", STORIES, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(part, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_json_has_the_fixed_fields(self):
        result = json.loads(self.evaluates("-c", 128, "--windows", 2, "--kv", "f32", "--kv", "q8_0",
                                           "--json"))
        self.assertEqual(result["model"], str(STORIES))
        self.assertEqual((result["context"], result["windows"]), (128, 2))
        self.assertEqual(result["tokens"], 2 * 63)
        self.assertLess(result["floor"]["q_1e-6"], 1e-6)
        f32, q8_0 = result["rows"]
        self.assertEqual((f32["recipe"], f32["canonical"], f32["bits"]), ("f32", "kv=f32", 32))
        self.assertEqual(f32["kld_mean"], result["floor"]["f32_cache"])
        self.assertLessEqual(f32["kld_median"], f32["kld_p999"])
        self.assertLessEqual(f32["kld_p999"], f32["kld_max"])
        self.assertAlmostEqual(f32["ppl"] / f32["ppl_exact"], f32["ppl_ratio"])
        self.assertGreater(f32["top1"], 0.98)
        self.assertGreater(f32["true_bits"], 32)
        self.assertIsNone(q8_0["kld_mean"])
        self.assertIn("blocks of 32", q8_0["error"])

    def test_table_states_protocol_floor_and_failures(self):
        table = self.evaluates("-c", 64, "--windows", 1, "--kv", "8bit", "--kv", "q8_0")
        for part in ("expanded to f32", "noise floor", "31 positions", "sink", "q8_0 failed"):
            self.assertIn(part, table)

    def test_csv_has_a_row_for_each_recipe(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.csv"
            self.evaluates("-c", 64, "--windows", 1, "--kv", "f16", "--kv", "8bit", "--csv", path)
            rows = list(csv.DictReader(path.read_text().splitlines()))
        self.assertEqual([row["recipe"] for row in rows], ["f16", "8bit"])
        self.assertRegex(rows[1]["canonical"],
                         "^k=bal:had:u8/ch,v=had:i8/tok,sink=4,cal=[0-9a-f]{16}$")
        self.assertEqual(float(rows[0]["kld_max"]), 0)

    def test_several_texts_and_contexts(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, sentence in (("one", "Once upon a time there was a dog. "),
                                   ("two", "The sun was warm and Lily was happy. ")):
                paths += ["-f", pathlib.Path(folder) / name]
                paths[-1].write_text(sentence * 60)
            rows_file, markdown = pathlib.Path(folder) / "csv", pathlib.Path(folder) / "md"
            plot = pathlib.Path(folder) / "svg"
            arguments = ["-c", "64,128", "--windows", 2, "--kv", "8bit", "--kv", "q8_0"]
            short, long = json.loads(self.evaluates(
                *paths, *arguments, "--json", "--csv", rows_file, "--markdown", markdown,
                "--svg", plot))
            self.assertEqual((short["context"], short["windows"], short["tokens"]), (64, 4, 4 * 31))
            self.assertEqual((long["context"], long["windows"], long["tokens"]), (128, 4, 4 * 63))
            row = long["rows"][0]
            self.assertEqual([text["text"] for text in row["texts"]], [str(p) for p in paths[1::2]])
            self.assertEqual([text["tokens"] for text in row["texts"]], [2 * 63, 2 * 63])
            self.assertAlmostEqual(row["kld_mean"],
                                   sum(text["kld_mean"] for text in row["texts"]) / 2)
            self.assertEqual(row["kld_max"], max(text["kld_max"] for text in row["texts"]))
            # Each text alone, and each context alone, gives the same.
            for i, path in enumerate(paths[1::2]):
                alone = json.loads(self.evaluates("-f", path, "-c", 128, "--windows", 2, "--kv",
                                                  "8bit", "--json"))
                self.assertEqual(alone["rows"][0]["kld_mean"], row["texts"][i]["kld_mean"])
                self.assertEqual(alone["rows"][0]["ppl"], row["texts"][i]["ppl"])
            rows = list(csv.DictReader(rows_file.read_text().splitlines()))
            self.assertEqual([row["context"] for row in rows], ["64", "64", "128", "128"])
            self.assertNotIn("texts", rows[0])
            self.assertIn("| recipe | sink |", markdown.read_text())
            self.assertEqual(markdown.read_text().count("\n| 8bit |"), 2)
            self.assertEqual(markdown.read_text().count("q8_0 failed"), 2)
            # Too short for a sealed page: nothing is lost, so there is nothing to draw.
            self.assertTrue(plot.read_text().startswith("<svg"))
            self.assertNotIn("<circle", plot.read_text())

    def test_the_paper_protocol(self):
        text = DATA / "text" / "tinystories_sample_en.txt"
        arguments = ["-f", text, "-c", 128, "--windows", 1, "--prompt", 100, "--kv", "f16", "--kv",
                     "2bit", "--json"]
        streaming = json.loads(self.evaluates(*arguments))
        paper = json.loads(self.evaluates(*arguments, "--paper"))
        self.assertEqual((streaming["protocol"], paper["protocol"]), ("streaming", "paper"))
        self.assertEqual((paper["first_scored"], paper["tokens"]), (100, 27))
        self.assertEqual(paper["rows"][0]["kld_max"], 0)
        self.assertEqual(paper["rows"][0]["ppl"], streaming["rows"][0]["ppl"])
        self.assertIn("paper: ", self.evaluates(*arguments[:-1], "--paper"))
        self.refuses(2, "--peer or --paper", "--paper", "--peer", "q8_0")
        self.refuses(1, "leaves nothing to score", "-c", 64, "--prompt", 63)

    def test_greedy_agreement(self):
        arguments = ["-c", 64, "--windows", 2, "--kv", "f16", "--kv", "8bit", "--greedy", 40]
        with tempfile.TemporaryDirectory() as folder:
            rows_file = pathlib.Path(folder) / "csv"
            f16, _ = json.loads(self.evaluates(*arguments, "--json", "--csv", rows_file))["rows"]
            self.assertEqual((f16["greedy"], f16["greedy_mean"]), ([40, 40], 40))
            row = next(csv.DictReader(rows_file.read_text().splitlines()))
            self.assertEqual(float(row["greedy_mean"]), 40)
            self.assertNotIn("greedy", row)
        self.assertIn("of 40 behind 32", self.evaluates(*arguments))
        self.refuses(1, "97 tokens behind a prompt of 32", "-c", 64, "--greedy", 97)

    def test_needles_need_room(self):
        self.refuses(1, "8 needles do not fit into 128 tokens", "-c", 128, "--needle")
        self.refuses(2, "--depths", "--needle", "--depths", 17)

    def test_rows_of_llama_cpp(self):
        result = json.loads(self.evaluates("-c", 128, "--windows", 1, "--kv", "8bit", "--weights",
                                           "native", "--peer", "f16", "--peer", "q8_0", "--json"))
        ours, f16, q8_0 = result["rows"]
        self.assertEqual([row["program"] for row in result["rows"]],
                         ["shorthand", "llama.cpp", "llama.cpp"])
        self.assertEqual((f16["recipe"], f16["canonical"]), ("llama.cpp f16", "f16"))
        self.assertEqual((f16["kld_max"], f16["bits"], f16["true_bits"]), (0, 16, 16))
        self.assertLess(abs(f16["ppl"] / ours["ppl_exact"] - 1), 1e-3)
        self.assertIn("blocks do not divide its heads", q8_0["error"])
        self.refuses(2, "no cache type of llama.cpp", "--peer", "4bit")

    def test_the_f32_copy_for_llama_cpp_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["eval", "-m", STORIES, "-c", 64, "--windows", 1, "--kv", "8bit", "--peer",
                         "f16", "--json"]
            first, second = (shorthand(*arguments, SHORTHAND_MODELS=folder) for _ in range(2))
            copies = os.listdir(pathlib.Path(folder) / "f32")
        self.assertEqual((first.returncode, second.returncode), (0, 0), first.stderr)
        self.assertIn("writing an f32 copy", first.stderr)
        self.assertEqual(second.stderr, "")
        self.assertEqual(first.stdout, second.stdout)
        self.assertEqual(len(copies), 1)
        self.assertTrue(copies[0].startswith("stories260Ktok512-"))

    def test_an_offset_skips_tokens(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "text"
            path.write_text("Once upon a time there was a little dog. " * 40)
            self.evaluates("-f", path, "-c", 64, "--windows", 1, "--offset", 64, "--kv", "8bit")
            self.refuses(1, "behind the first 1048576", "-f", path, "-c", 64, "--offset", "1M")
        self.refuses(2, "no number of tokens", "--offset", "-1")

    def test_a_run_goes_on_where_it_stopped(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results"
            at_once = self.evaluates("-c", 128, "--windows", 2, "--kv", "8bit", "--kv", "4bit",
                                     "--json")
            self.evaluates("-c", 128, "--windows", 1, "--kv", "4bit", "--resume", path)
            resumed = self.evaluates("-c", 128, "--windows", 2, "--kv", "8bit", "--kv", "4bit",
                                     "--json", "--resume", path)
            self.assertEqual(resumed, at_once)
            self.assertEqual(os.listdir(folder), ["results"])
            self.refuses(1, "weights f32, this run has native", "--weights", "native", "-c", 64,
                         "--resume", path)
            path.write_bytes(path.read_bytes()[:-1])
            self.refuses(1, "is not a whole file", "-c", 64, "--resume", path)
        self.refuses(1, "cannot be written", "-c", 64, "--resume", "/no/such/folder/file")

    def test_texts_and_options_that_cannot_be_used(self):
        with tempfile.TemporaryDirectory() as folder:
            def text(name, data):
                path = pathlib.Path(folder) / name
                path.write_bytes(data)
                return path
            self.refuses(1, "empty", "-f", text("empty", b""), "-c", 16)
            self.refuses(1, "not valid UTF-8 at byte 4", "-f", text("bad", b"Once\xff"), "-c", 16)
            self.refuses(1, "fewer than one window", "-f", text("short", b"Once"), "-c", 16)
            self.refuses(1, "there is no file", "-f", pathlib.Path(folder) / "missing")
            self.refuses(1, "cannot be written", "--csv", pathlib.Path(folder) / "no" / "rows.csv")
        self.refuses(1, "made for 128", "-c", "4k")
        self.refuses(2, "no number of tokens", "-c", "many")
        self.refuses(2, "not a preset", "--kv", "nope")
        self.refuses(2, "not in {f32,native}", "--weights", "q8")

    def test_without_any_recipe_that_fits_it_fails(self):
        done = shorthand("eval", "-m", STORIES, "-c", 64, "--kv", "q8_0", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertIsNone(json.loads(done.stdout)["floor"]["q_1e-6"])


@unittest.skipUnless(SMOLLM2.is_file(), "smollm2 is not here; scripts/fetch-models smollm2")
class RealModelTest(unittest.TestCase):
    def test_needles_are_found_by_depth(self):
        done = shorthand("eval", "-m", SMOLLM2, "-c", 704, "--windows", 1, "--weights", "native",
                         "--kv", "kivi2", "--needle", "--depths", 2, "--json",
                         OMP_WAIT_POLICY="passive")
        self.assertEqual(done.returncode, 0, done.stderr)
        row, = json.loads(done.stdout)["rows"]
        depths = [at["depth"] for at in row["needle"]]
        self.assertEqual(len(depths), 2)
        self.assertLess(*depths)
        self.assertGreaterEqual(depths[0] * 704, 128)
        # A number that is guessed has 5 ln 10 = 11.5.
        self.assertGreater(row["needle_log_p_exact"], -6)
        self.assertLess(row["needle_log_p"], row["needle_log_p_exact"])

    def test_the_worst_layer_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            rows_file, plot = pathlib.Path(folder) / "csv", pathlib.Path(folder) / "svg"
            done = shorthand("eval", "-m", SMOLLM2, "-c", 200, "--windows", 1, "--weights", "native",
                             "--kv", "q4_0", "--kv", "f16", "--layers", "--json", "--csv", rows_file,
                             "--svg", plot, OMP_WAIT_POLICY="passive")
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = list(csv.DictReader(rows_file.read_text().splitlines()))
            drawn = plot.read_text()
        self.assertIn(">q4_0</text>", drawn)
        self.assertNotIn("f16", drawn)  # loses nothing
        q4_0, f16 = json.loads(done.stdout)["rows"]
        layers = q4_0["layers"]
        self.assertEqual(len(layers), 30)
        worst = max(range(30), key=lambda i: layers[i]["attention_kl"])
        self.assertEqual(q4_0["attention_kl_worst_layer"], worst)
        self.assertEqual(q4_0["attention_kl_worst"], layers[worst]["attention_kl"])
        self.assertAlmostEqual(q4_0["v_nsr"], sum(l["v_nsr"] for l in layers) / 30)
        self.assertLess(q4_0["logit_correlation_worst"], q4_0["logit_correlation"])
        self.assertIsNone(f16["attention_kl"])
        self.assertEqual(int(rows[0]["attention_kl_worst_layer"]), worst)
        self.assertNotIn("layers", rows[0])


@unittest.skipUnless(STORIES.is_file(), "stories260Ktok512.gguf is not in the data folder")
class InspectModelTest(unittest.TestCase):
    def test_layers_and_weights(self):
        done = shorthand("inspect", "model", STORIES, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        model = json.loads(done.stdout)
        self.assertEqual((model["architecture"], model["width"], model["vocabulary"]),
                         ("llama", 64, 512))
        layers, = model["layers"]
        self.assertEqual(layers["layers"], [0, 1, 2, 3, 4])
        self.assertEqual((layers["query_heads"], layers["kv_heads"], layers["k_dim"]), (8, 4, 8))
        self.assertIsNone(layers["window"])
        for weights in model["weights"]:
            self.assertEqual(weights["type"], "f32")
            self.assertEqual(weights["bytes"], 4 * weights["values"])

    def test_what_is_no_model(self):
        done = shorthand("inspect", "model", "nope")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no model file nope", done.stderr)


if __name__ == "__main__":
    SHORTHAND = sys.argv.pop(1)
    unittest.main()
