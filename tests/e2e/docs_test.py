"""The documents hold: links lead somewhere, quoted code is the code, shown output is the output."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("SHORTHAND_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
SHORTHAND = ""

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SOURCE_PATH = re.compile(
    r"`((?:src|include|docs|scripts|tests|tools|examples|bench|fuzz|cmake)/[\w./-]+)`")
# A row of README's first table: recipe, bits, cache, with weights, fits, most users.
SIZES = re.compile(
    r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) GiB \| ([\d.]+) GiB \| (.*) \| (\d+) \|$", re.MULTILINE)
# Output of these depends on nothing but the command line.
REPEATABLE = ("shorthand plan ", "shorthand inspect recipe ")
# Files that the guides make up.
EXAMPLES = {
    "src/quant/codec_odd.cc", "docs/formats/odd.md", "src/kernels/abs_max-inl.h",
    "src/kernels/abs_max_test.cc", "src/simd/ops_neon.h", "src/kernels/targets/neon.cc",
}


def documents():
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")])


def anchors(document):
    """Names of its headings as links write them."""
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
            for heading in headings}


class LinksTest(unittest.TestCase):
    def test_relative_links_lead_somewhere(self):
        for document in documents():
            for link in LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8"))):
                if re.match(r"[a-z]+:", link):
                    continue
                with self.subTest(document=str(document.relative_to(ROOT)), link=link):
                    path, _, anchor = link.partition("#")
                    target = document.parent / path if path else document
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target))

    def test_paths_in_code_font_exist(self):
        for document in documents():
            for path in SOURCE_PATH.findall(document.read_text(encoding="utf-8")):
                with self.subTest(document=str(document.relative_to(ROOT)), path=path):
                    names = (path, path + ".cc")  # programs are named after their source
                    self.assertTrue(path in EXAMPLES or any((ROOT / n).exists() for n in names))


class ReadmeTest(unittest.TestCase):
    def test_the_example_is_the_one_that_is_tested(self):
        blocks = FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
        examples = [code for language, code in blocks if language == "cpp"]
        self.assertIn((ROOT / "examples/cache.cc").read_text(encoding="utf-8"), examples)
        self.assertTrue(all(code.count("\n") <= 40 for code in examples))

    def test_the_table_of_sizes_is_what_plan_computes(self):
        rows = SIZES.findall((ROOT / "README.md").read_text(encoding="utf-8"))
        self.assertEqual(len(rows), 5)
        recipes = [argument for row in rows for argument in ("--kv", row[0])]
        done = subprocess.run(
            [SHORTHAND, "plan", "Llama-3-8B", "-c", "32k", "--users", "8", "--memory", "24GB",
             "--json", *recipes], capture_output=True, text=True, timeout=60)
        for row, planned in zip(rows, json.loads(done.stdout)["recipes"]):
            with self.subTest(recipe=row[0]):
                gib = 2**30
                self.assertEqual(row[1], f"{planned['bits']:.2f}".rstrip("0").rstrip("."))
                self.assertEqual(row[2], f"{planned['kv_bytes'] / gib:.1f}")
                self.assertEqual(row[3], f"{planned['total_bytes'] / gib:.1f}")
                self.assertIn(f"{abs(planned['spare_bytes']) / gib:.1f} GiB", row[4])
                self.assertEqual(row[4].startswith("no"), not planned["fits"])
                self.assertEqual(int(row[5]), planned["max_users"])


class OutputTest(unittest.TestCase):
    def test_shown_output_is_what_the_command_prints(self):
        shown = 0
        for document in documents():
            for _, block in FENCE.findall(document.read_text(encoding="utf-8")):
                command, _, expected = block.partition("\n")
                if not command.startswith(tuple("$ " + c for c in REPEATABLE)):
                    continue
                shown += 1
                with self.subTest(document=str(document.relative_to(ROOT)), command=command):
                    done = subprocess.run(
                        [SHORTHAND, *shlex.split(command)[2:]], capture_output=True, text=True,
                        timeout=60)
                    self.assertEqual(done.stdout, expected)
        self.assertGreaterEqual(shown, 3)


if __name__ == "__main__":
    SHORTHAND = sys.argv.pop(1)
    unittest.main()
