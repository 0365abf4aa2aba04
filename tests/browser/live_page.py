"""Recipes that are measured in the page of `shorthand explore`, on MODEL."""

import unittest

from browser import MODEL, BrowserTest, report


class LiveTest(BrowserTest):
    arguments = ("-t", 1)  # runs of some seconds

    def measure(self, recipe):
        self.page.fill("#live-recipe", recipe)
        self.page.click("#live-go")

    def wait_until_done(self, page):
        page.wait_for_selector("#live-run", state="hidden", timeout=60000)

    def eval_of(self, recipe):
        done = report("eval", "-m", MODEL, "-c", 512, "--windows", 1, "-t", 1, "--kv", recipe)
        return done["rows"][0]

    def test_what_is_measured_joins_the_chart_and_stays(self):
        page = self.open("recipes")
        for recipe in ("4bit", "k=u3/ch,v=had:lm3/tok"):
            self.measure(recipe)
            page.wait_for_selector(f"#live-doing:has-text('Measuring {recipe}')", timeout=60000)
            self.assertGreater(page.evaluate("document.getElementById('live-progress').value"), 0)
            self.wait_until_done(page)
            self.settle()
            row = self.eval_of(recipe)
            self.assertEqual(self.text("#row-name"), recipe)
            self.assertEqual(self.text("#row-canonical"), row["canonical"])
            self.assertEqual(float(self.text("#row-mean").split()[0]),
                             float(f"{row['kld_mean']:.3g}"))
            self.assertEqual(self.text("#row-command"),
                             f"shorthand eval -m {MODEL} -c 512 --windows 1 --kv {recipe}")
            dot = page.locator(f"#kl-chart [data-row='{recipe}']")
            self.assertEqual(dot.get_attribute("aria-pressed"), "true")
        page.reload()
        self.settle()
        self.assertEqual(self.text("#row-name"), recipe)
        self.assertIn("measured here", self.text("#report-text"))
        self.check_appearance(page, "live-after")
        self.assertEqual(self.faults, [])

    def test_all_tabs_show_the_run_also_after_reloading_and_any_stops_it(self):
        page = self.open("recipes")
        self.assertTrue(page.is_visible("#no-results"))
        self.check_appearance(page, "live-first")
        other = page.context.new_page()
        other.goto(f"{self.url}#recipes")
        self.measure("2bit")
        for tab in (other, page):
            tab.wait_for_selector("#live-run", timeout=5000)
        page.reload()
        page.wait_for_selector("#live-run", timeout=5000)
        self.assertTrue(page.is_disabled("#live-go"))
        other.click("#live-stop")
        for tab in (other, page):
            tab.wait_for_selector("#live-run", state="hidden", timeout=5000)
            self.assertEqual(tab.locator("#kl-chart [data-row='2bit']").count(), 0)
            self.assertTrue(tab.is_enabled("#live-go"))
        self.measure("8bit")
        other.wait_for_selector("#kl-table tbody th:has-text('8bit')", timeout=60000)
        self.assertEqual(self.faults, [])

    def test_what_is_wrong_is_said(self):
        page = self.open("recipes")
        self.measure("5bits")
        page.wait_for_selector("#live-error")
        self.assertIn('the nearest is "5bit"', self.text("#live-error"))
        page.route("**/api/live?", lambda route: route.fulfill(json={
            "running": {"recipe": "k=u3/ch,v=had:lm3/tok", "done": 0.4}, "report": None,
            "error": None}))
        page.wait_for_selector("#live-run")
        self.check_appearance(page, "live-running")
        page.unroute("**/api/live?")
        self.wait_until_done(page)
        self.measure("4bit,cal=0000000000000000")
        page.wait_for_selector("#live-error:has-text('names calibration')", timeout=60000)
        self.assertEqual(self.faults, [])


if __name__ == "__main__":
    unittest.main()
