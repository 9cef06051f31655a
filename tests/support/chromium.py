"""A headless Chromium for tests of pages, which are skipped where none is installed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

#: Time between two looks of a test at a page [s]. Selenium itself looks only every half second.
POLL_S = 0.05
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def headless_chromium(*logs: str) -> Iterator[Any]:
    """Start a headless Chromium that keeps these logs, or skip the test."""
    pytest.importorskip(
        "selenium", reason="selenium is not installed (pip install stripesim[test])"
    )
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if found is None or driver is None:
        pytest.skip(
            "no Chromium with its driver is installed (apt-get install chromium chromium-driver)"
        )
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = found
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        # Chromium refuses to run as root inside its sandbox, as in most containers.
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    with Chrome(options=options, service=Service(driver)) as chrome:
        yield chrome
