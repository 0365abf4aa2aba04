"""A server, a browser and a page, for the tests of this folder: TEST.py SHORTHAND MODEL FOLDER [TEST]...

`scripts/setup --browser` brings what they take. Screenshots go to FOLDER.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import unittest

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

SHORTHAND, MODEL, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
del sys.argv[1:4]
FOLDER.mkdir(parents=True, exist_ok=True)


def report(*arguments):
    done = subprocess.run([SHORTHAND, *map(str, arguments), "--json"], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


def start(*arguments):
    process = subprocess.Popen([SHORTHAND, "explore", "--no-browser", *map(str, arguments)],
                               stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def end(process):
    process.terminate()
    process.wait()
    process.stdout.close()


class BrowserTest(unittest.TestCase):
    """One server and one browser for all tests of a class."""
    arguments = ()  # of the server

    @classmethod
    def setUpClass(cls):
        model = ("-m", MODEL) if MODEL else ()
        cls.server, cls.url = start(*model, "--port", 0, *cls.arguments)
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=shutil.which("chromium"),
                                                     args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        end(cls.server)

    def open(self, view, url=None, **options):
        options.setdefault("viewport", {"width": 1440, "height": 900})
        context = self.browser.new_context(bypass_csp=True, **options)  # for axe
        self.addCleanup(context.close)
        page = context.new_page()
        self.faults = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.goto(f"{url or self.url}#{view}")
        page.wait_for_load_state("networkidle")
        self.page = page
        return page

    def settle(self):
        self.page.wait_for_timeout(400)

    def text(self, selector):
        return self.page.inner_text(selector)

    def check_appearance(self, page, where):
        """In any width and both colour schemes, with a screenshot of each."""
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for width in (390, 1440):
                page.set_viewport_size({"width": width, "height": 900})
                self.settle()
                name = f"{where}-{width}-{scheme}"
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width,
                                     name)
                page.screenshot(path=str(FOLDER / f"{name}.png"), full_page=True)
                faults = [fault["id"] for fault in Axe().run(page).response["violations"]
                          if fault["impact"] in ("serious", "critical")]
                self.assertEqual(faults, [], name)
