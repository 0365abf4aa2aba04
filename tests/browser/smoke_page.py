"""That the page of `shorthand explore` opens and answers; MODEL may be empty."""

import unittest

from browser import FOLDER, MODEL, BrowserTest


class SmokeTest(BrowserTest):
    def test_the_page_opens_and_a_slider_shows_another_slice(self):
        page = self.open("memory")
        self.assertEqual(self.text("#kv-per-token"), "128 KiB")
        self.assertEqual(self.text("#memory-table tbody tr:first-child").split("\t")[3:],
                         ["4.0 GiB", "8.2 GiB"])
        page.screenshot(path=str(FOLDER / "smoke-memory.png"), full_page=True)
        page.click("nav [data-view=slice]")
        self.settle()
        self.assertRegex(self.text("#a-text"), r"Relative error \d+\.\d %, whole head \d+\.\d %\.")
        before = self.text("#slice-place")
        page.locator("[name=token]").press("ArrowRight")
        self.settle()
        self.assertNotEqual(self.text("#slice-place"), before)
        self.assertEqual(page.is_visible("#synthetic"), not MODEL)
        page.screenshot(path=str(FOLDER / "smoke-slice.png"), full_page=True)
        page.click("nav [data-view=recipes]")
        self.settle()
        self.assertEqual(page.is_visible("#live-form"), bool(MODEL))
        self.assertEqual(page.is_visible("#live-none"), not MODEL)
        self.assertEqual(self.faults, [])


if __name__ == "__main__":
    unittest.main()
