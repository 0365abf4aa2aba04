"""`shorthand plan` and `shorthand inspect` on the command line: figures, fields, exit codes."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SHORTHAND = ""
GIB = 2**30


def shorthand(*arguments, **environment):
    return subprocess.run(
        [SHORTHAND, *arguments], capture_output=True, text=True, timeout=120,
        env={**os.environ, **environment})


class CommandTest(unittest.TestCase):
    def succeeds(self, *arguments):
        done = shorthand(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def json_of(self, *arguments):
        return json.loads(self.succeeds(*arguments, "--json"))

    def refuses(self, code, part, *arguments):
        """The command fails with one sentence on stderr that holds `part`."""
        done = shorthand(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(part, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done


class PlanTest(CommandTest):
    def test_the_seeds_table(self):
        plan = self.json_of("plan", "Llama-3-8B", "-c", "32k", "--users", "8", "--memory", "24GB")
        self.assertEqual(plan["model"]["kv_bytes_per_token_f16"], 128 * 1024)
        self.assertEqual((plan["context"], plan["users"]), (32768, 8))
        self.assertEqual(plan["memory_bytes"], 24 * 10**9)
        self.assertAlmostEqual(plan["weights_bytes"] / GIB, 4.2, delta=0.05)
        rows = {row["recipe"]: row for row in plan["recipes"]}
        self.assertEqual(list(rows), ["f16", "fp8_e4m3", "q8_0", "q4_0", "kivi4", "8bit", "4bit",
                                      "3bit", "2bit"])
        self.assertEqual(rows["f16"]["kv_bytes"], 32 * GIB)
        self.assertFalse(rows["f16"]["fits"])
        self.assertEqual(rows["fp8_e4m3"]["kv_bytes"], 16 * GIB)
        self.assertTrue(rows["fp8_e4m3"]["fits"])
        # 4 bits and a scale of 16 bits for 32 values.
        self.assertEqual(rows["q4_0"]["kv_bytes"], 9 * GIB)
        for row in rows.values():
            self.assertIsNone(row["error"])
            self.assertEqual(row["total_bytes"], plan["weights_bytes"] + row["allocated_bytes"])
            self.assertEqual(row["spare_bytes"], plan["memory_bytes"] - row["total_bytes"])
            self.assertGreaterEqual(row["allocated_bytes"], row["kv_bytes"])
            self.assertEqual(row["fits"], row["max_context"] >= plan["context"])
            self.assertEqual(row["fits"], row["max_users"] >= plan["users"])

    def test_fields_are_as_fixed(self):
        plan = self.json_of("plan", "smollm2", "-c", "1000", "--kv", "kv=q8_0")
        self.assertLessEqual(
            {"model", "context", "users", "memory_bytes", "weights_bytes", "recipes"}, set(plan))
        self.assertLessEqual({"name", "layers", "kv_heads", "kv_bytes_per_token_f16"},
                             set(plan["model"]))
        (row,) = plan["recipes"]
        self.assertLessEqual(
            {"recipe", "canonical", "bits", "true_bits", "kv_bytes_per_token", "kv_bytes",
             "allocated_bytes", "total_bytes", "fits", "spare_bytes", "max_context", "max_users"},
            set(row))
        self.assertEqual(row["bits"], 8.5)
        for field in ("fits", "spare_bytes", "max_context", "max_users"):
            self.assertIsNone(row[field])
        self.assertIsNone(plan["memory_bytes"])

    def test_sentences(self):
        one = self.succeeds("plan", "Llama-3-8B", "-c", "32k", "--memory", "24GB", "--kv", "f16")
        self.assertIn("4x fewer KV heads than query heads: the cache would be 4.0x larger", one)
        self.assertIn("128 KiB", one)
        self.assertIn("8.2 GiB", one)
        self.assertIn("24 GB = 22.4 GiB", one)
        self.assertIn("fits, with 14.1 GiB to spare", one)
        self.assertNotIn("\033", one)
        eight = self.succeeds("plan", "Llama-3-8B", "-c", "32k", "--users", "8", "--memory",
                              "24GB", "--kv", "f16")
        self.assertRegex(eight, r"does not fit: \d+\.\d GiB too much")

    def test_unknown_weights_are_null_with_a_reason(self):
        config = {"model_type": "mimo", "num_hidden_layers": 2, "num_attention_heads": 4,
                  "num_key_value_heads": 2, "hidden_size": 256}
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "config.json").write_text(json.dumps(config))
            plan = self.json_of("plan", folder, "-c", "128", "--memory", "1GiB", "--kv", "f16")
        self.assertIsNone(plan["weights_bytes"])
        self.assertIn("mimo", plan["weights_reason"])
        self.assertEqual(plan["recipes"][0]["kv_bytes"], 128 * 2 * 2 * 128 * 2)
        self.assertIsNone(plan["recipes"][0]["fits"])

    def test_one_recipe_may_fail_alone(self):
        config = {"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 2,
                  "head_dim": 80}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "odd.json")
            path.write_text(json.dumps(config))
            rows = self.json_of("plan", str(path), "-c", "1k", "--kv", "q4_0", "--kv", "f16")[
                "recipes"]
            self.assertIn("80", rows[0]["error"])
            self.assertIsNone(rows[0]["kv_bytes"])
            self.assertEqual(rows[1]["kv_bytes"], 1024 * 2 * 160 * 2)
            self.refuses(1, "none of the recipes", "plan", str(path), "--kv", "q4_0")

    def test_refusals(self):
        self.refuses(1, "did you mean Llama-3-8B", "plan", "Lama-3-8B")
        self.refuses(1, "there is no file", "plan", "absent/config.json")
        self.refuses(2, "32k is 32768", "plan", "Llama-3-8B", "-c", "many")
        self.refuses(2, "powers of 1024", "plan", "Llama-3-8B", "--memory", "24G")
        self.refuses(2, "--users", "plan", "Llama-3-8B", "--users", "0")
        self.refuses(2, "--users", "plan", "Llama-3-8B", "--users", "x")
        self.refuses(2, "at byte", "plan", "Llama-3-8B", "--kv", "kv=q9")
        self.refuses(2, "--weight-bits", "plan", "Llama-3-8B", "--weight-bits", "-1")
        self.refuses(2, "MODEL", "plan")
        self.refuses(2, "--bogus", "plan", "Llama-3-8B", "--bogus")

    def test_damaged_files(self):
        config = json.dumps({"model_type": "llama", "num_hidden_layers": 2,
                             "num_attention_heads": 4, "hidden_size": 256})
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "damaged.json")
            for content in (b"", b"{", config[:-1].encode(), b"\xff\xfe\x00", b"[" * 100000):
                path.write_bytes(content)
                self.refuses(1, "damaged: ", "plan", str(path))
            path.write_bytes(b"GGUF")
            self.refuses(1, "damaged.json", "plan", str(path))


class InspectTest(CommandTest):
    def test_cpu(self):
        cpu = self.json_of("inspect", "cpu")
        self.assertIn(cpu["target"], [t["name"] for t in cpu["targets"] if t["supported"]])
        self.assertIn(cpu["target"], self.succeeds("inspect", "cpu"))
        forced = shorthand("inspect", "cpu", "--json", SHORTHAND_TARGET="scalar")
        self.assertEqual(json.loads(forced.stdout)["target"], "scalar")
        unknown = shorthand("inspect", "cpu", SHORTHAND_TARGET="abacus")
        self.assertEqual(unknown.returncode, 1)
        self.assertIn("abacus", unknown.stderr)

    def test_recipe(self):
        # docs/recipes.md: 32 tokens of a channel, 32 channels of a token share 16 + 16 bits.
        kivi = self.json_of("inspect", "recipe", "kivi4", "--dim", "128")
        page = kivi["page"]
        self.assertEqual([page[key] for key in ("k_meta_bytes", "k_codes_bytes", "v_meta_bytes",
                                                "v_codes_bytes", "descriptor_bytes", "bytes")],
                         [2048, 8192, 2048, 8192, 64, 20544])
        self.assertEqual(kivi["bits"], 5.0)
        self.assertTrue(kivi["supported"])
        self.assertEqual(kivi["canonical"], "k=u4/ch32,v=u4/tok32,recent=128")
        self.assertIn("8192", self.succeeds("inspect", "recipe", "kivi4"))

    def test_refusals(self):
        self.refuses(1, "80", "inspect", "recipe", "q4_0", "--dim", "80")
        self.refuses(2, "at byte", "inspect", "recipe", "kv=")
        self.refuses(2, "--dim", "inspect", "recipe", "f16", "--dim", "0")
        self.refuses(2, "a command is missing", "inspect")


class FrameTest(CommandTest):
    def test_help_and_version(self):
        self.assertIn("Examples:", self.succeeds())
        top = self.succeeds("--help")
        self.assertIn("Examples:", top)
        commands = top[top.index("Subcommands:"):top.index("Examples:")].strip().splitlines()[1:]
        self.assertTrue(all(re.match(r"  [a-z]+ +[A-Z].*\S$", line) for line in commands), commands)
        self.assertIn("24GB", self.succeeds("plan", "--help"))
        self.assertIn("kivi2", self.succeeds("inspect", "recipe", "--help"))
        self.assertRegex(self.succeeds("--version"), r"^shorthand \d+\.\d+\.\d+\n$")
        self.refuses(2, 'no command "dance"', "dance")

    def test_output_that_cannot_be_written(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        with open("/dev/full", "w") as full:
            done = subprocess.run([SHORTHAND, "plan", "Llama-3-8B"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(done.returncode, 1)
        self.assertIn("output", done.stderr)


if __name__ == "__main__":
    SHORTHAND = sys.argv.pop(1)
    unittest.main()
