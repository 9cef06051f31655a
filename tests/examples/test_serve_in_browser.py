"""The page of stripesim serve in a real browser: typed, clicked, by keyboard, narrow and wide, day and night.

Skipped where no Chromium with its driver is installed (Debian: ``apt-get install chromium chromium-driver``).
"""

import os
import shutil
import socket
import threading
import time
from pathlib import Path

import pytest

import stripesim
from stripesim.scenarios.explain.play import play_page
from stripesim.scenarios.explain.request import explain
from stripesim.scenarios.report.cluster import report_of_cluster

pytest.importorskip(
    "starlette", reason="starlette is not installed (pip install stripesim[web])"
)
uvicorn = pytest.importorskip(
    "uvicorn", reason="uvicorn is not installed (pip install stripesim[web])"
)
pytest.importorskip(
    "selenium", reason="selenium is not installed (pip install stripesim[test])"
)

from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402 - after the check
from selenium.webdriver import Chrome, ChromeOptions, Keys  # noqa: E402 - after the check that it is there
from selenium.webdriver.chrome.service import Service  # noqa: E402 - after the check that it is there
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402 - after the check that it is there
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402 - after the check that it is there

from stripesim.scenarios.schema.loader import parse_scenario  # noqa: E402 - after the check that it is there
from stripesim.web.app import create_app  # noqa: E402 - after the check that it is there

COUNTS = ("hosts", "osds_per_host")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BASE = """
schemes = ["rep:3", "rs:4,2"]
[cluster]
hosts = 8
osds_per_host = 4
pg_num = 64
drive = "nvme-tlc"
[workload]
requests = 200
image_bytes = "1GiB"
"""


@pytest.fixture(scope="module")
def address():
    """Serve the page in a thread, on a port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = uvicorn.Config(
        create_app(parse_scenario(BASE)), host="127.0.0.1", port=port, log_level="error"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def chrome():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if found is None or driver is None:
        pytest.skip(
            "no Chromium with its driver is installed (apt-get install chromium chromium-driver)"
        )
    options = ChromeOptions()
    options.binary_location = found
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with Chrome(options=options, service=Service(driver)) as browser:
        yield browser


@pytest.fixture
def page(chrome, address):
    """Open the page, and fail if the browser logs anything."""
    chrome.get_log("browser")
    chrome.get(address)
    yield chrome
    assert chrome.get_log("browser") == []


def results(browser):
    return browser.find_element("id", "results").text


def until(browser, holds, seconds=20):
    # The page may replace an element while it is read.
    stale = (StaleElementReferenceException,)
    WebDriverWait(browser, seconds, ignored_exceptions=stale).until(holds)


def error_next_to(browser, name):
    """Return the error that a field points to."""
    field = browser.find_element("name", name)
    return browser.find_element("id", field.get_attribute("aria-describedby"))


def raw_capacities(browser):
    """Return the raw capacity of both options as shown."""
    row = browser.find_element("xpath", "//tr[th[text()='Raw capacity']]")
    return [cell.text for cell in row.find_elements("tag name", "td")[:2]]


def test_typing_recomputes_and_the_address_keeps_it(page):
    assert "123 TB" in results(page)
    field = page.find_element("name", "a.hosts")
    field.clear()
    field.send_keys("16")
    until(page, lambda browser: "246 TB" in results(browser))
    assert "a.hosts=16" in page.current_url
    page.get(page.current_url)
    assert page.find_element("name", "a.hosts").get_attribute("value") == "16"
    assert "246 TB" in results(page)


def test_a_number_opens_its_why_by_keyboard_alone(page):
    summary = page.find_element("css selector", "#results summary")
    page.execute_script("arguments[0].focus()", summary)
    ActionChains(page).send_keys(Keys.ENTER).perform()
    until(page, lambda browser: "32 OSDs" in results(browser))


def test_every_control_is_reached_by_tab_and_has_a_label(page):
    names = []
    for _ in range(60):
        ActionChains(page).send_keys(Keys.TAB).perform()
        name = page.execute_script(
            "return document.activeElement.name || document.activeElement.tagName"
        )
        names.append(name)
        if name == "SUMMARY":
            break
    assert {
        "a.scheme",
        "a.hosts",
        "b.scheme",
        "b.failure_domain",
        "rate_per_s",
        "repair_mb_per_s",
    } <= set(names)
    unlabelled = page.execute_script(
        "return [...document.querySelectorAll('input:not([type=hidden]), select')]"
        ".filter(one => !one.labels.length).map(one => one.name)"
    )
    assert unlabelled == []


def test_an_error_appears_and_disappears_when_fixed(page):
    field = page.find_element("name", "b.scheme")
    field.clear()
    field.send_keys("rs:9,9")
    until(page, lambda browser: "Option B is invalid" in results(browser))
    field.clear()
    field.send_keys("rs:3,2")
    until(page, lambda browser: "is invalid" not in results(browser))


def upload(page, path):
    """Choose a file and press the button, as a person does."""
    page.find_element("name", "file").send_keys(str(path))
    page.find_element("xpath", "//button[text()='Upload']").click()
    until(page, lambda browser: "base=upload-" in browser.current_url, 60)


def test_a_scenario_is_uploaded_by_a_click(page, tmp_path):
    scenario = tmp_path / "nine.toml"
    scenario.write_text(BASE.replace("hosts = 8", "hosts = 9"))
    upload(page, scenario)
    assert page.find_element("name", "a.hosts").get_attribute("value") == "9"


def test_a_ceph_report_is_uploaded_by_a_click(page):
    upload(
        page,
        Path(__file__).resolve().parents[1] / "unit" / "data" / "ceph16-report.json",
    )
    # The cluster of the report has 8 OSDs.
    hosts, each = (
        int(page.find_element("name", f"a.{key}").get_attribute("value"))
        for key in COUNTS
    )
    assert hosts * each == 8


@pytest.mark.parametrize("typed", ["-3", "", "9999", "4.5"])
@pytest.mark.parametrize("width", [360, 1280])
def test_a_bad_value_is_reported_next_to_its_field_which_keeps_the_focus(
    page, typed, width
):
    metrics = {
        "width": width,
        "height": 900,
        "deviceScaleFactor": 1,
        "mobile": width < 500,
    }
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    field = page.find_element("name", "a.hosts")
    error = page.find_element("id", field.get_attribute("aria-describedby"))
    assert not error.is_displayed()
    assert field.get_attribute("aria-invalid") is None
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(typed or Keys.BACKSPACE)
    until(page, lambda browser: error_next_to(browser, "a.hosts").is_displayed())
    assert field.get_attribute("aria-invalid") == "true"
    assert field.get_attribute("value") == typed
    assert page.execute_script("return document.activeElement.name") == "a.hosts"
    # Below its field, inside the page, and legible.
    places = page.execute_script(
        "return [...arguments].map(e => e.getBoundingClientRect().toJSON())",
        field,
        error_next_to(page, "a.hosts"),
    )
    assert 0 <= places[1]["top"] - places[0]["bottom"] < 20
    assert places[1]["right"] <= width
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert raw_capacities(page)[0] == "–"
    # The address keeps the bad value: opened again, the page shows the same.
    page.get(page.current_url)
    assert error_next_to(page, "a.hosts").is_displayed()
    assert page.find_element("name", "a.hosts").get_attribute("aria-invalid") == "true"
    assert raw_capacities(page)[0] == "–"
    field = page.find_element("name", "a.hosts")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("16")
    until(page, lambda browser: raw_capacities(browser)[0] == "246 TB")
    assert not error_next_to(page, "a.hosts").is_displayed()
    assert field.get_attribute("aria-invalid") is None
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_fits_and_is_legible(page, width, theme):
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": theme}]},
    )
    metrics = {
        "width": width,
        "height": 900,
        "deviceScaleFactor": 1,
        "mobile": width < 500,
    }
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    # Show an error next to a field, because errors have a separate colour.
    page.get(f"{page.current_url}?a.hosts=-3")
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    shades = page.execute_script(
        "const rgb = c => c.match(/[0-9.]+/g).map(Number);"
        "const light = c => { const [r, g, b] = rgb(c).map(v => v / 255)"
        ".map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);"
        "return .2126 * r + .7152 * g + .0722 * b };"
        "const back = e => { while (e) { const c = getComputedStyle(e).backgroundColor;"
        "if (rgb(c)[3] !== 0) return c; e = e.parentElement } return 'rgb(255, 255, 255)' };"
        "return [...document.querySelectorAll('label, legend, th, summary, button, p, a, h1, h2')]"
        ".filter(e => e.offsetParent).map(e => {"
        "const [x, y] = [light(getComputedStyle(e).color), light(back(e))];"
        "return [(Math.max(x, y) + .05) / (Math.min(x, y) + .05), e.tagName + e.textContent.slice(0, 30)] })"
        ".filter(([ratio]) => ratio < 4.5)"
    )
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert shades == []


def test_a_simulation_is_clicked_and_its_rows_come(page):
    button = page.find_element("xpath", "//button[text()='Simulate both']")
    # The page scrolls smoothly, and a click does not wait for it.
    page.execute_script(
        "arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", button
    )
    button.click()
    until(page, lambda browser: "of 6 runs" in browser.find_element("id", "job").text)
    until(
        page,
        lambda browser: "Done: 6 of 6 runs" in browser.find_element("id", "job").text,
        150,
    )
    assert "serves the rate" in page.find_element("id", "job").text


AXE = os.environ.get("STRIPESIM_AXE", "")


@pytest.mark.skipif(
    not AXE, reason="STRIPESIM_AXE names no axe.min.js (npm pack axe-core)"
)
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violation(chrome, address, tmp_path, width, theme):
    """On the live page, with mistakes on it too, on a cluster's capacity and on a request that is played."""
    played, capacity = tmp_path / "write.html", tmp_path / "capacity.html"
    played.write_text(play_page(explain("write", ["rep:3", "rs:4,2"], 4096)), "utf-8")
    data = Path(__file__).resolve().parents[1] / "unit" / "data" / "ceph16-report.json"
    capacity.write_text(report_of_cluster(stripesim.import_report(data)), "utf-8")
    features = [{"name": "prefers-color-scheme", "value": theme}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    chrome.set_script_timeout(60)
    wrong = f"{address}?a.scheme=rs:9&b.failure_domain=x&problem=%3Cscript%3E"
    for url in (address, wrong, f"{played.as_uri()}#step=30", capacity.as_uri()):
        chrome.get(url)
        chrome.execute_script(Path(AXE).read_text("utf-8"))
        found = chrome.execute_async_script(
            "axe.run().then(r => arguments[0]([r.passes.length, r.violations.map(v => v.id)]))"
        )
        assert found[0] > 20
        assert found[1] == [], url
