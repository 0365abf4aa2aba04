"""`shorthand bench` on the command line: fields, figures that must agree, exit codes."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

SHORTHAND = ""
TINY = ("--shape", "64,2,1", "--length", "512", "--threads", "1", "--rounds", "1")
ATTENTION_FIELDS = ["recipe", "d", "rows", "kv_heads", "length", "threads", "ns_per_token_head",
                    "gb_s", "stream_fraction", "peer", "peer_ns_per_token_head", "ratio",
                    "rel_error"]
MODEL_FIELDS = ["engine", "recipe", "depth", "prefill_tokens_per_s", "decode_ms_per_token"]


def shorthand(*arguments):
    return subprocess.run([SHORTHAND, *arguments], capture_output=True, text=True, timeout=240)


def tiny_model():
    data = os.environ.get("SHORTHAND_DATA") or pathlib.Path(
        os.environ.get("SHORTHAND_SOURCE_DIR", "."), "..", "shared", "data")
    models = sorted(pathlib.Path(data, "models").glob("*260[kK]*.gguf"))
    return models[0] if models else None


class BenchCase(unittest.TestCase):
    def succeeds(self, *arguments):
        done = shorthand("bench", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in done.stderr.splitlines():  # nothing but the warning
            self.assertIn("this machine is busy", line)
        return done.stdout

    def refuses(self, code, part, *arguments):
        done = shorthand("bench", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(part, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class AttentionTest(BenchCase):
    def test_fields_and_figures(self):
        report = json.loads(self.succeeds(
            "attention", *TINY, "--kv", "f16", "--kv", "kv=q8_0", "--kv", "k=u4/ch,v=had:lm4/tok",
            "--json"))
        self.assertEqual(list(report)[:2], ["stream_read_gb_s", "rows"])
        self.assertGreater(report["stream_read_gb_s"], 0)
        self.assertEqual([row["peer"] for row in report["rows"]], ["f16", "q8_0", "q4_0"])
        for row in report["rows"]:
            self.assertEqual(list(row)[:len(ATTENTION_FIELDS)], ATTENTION_FIELDS)
            self.assertIsNone(row["error"])
            self.assertEqual((row["d"], row["rows"], row["kv_heads"], row["length"],
                              row["threads"]), (64, 2, 1, 512, 1))
            self.assertAlmostEqual(
                row["ratio"], row["peer_ns_per_token_head"] / row["ns_per_token_head"], places=6)
            self.assertAlmostEqual(row["stream_fraction"],
                                   row["gb_s"] / report["stream_read_gb_s"], places=6)
        exact, eight, four = report["rows"]
        # Two f16 numbers a channel.
        self.assertAlmostEqual(exact["gb_s"] * exact["ns_per_token_head"], 64 * 2 * 2, delta=0.01)
        self.assertLess(exact["rel_error"], 1e-5)
        self.assertLess(eight["rel_error"], 0.01)
        self.assertLess(four["rel_error"], 0.05)
        self.assertEqual((exact["k_path"], exact["v_path"]), ("exact", "exact"))

    def test_resident_is_one_layer(self):
        report = json.loads(self.succeeds("attention", *TINY, "--kv", "f16", "--resident",
                                          "--json"))
        (row,) = report["rows"]
        self.assertEqual((row["layers"], row["bytes"]), (1, 512 * 64 * 2 * 2))

    def test_a_stretch_of_a_prompt(self):
        report = json.loads(self.succeeds("attention", *TINY, "--kv", "k=u4/ch,v=u4/tok",
                                          "--queries", "40", "--resident", "--json"))
        (row,) = report["rows"]
        self.assertEqual(row["queries"], 40)
        # Per query: the bytes are read once for all of them.
        self.assertAlmostEqual(row["bytes"] / (512 * 40), row["gb_s"] * row["ns_per_token_head"],
                               places=2)
        self.assertGreater(row["ratio"], 0)
        self.refuses(2, "--queries", "attention", "--queries", "0")

    def test_table_and_files(self):
        with tempfile.TemporaryDirectory() as folder:
            csv, svg = pathlib.Path(folder, "a.csv"), pathlib.Path(folder, "a.svg")
            table = self.succeeds("attention", *TINY, "--kv", "f16", "--csv", str(csv), "--svg",
                                  str(svg))
            lines = csv.read_text().splitlines()
            xml.parse(svg)
        self.assertIn("streaming read", table)
        self.assertIn("head dim 64, 2 rows a KV head, 1 KV head, 512 tokens, 1 thread", table)
        self.assertEqual(lines[0].split(",")[:len(ATTENTION_FIELDS)], ATTENTION_FIELDS)
        self.assertEqual(lines[1].split(",")[0], '"f16"')
        self.assertEqual(len(lines), 2)

    def test_a_dim_that_the_peer_has_not(self):
        report = json.loads(self.succeeds(
            "attention", "--shape", "80,1,1", "--length", "200", "--rounds", "1", "--kv",
            "k=u4/ch,v=u4/tok", "--json"))
        (row,) = report["rows"]
        self.assertGreater(row["ns_per_token_head"], 0)
        self.assertIsNone(row["ratio"])

    def test_a_recipe_that_does_not_fit(self):
        arguments = ("attention", "--shape", "48,1,1", "--length", "200", "--rounds", "1",
                     "--json")
        report = json.loads(self.succeeds(*arguments, "--kv", "f16", "--kv", "kv=q4_0"))
        self.assertIsNone(report["rows"][0]["error"])
        self.assertIn("48", report["rows"][1]["error"])
        self.assertIsNone(report["rows"][1]["ns_per_token_head"])

    def test_what_is_refused(self):
        for shape in ("128", "128,4", "128,4,8,1", "0,4,8", "128,-1,8", "128,4,x", "", "9999,1,1"):
            self.refuses(2, "D,ROWS,KV_HEADS", "attention", f"--shape={shape}")
        self.refuses(2, "0", "attention", "--length", "0")
        self.refuses(2, "--threads", "attention", "--threads", "0")
        self.refuses(2, "", "attention", "--kv", "5000bit")
        self.refuses(2, "/nowhere/a.csv", "attention", "--csv", "/nowhere/a.csv")


class ModelTest(BenchCase):
    def test_fields(self):
        model = tiny_model()
        if model is None:
            self.skipTest("the tiny model of the test data is absent")
        report = json.loads(self.succeeds(
            "model", "-m", str(model), "--depth", "0,64", "--kv", "f16", "--peer", "f16",
            "--threads", "1", "--rounds", "1", "--steps", "2", "--prompt", "8", "--json"))
        self.assertEqual(list(report)[:3], ["model", "threads", "rows"])
        self.assertEqual([(row["engine"], row["recipe"], row["depth"]) for row in report["rows"]],
                         [(engine, "f16", depth) for engine in ("shorthand", "llama.cpp")
                          for depth in (0, 64)])
        for row in report["rows"]:
            self.assertEqual(list(row), MODEL_FIELDS)
            self.assertGreater(row["prefill_tokens_per_s"], 0)
            self.assertGreater(row["decode_ms_per_token"], 0)

    def test_what_is_refused(self):
        self.refuses(2, "depth", "model", "-m", "x.gguf", "--depth", "")
        self.refuses(2, "-5", "model", "-m", "x.gguf", "--depth=-5")
        self.refuses(1, "x.gguf", "model", "-m", "x.gguf")
        self.refuses(2, "--model", "model")
        model = tiny_model()
        if model is not None:
            self.refuses(1, "this model was made for", "model", "-m", str(model), "--depth", "1M")


if __name__ == "__main__":
    SHORTHAND = sys.argv.pop(1)
    unittest.main()
