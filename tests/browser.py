"""A real browser without a window, and a record of what a page did in it."""

import json
import shutil
import tempfile

import pytest
from cluster import until
from selenium import webdriver
from selenium.webdriver.common.by import By

ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1", "--lang=en-GB",
)  # fmt: skip


class Browser:
    """Chromium with its own profile."""

    def __init__(self):
        program, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if program is None or driver is None:
            pytest.fail("there is no Chromium, or no chromedriver, to look at the page with: run scripts/browser")
        self.profile = tempfile.mkdtemp(prefix="gm-browser")
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for argument in (*ARGUMENTS, f"--user-data-dir={self.profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        self.driver.set_page_load_timeout(60)

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def open(self, address):
        self.logs()
        self.driver.get(f"http://{address}/")

    def logs(self):
        """The messages on the console and the URLs that were requested since the last call."""
        said = [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [entry["message"] for entry in said], asked

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def script(self, text, *args):
        return self.driver.execute_script(text, *args)

    def text(self, selector) -> str:
        """The visible text of an element. It is empty if the element is hidden or absent."""
        shown = "const e = document.querySelector(arguments[0]); return e?.checkVisibility() ? e.innerText : ''"
        return self.script(shown, selector)

    def rows(self, table):
        """The texts of a table's cells, a list for each row."""
        return self.script(
            "return [...document.querySelectorAll(arguments[0])].map(row => [...row.cells].map(c => c.innerText))",
            f"#{table} tbody tr",
        )

    def until_rows(self, table, condition, what):
        """Waits until the rows of a table meet a condition."""

        def look():
            rows = self.rows(table)
            return rows if condition(rows) else None

        try:
            return until(look, what)
        except AssertionError:
            raise AssertionError(f"{what}: {self.rows(table)}, {self.text('#banner')!r}, {self.logs()[0]}") from None

    def size(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def screenshot(self, path):
        self.driver.save_screenshot(str(path))
