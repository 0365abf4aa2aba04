"""The page of `shorthand explore` in a real browser: every figure is compared with what the command says."""

import json
import statistics
import unittest

import controls
from browser import FOLDER, MODEL, BrowserTest, end, report, start

VIEWS = ("memory", "grouping", "slice", "recipes")
ALL = "grouping?rows=all"
SYNTHETIC = "slice?source=synthetic&token=64&channel=0&exact=4"
PLACES = {view: view for view in VIEWS} | {"grouping-all": ALL, "slice-synthetic": SYNTHETIC}
MOST_SLICE_MS = 50
MOST_LONG_HEAD_MS = 200
MOST_PAINT_MS = 1000


class PageTest(BrowserTest):
    @classmethod
    def setUpClass(cls):
        cls.results = report("eval", "-m", MODEL, "-c", 512, "--windows", 1, "--kv", "8bit", "--kv",
                             "4bit", "--kv", "kivi2", "--kv", "q4_0")
        kl, speed = FOLDER / "kl.json", FOLDER / "speed.json"
        kl.write_text(json.dumps(cls.results), encoding="utf-8")
        times = [{"engine": "shorthand", "recipe": "4bit", "depth": depth,
                  "decode_ms_per_token": 20 + depth / 1000} for depth in (0, 2048, 8192)]
        speed.write_text(json.dumps({"model": "made up", "threads": 1, "rows": times}))
        cls.arguments = ("--results", kl, "--results", speed)
        super().setUpClass()

    def test_the_seeds_settings_show_the_seeds_figures(self):
        page = self.open("memory")
        self.assertEqual(self.text("#kv-per-token"), "128 KiB")
        self.assertEqual(self.text("#weights"), "4.2 GiB")
        self.assertEqual(self.text("#weights-16"), "15.0 GiB")
        self.assertEqual(self.text("#memory-table tbody tr:first-child").split("\t")[3:],
                         ["4.0 GiB", "8.2 GiB"])
        self.assertEqual(self.text("#bars li:first-child p"), "Fits, with 14.1 GiB to spare.")
        users = page.locator("[name=users]")
        users.focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        self.settle()
        plan = report("plan", "Llama-3-8B", "-c", "32k", "--users", 8, "--memory", "24GB", "--kv",
                      "f16")["recipes"][0]
        verdict = self.text("#bars li:first-child p")
        self.assertIn(f"{-plan['spare_bytes'] / 2**30:.1f} GiB too much", verdict)
        self.assertIn(f"with at most {plan['max_context']} tokens each", verdict)
        self.assertIn(f"{plan['max_users']} users", verdict)
        page.reload()
        self.settle()
        self.assertEqual(self.text("#users-text"), "8")
        self.assertEqual(self.text("#bars li:first-child p"), verdict)
        self.assertEqual(self.faults, [])

    def slice_of(self, *arguments):
        return report("inspect", "slice", "-m", MODEL, *arguments)

    def error_text(self, coded):
        return (f"Relative error {100 * coded['relative_error']:.1f} %, whole head "
                f"{100 * coded['head_relative_error']:.1f} %.")

    def test_slices_have_the_errors_of_the_command(self):
        page = self.open("slice?layer=12&head=0&channel=16&token=96")
        place = ["--layer", 12, "--head", 0, "--tokens", "96..119", "--channels", "16..31"]
        for code, text in zip(self.slice_of(*place)["codes"], ("#a-text", "#b-text")):
            self.assertEqual(self.text(text), self.error_text(code))
        page.check("[name=a_had]")
        page.check("[name=a_mu]")
        page.select_option("[name=a_levels]", "lm")
        page.select_option("[name=a_bits]", "4")
        page.check("[name=side][value=V]")
        page.select_option("[name=b_group]", "tok32")
        page.select_option("[name=b_bits]", "3")
        for _ in range(4):
            page.locator("[name=exact]").press("ArrowRight")
        page.locator("[name=sink]").press("ArrowRight")
        self.settle()
        first = int(self.text("#channel-text"))
        expected = self.slice_of("--layer", 12, "--head", 0, "--side", "V", "--tokens", "96..119",
                                 "--channels", f"{first}..{first + 31}", "--exact", 4, "--sink", 1,
                                 "--code", "had:lm4/tok", "--code", "u3/tok32")
        for code, text in zip(expected["codes"], ("#a-text", "#b-text")):
            self.assertEqual(self.text(text), self.error_text(code))
        self.assertEqual(self.faults, [])

    def test_groups_follow_pointer_and_caret(self):
        page = self.open("grouping?layer=12&head=0&grouping=tok")
        self.assertIn("the largest", self.text("#caret-text"))
        self.assertEqual(self.text("#shared"), "64")
        page.check("[name=grouping][value=ch]")
        self.settle()
        self.assertEqual(self.text("#shared"), "16")
        before = self.text("#caret-text")
        page.locator("#group-map canvas").focus()
        page.keyboard.press("Home")
        self.assertRegex(self.text("#caret-text"), r"channel 0 is .*tokens 64 to 79, channel 0\.")
        page.keyboard.press("Escape")
        self.assertEqual(self.text("#caret-text"), before)
        self.assertEqual(self.faults, [])

    def test_groupings_have_the_figures_of_the_command(self):
        page = self.open("grouping?layer=12&head=0")
        groupings = page.locator("[name=grouping]").evaluate_all("(all) => all.map((of) => of.value)")
        self.assertLessEqual({"tok", "ch", "tok32", "page", "layer"}, set(groupings))
        for rows, place in (("16", "64..79"), ("all", "0..1023")):
            page.select_option("[name=rows]", rows)
            codes = sum((["--code", f"u4/{by}"] for by in groupings), [])
            report = self.slice_of("--layer", 12, "--head", 0, "--tokens", place, "--channels",
                                   "0..63", *codes)
            for by, coded in zip(groupings, report["codes"]):
                page.check(f"[name=grouping][value={by}]")
                self.settle()
                bits = coded["scale_bits"] / coded["head_group"]
                shown = {"#shared-in-head": f"{coded['head_group']:,}",
                         "#head-scales": f"{coded['head_scales']:,}",
                         "#scale-bits": f"{round(bits, 3):g}",
                         "#grouping-error": f"{100 * coded['relative_error']:.1f} %",
                         "#grouping-head-error": f"{100 * coded['head_relative_error']:.1f} %"}
                self.assertEqual({place: self.text(place) for place in shown}, shown, by)
                down, across = coded["scales_4096"]
                self.assertIn(f"has {down * across:,} scale", self.text("#layer-scales"))
        self.assertEqual(self.faults, [])

    def test_all_of_a_head_has_caret_and_pointer(self):
        page = self.open(f"{ALL}&layer=12&head=0&grouping=ch")
        canvas = page.locator("#group-map canvas")
        size = canvas.bounding_box()
        self.assertGreaterEqual(size["height"], 1024)
        self.assertGreaterEqual(size["width"], 64)
        canvas.focus()
        page.keyboard.press("PageDown")
        page.keyboard.press("End")
        self.assertRegex(self.text("#caret-text"), r"token 1023, channel 63 is .*tokens 896 to 1023")
        caret, box = (page.locator(of).bounding_box() for of in (".caret", ".scroller"))
        self.assertLessEqual(caret["y"], box["y"] + box["height"], "the picture follows the caret")
        page.locator(".scroller").evaluate("(of) => of.scrollTo(0, 0)")
        page.mouse.move(box["x"] + 10, box["y"] + 20)
        self.assertRegex(self.text("#caret-text"), r"channel [01] is .*tokens 0 to 127")
        self.assertEqual(self.faults, [])

    def test_buttons_set_the_contrast_of_keys_and_values(self):
        page = self.open("slice?layer=12&head=0&a_bits=8&b_had=1")
        for name, side in (("The model’s keys", "K"), ("The model’s values", "V")):
            page.get_by_role("button", name=name).click()
            self.settle()
            first = int(self.text("#channel-text"))
            report = self.slice_of("--layer", 12, "--head", 0, "--side", side, "--tokens",
                                   "64..87", "--channels", f"{first}..{first + 15}")
            for coded, text in zip(report["codes"], ("#a-text", "#b-text")):
                self.assertEqual(self.text(text), self.error_text(coded))
            by_token, by_channel = (coded["head_relative_error"] for coded in report["codes"])
            usual = by_channel < by_token if side == "K" else by_token < by_channel
            self.assertEqual("is an exception" not in self.text("#lesson"), usual)
        page.get_by_role("button", name="Synthetic keys").click()
        self.settle()
        self.assertIn("Synthetic keys", self.text("#slice-place"))
        self.assertIn("Relative error 47.9 %", self.text("#a-text"))
        self.assertIn("Relative error 16.0 %", self.text("#b-text"))
        other = self.page.context.new_page()
        other.goto(page.url)
        other.wait_for_load_state("networkidle")
        for place in ("#slice-place", "#a-text", "#b-text", "#lesson"):
            self.assertEqual(other.inner_text(place), self.text(place), "a link shows the same")
        self.assertEqual(self.faults, [])

    def test_without_a_model_the_synthetic_head_is_all(self):
        process, url = start("--port", 0)
        self.addCleanup(end, process)
        page = self.open("slice", url)
        self.assertEqual(page.locator("#sources").count(), 0)
        self.assertTrue(page.is_visible("#synthetic"))
        page.get_by_role("button", name="Synthetic keys").click()
        self.settle()
        self.assertIn("Relative error 47.9 %", self.text("#a-text"))
        page.goto(f"{url}#{ALL}&grouping=layer")
        self.settle()
        self.assertEqual(self.text("#shared-in-head"), "65,536")
        self.assertEqual(self.faults, [])

    def test_a_row_opens_its_recipe_and_its_command(self):
        page = self.open("recipes")
        row = next(row for row in self.results["rows"] if row["recipe"] == "4bit")
        dot = page.locator("#kl-chart [data-row='4bit']")
        dot.focus()
        page.keyboard.press("Enter")
        self.settle()
        self.assertEqual(self.text("#row-canonical"), row["canonical"])
        self.assertEqual(float(self.text("#row-mean").split()[0]), float(f"{row['kld_mean']:.3g}"))
        self.assertEqual(self.text("#row-command"),
                         f"shorthand eval -m {self.results['model']} -c 512 --kv 4bit")
        self.assertEqual(page.locator("#kl-table tbody tr").count(), len(self.results["rows"]))
        page.reload()
        self.settle()
        self.assertEqual(self.text("#row-canonical"), row["canonical"])
        self.assertEqual(self.text("#speed-table tbody tr:first-child").split("\t")[1:],
                         ["20.0", "22.0", "28.2"])
        self.assertEqual(self.faults, [])

    def test_a_server_that_is_gone_is_said_and_found_again(self):
        process, url = start("-m", MODEL, "--port", 0)
        try:
            page = self.open("slice", url)
            self.settle()
        finally:
            end(process)
        page.click("[data-rank=best]")
        page.wait_for_timeout(1000)
        self.assertTrue(page.is_visible("#banner"))
        process, again = start("-m", MODEL, "--port", url.rstrip("/").rsplit(":", 1)[1])
        self.assertEqual(again, url)
        page.wait_for_timeout(5000)
        self.assertFalse(page.is_visible("#banner"))
        end(process)

    def test_nothing_overflows_and_nobody_is_shut_out(self):
        for name, place in PLACES.items():
            self.check_appearance(self.open(place), name)

    def slider_ms(self):
        """From a move of the slider to the error of the new slice, 21 times."""
        return self.page.evaluate("""async () => {
          const slider = document.querySelector('[name=token]');
          const numbers = document.querySelector('#value-map canvas');
          const times = [];
          for (let i = 0; i < 21; ++i) {
            const begin = performance.now();
            const label = numbers.getAttribute('aria-label');
            slider.value = String(100 + 9 * i);
            slider.dispatchEvent(new Event('input', {bubbles: true}));
            while (numbers.getAttribute('aria-label') === label && performance.now() - begin < 2000) {
              await new Promise((done) => setTimeout(done, 1));
            }
            times.push(performance.now() - begin);
            await new Promise((done) => setTimeout(done, 300));
          }
          return times;
        }""")

    def test_it_answers_at_once(self):
        page = self.open("slice")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        milliseconds = self.slider_ms()
        median = statistics.median(milliseconds)
        print(f"first paint {paint:.0f} ms (bar {MOST_PAINT_MS}); a slider's move to the new slice "
              f"{median:.0f} ms, median of {len(milliseconds)} (bar {MOST_SLICE_MS})")
        self.assertLess(paint, MOST_PAINT_MS)
        self.assertLess(median, MOST_SLICE_MS)

    def test_a_head_of_4096_tokens_answers_at_once(self):
        process, url = start("-m", MODEL, "--port", 0, "-n", "4k")
        self.addCleanup(end, process)
        page = self.open("slice", url)
        milliseconds = self.slider_ms()
        page.goto(f"{url}#{ALL}")
        self.settle()
        self.assertIn("tokens 0 to 4095 down", self.text("#grouping-place"))
        caret = page.evaluate("""() => {
          const canvas = document.querySelector('#group-map canvas');
          const times = [];
          for (let i = 0; i < 21; ++i) {
            const begin = performance.now();
            canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp'}));
            canvas.getBoundingClientRect();
            times.push(performance.now() - begin);
          }
          return times;
        }""")
        print(f"4096 tokens: a slider's move to the new slice and the error of the whole head "
              f"{statistics.median(milliseconds):.0f} ms, at most {max(milliseconds):.0f} (bar "
              f"{MOST_LONG_HEAD_MS}); the caret's move {statistics.median(caret):.1f} ms")
        self.assertLess(max(milliseconds), MOST_LONG_HEAD_MS)
        self.assertLess(statistics.median(caret), MOST_SLICE_MS)
        self.assertEqual(self.faults, [])

    def walk(self, by):
        for view in VIEWS:
            by(self, self.open(view))
            self.assertEqual(self.faults, [], view)
            self.assertFalse(self.page.is_visible("#banner"), view)

    def test_every_control_by_keyboard(self):
        self.walk(controls.by_keyboard)

    def test_every_control_by_mouse(self):
        self.walk(controls.by_mouse)

    def test_two_tabs_at_once(self):
        first = self.open("slice?layer=12&head=0&channel=16&token=90")
        first_faults = self.faults
        second = self.open("grouping?layer=3&head=1&grouping=layer")
        for _ in range(6):
            for page in (first, second):
                page.locator("[name=token]").press("ArrowRight")
        self.settle()
        place = ["--layer", 12, "--head", 0, "--tokens", "96..119", "--channels", "16..31"]
        expected = [self.error_text(coded) for coded in self.slice_of(*place)["codes"]]
        self.assertEqual([first.inner_text("#a-text"), first.inner_text("#b-text")], expected)
        (coded,) = self.slice_of("--layer", 3, "--head", 1, "--tokens", "70..85", "--channels",
                                 "0..63", "--code", "u4/layer")["codes"]
        self.assertEqual(second.inner_text("#grouping-error"),
                         f"{100 * coded['relative_error']:.1f} %")
        self.assertEqual((first_faults, self.faults), ([], []))


if __name__ == "__main__":
    unittest.main()
