"""Take screenshots and draw figures for pages: ``python docs/screenshots.py`` writes them to docs/_static/.

Needs Chromium with its driver (Debian: ``apt-get install chromium chromium-driver``), selenium and pillow.
"""

from __future__ import annotations

import io
import shutil
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
TIMELINE_WIDTH = 1300
DESK = (1280, 2600)
REHEARSAL_HEIGHT = 3200
PHONE = (360, 900)
PHONE_WIDTH_MAX = 500
SIMULATION_WAIT_S = 300
SERVER_WAIT_S = 60

# Eight hosts with disks, which get a ninth.
GROWTH = """
name = "Grow by a host"
schemes = ["rs:4,2"]
generation = "reef"
[cluster]
hosts = 8
osds_per_host = 2
pg_num = 64
drive = "hdd-7200"
drive_bytes = "2TB"
stored_bytes = "14.5TB"
[workload]
kind = "open"
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
image_bytes = "10GB"
rate_per_s = 100
[[changes]]
kind = "add"
hosts = 1
"""

# The step to show, in the second request: 3-replication has replied, and RS(4,2) has written its shards.
PLAYED_STEP = '.steps li[data-request="1"][data-lane="shard 1"]'
PLAYED_WORDS = "sub-write reply sent"


def browser() -> Chrome:
    """Start a headless Chromium with a window tall enough for a whole page."""
    options = ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
    ):  # fmt: skip
        options.add_argument(argument)
    return Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def resize(driver: Chrome, width: int, height: int) -> None:
    """Set the size of the page, which a window cannot be as narrow as."""
    metrics = {
        "width": width,
        "height": height,
        "deviceScaleFactor": 1,
        "mobile": width < PHONE_WIDTH_MAX,
    }
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def save(driver: Chrome, name: str, *, first: str, last: str, number: int = 0) -> None:
    """Save a PNG of 256 colours, from the first match of a CSS selector to a match of another."""
    page = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    top = driver.find_element(By.CSS_SELECTOR, first).rect["y"]
    end = driver.find_elements(By.CSS_SELECTOR, last)[number].rect
    part = page.crop(
        (0, max(0, int(top) - 12), page.width, int(end["y"] + end["height"]))
    )
    path = STATIC / name
    # The default method drops colours of small areas, such as those of a legend.
    few = part.quantize(256, method=Image.Quantize.MAXCOVERAGE)
    few.save(path, optimize=True)
    print(f"wrote {path} ({path.stat().st_size / 1e3:.0f} kB)")


def live_page(driver: Chrome) -> None:
    """Take the page of ``stripesim serve`` on a desk and on a phone, when both options are simulated."""
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
        resize(driver, *DESK)
        driver.get(f"http://127.0.0.1:{port}/")
        wait_until_simulated(driver)
        save(driver, "live-page.png", first="header", last="#picture-failure")
        resize(driver, *PHONE)
        driver.refresh()
        wait_until_simulated(driver)
        (STATIC / "live-page-phone.png").write_bytes(driver.get_screenshot_as_png())
    finally:
        server.terminate()
        server.wait()


def wait_until_simulated(driver: Chrome) -> None:
    """Wait until the page has simulated both options, and is still."""
    WebDriverWait(driver, SIMULATION_WAIT_S).until(
        lambda page: "Simulated 8 of 8" in page.find_element(By.TAG_NAME, "body").text
    )
    time.sleep(1)


def played_write(driver: Chrome) -> None:
    """Play a 4 KiB write under 3-replication and RS(4,2) up to one step."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "write.html"
        subprocess.run(
            [*STRIPESIM, "explain", "write", "--scheme", "rep:3", "--scheme", "rs:4,2", "--size", "4k",
             "--generation", "squid", "--no-steps", "--html", str(page)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        resize(driver, WIDTH, REHEARSAL_HEIGHT)
        driver.get(page.as_uri())
        step = played_step(driver)
        # The page reads its address when it loads.
        driver.get(f"{page.as_uri()}#step={step}")
        driver.refresh()
        time.sleep(1)
        save(
            driver, "played-write.png", first="section.request",
            last="section[aria-labelledby=request-1] .host", number=2,
        )  # fmt: skip


def played_step(driver: Chrome) -> int:
    """Return the number of the step to show, among those of all requests."""
    steps = driver.find_elements(By.CSS_SELECTOR, ".steps li")
    shown = next(
        step
        for step in driver.find_elements(By.CSS_SELECTOR, PLAYED_STEP)
        if step.find_element(By.TAG_NAME, "b").text == PLAYED_WORDS
    )
    return steps.index(shown) + 1


def slow_drive() -> None:
    """Draw the timeline of the scenario slow-drive under RS(4,2)."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [*STRIPESIM, "run", "slow-drive", "--set", 'schemes=["rs:4,2"]', "--out", folder],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        (figure,) = Path(folder).glob("timeline-*.png")
        picture = Image.open(figure).convert("RGB")
        picture.thumbnail((TIMELINE_WIDTH, TIMELINE_WIDTH))
        picture.quantize(128).save(STATIC / "slow-drive.png", optimize=True)


def rehearsal(driver: Chrome) -> None:
    """Show the page of a rehearsal down to its timeline."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "growth.toml"
        scenario.write_text(GROWTH, encoding="utf-8")
        subprocess.run(
            [*STRIPESIM, "rehearse", str(scenario), "--out", folder, "--report"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        resize(driver, WIDTH, REHEARSAL_HEIGHT)
        driver.get((Path(folder) / "report.html").as_uri())
        save(driver, "rehearsal.png", first="header", last="#timeline")


def load_curve() -> None:
    """Draw the load curves of 4 KiB writes, which needs no browser."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [*STRIPESIM, "load", "quickstart", "--set", "workload.ops=write", "--p99", "5ms",
             "--out", folder],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        shutil.copy(Path(folder) / "load.svg", STATIC / "load.svg")


def explorer(driver: Chrome) -> None:
    """Show the explorer of the gallery's grid at 64 KiB."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "explorer.html"
        page.write_text(gallery.grid_page(), encoding="utf-8")
        resize(driver, WIDTH, REHEARSAL_HEIGHT)
        driver.get(f"{page.as_uri()}#at.workload.block_sizes_bytes=64KiB")
        time.sleep(1)
        save(driver, "explorer.png", first=".lab", last="figure.plot")


def main() -> None:
    """Take the screenshots and draw the figures."""
    slow_drive()
    load_curve()
    driver = browser()
    try:
        explorer(driver)
        rehearsal(driver)
        live_page(driver)
        played_write(driver)
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
