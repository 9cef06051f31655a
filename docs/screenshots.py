"""Take the screenshots that the README shows: ``python docs/screenshots.py`` writes them to docs/_static/.

Needs Chromium with its driver (Debian: ``apt-get install chromium chromium-driver``), selenium and pillow.
"""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from generate import gallery

STATIC = Path(__file__).resolve().parent / "_static"
STRIPESIM = [sys.executable, "-m", "stripesim"]

# GitHub shows a README about 900 pixels wide.
WIDTH = 980
SIMULATION_WAIT_S = 300
SERVER_WAIT_S = 60

# At this step 3-replication has replied, and RS(4,2) is writing its shards.
PLAYED_STEP = 88


def browser() -> Chrome:
    """Start a headless Chromium with a window tall enough for a whole page."""
    options = ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WIDTH},2600",
    ):  # fmt: skip
        options.add_argument(argument)
    return Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def save(driver: Chrome, name: str, *, first: str, last: str, number: int = 0) -> None:
    """Save a PNG of 128 colours, from the first match of a CSS selector to a match of another."""
    page = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    top = driver.find_element(By.CSS_SELECTOR, first).rect["y"]
    end = driver.find_elements(By.CSS_SELECTOR, last)[number].rect
    part = page.crop((0, int(top) - 12, page.width, int(end["y"] + end["height"])))
    path = STATIC / name
    part.quantize(128).save(path, optimize=True)
    print(f"wrote {path} ({path.stat().st_size / 1e3:.0f} kB)")


def live_page(driver: Chrome) -> None:
    """Compare the two options that ``stripesim serve`` opens with, and simulate both."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([*STRIPESIM, "serve", "--port", str(port)])
    try:
        deadline = time.monotonic() + SERVER_WAIT_S
        while time.monotonic() < deadline:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        driver.get(f"http://127.0.0.1:{port}/")
        driver.find_element(By.XPATH, "//button[contains(., 'Simulate')]").click()
        WebDriverWait(driver, SIMULATION_WAIT_S).until(
            lambda page: "6 of 6" in page.find_element(By.TAG_NAME, "body").text
        )
        save(driver, "live-page.png", first="#results", last="#job")
    finally:
        server.terminate()
        server.wait()


def played_write(driver: Chrome) -> None:
    """Play a 4 KiB write under 3-replication and RS(4,2) up to one step."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "write.html"
        subprocess.run(
            [*STRIPESIM, "explain", "write", "--scheme", "rep:3", "--scheme", "rs:4,2", "--size", "4k",
             "--generation", "squid", "--no-steps", "--html", str(page)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        driver.get(f"{page.as_uri()}#step={PLAYED_STEP}")
        time.sleep(1)
        save(
            driver, "played-write.png", first="section.request",
            last="section[aria-labelledby=request-1] .host", number=2,
        )  # fmt: skip


def explorer(driver: Chrome) -> None:
    """Show the explorer of the gallery's grid at 64 KiB."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "explorer.html"
        page.write_text(gallery.grid_page(), encoding="utf-8")
        driver.get(f"{page.as_uri()}#at.workload.block_sizes_bytes=64KiB")
        time.sleep(1)
        save(driver, "explorer.png", first=".lab", last="figure.plot")


def main() -> None:
    """Take all screenshots."""
    driver = browser()
    try:
        explorer(driver)
        live_page(driver)
        played_write(driver)
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
