"""Reports in a real browser: quiet, alone, legible on a phone and a desk, by day and by night, and on paper.

Skipped where no Chromium with its driver is installed (Debian: ``apt-get install chromium chromium-driver``).
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from stripesim.scenarios.explain.play import play_page
from stripesim.scenarios.explain.request import explain
from stripesim.scenarios.report.run import report_of_run
from stripesim.scenarios.run.execute import run_scenario
from stripesim.scenarios.schema.loader import load_scenario

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTHS = (360, 1280)
THEMES = ("light", "dark")
PAGES = ("run", "sizes", "study")

# Contrast required by WCAG 2.1 AA for text and for large text.
TEXT_CONTRAST, LARGE_CONTRAST = 4.5, 3.0

CHECKS = (Path(__file__).parent / "report_checks.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(tmp_path_factory, quick_rebuilds):
    """One report of each sort, in files: a run, a run over sizes with a repair, a study."""
    from stripesim.scenarios.studies.registry import study_named

    folder = tmp_path_factory.mktemp("reports")
    small = [
        'schemes=["rep:3", "rs:6,3", "rs:10,4"]',
        'workload.block_sizes_bytes=["4k", "64k"]',
    ]
    scenarios = {
        "run": load_scenario("quickstart"),
        "sizes": load_scenario("koh2017", sets=[*small, "workload.requests=60"]),
    }
    for name, scenario in scenarios.items():
        page = report_of_run(scenario, run_scenario(scenario))
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    study = study_named("dachary2013")
    study.save(study.run(), folder / "study")
    shutil.copy(folder / "study" / "report.html", folder / "study.html")
    return folder


@pytest.fixture(scope="module")
def browser():
    """Start a headless Chromium that records its log and its requests."""
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
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    with Chrome(options=options, service=Service(driver)) as chrome:
        yield chrome


@pytest.fixture(params=PAGES)
def opened(request, browser, pages):
    """Open a page and return the browser, its log and the requested addresses."""
    browser.get_log("browser")
    browser.get_log("performance")
    address = (pages / f"{request.param}.html").as_uri()
    browser.get(address)
    events = [
        json.loads(entry["message"])["message"]
        for entry in browser.get_log("performance")
    ]
    asked = [
        e["params"]["request"]["url"]
        for e in events
        if e["method"] == "Network.requestWillBeSent"
    ]
    return browser, browser.get_log("browser"), [one for one in asked if one != address]


def emulate(browser, theme, media=""):
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": media, "features": features}
    )


def show(browser, width, theme):
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    emulate(browser, theme)
    # Otherwise the page would be judged as it was laid out before.
    assert browser.execute_script("return window.innerWidth") == width
    assert browser.execute_script(
        f"return matchMedia('(prefers-color-scheme: {theme})').matches"
    )


def ask(browser, call):
    """Call one of the checks in the page."""
    return browser.execute_script(f"{CHECKS}\nreturn {call};")


def test_a_report_neither_logs_nor_fetches(opened):
    _, logged, asked = opened
    assert logged == []
    assert asked == []


def test_a_report_runs_no_script_that_is_put_into_it(opened):
    browser, _, _ = opened
    browser.execute_script(
        "const script = document.createElement('script'); script.textContent = 'window.ran = true';"
        "document.body.append(script)"
    )
    assert browser.execute_script("return window.ran") is None
    (refusal,) = browser.get_log("browser")
    assert "Content Security Policy" in refusal["message"]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_is_legible(opened, width, theme):
    browser, _, _ = opened
    show(browser, width, theme)
    stuck_out = ask(browser, "overflow()")
    assert stuck_out["page"] <= 0
    assert stuck_out["wide"] == []
    figures = ask(browser, "figures()")
    assert figures
    for figure in figures:
        assert figure["width"] > 200, figure
        assert figure["height"] > 100, figure
        assert figure["drawn"] > 20, figure
        assert figure["outside"] == 0, figure
    found = ask(browser, f"faint({TEXT_CONTRAST}, {LARGE_CONTRAST})")
    assert found["texts"] > 50
    assert found["faint"] == []


def test_the_checks_find_planted_faults(opened):
    browser, _, _ = opened
    show(browser, 360, "light")
    browser.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<p style=\"color: #999; width: 700px\">pale</p>'"
        '+ \'<figure id="hidden"><svg style="display: none"></svg></figure>\')'
    )
    assert ["pale", "2.85"] in ask(
        browser, f"faint({TEXT_CONTRAST}, {LARGE_CONTRAST})"
    )["faint"]
    stuck_out = ask(browser, "overflow()")
    assert stuck_out["page"] > 300
    assert stuck_out["wide"]
    assert ask(browser, "figures()")[-1]["width"] == 0


def test_the_page_and_its_figures_change_with_the_theme(opened):
    browser, _, _ = opened
    seen = []
    for theme in THEMES:
        show(browser, 1280, theme)
        seen.append(ask(browser, "colours()"))
    assert all(light != dark for light, dark in zip(*seen, strict=True))


def test_a_table_keeps_its_meaning_where_it_is_restacked(opened):
    browser, _, _ = opened
    show(browser, 360, "light")
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = [node["role"]["value"] for node in tree if not node["ignored"]]
    tables, figures = (
        browser.execute_script(f"return document.querySelectorAll('{tag}').length")
        for tag in ("table", "figure")
    )
    assert roles.count("table") == tables
    assert roles.count("rowheader") > tables
    assert roles.count("image") + roles.count("img") == figures


def test_a_report_prints_in_ink_on_white(opened):
    browser, _, _ = opened
    emulate(browser, "dark", media="print")
    white, black = "rgb(255, 255, 255)", "rgb(0, 0, 0)"
    assert ask(browser, "colours()") == [white, white, black, black]
    assert ask(browser, f"faint({TEXT_CONTRAST}, {LARGE_CONTRAST})")["faint"] == []


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    path = tmp_path_factory.mktemp("played") / "write.html"
    path.write_text(
        play_page(explain("write", ["rep:3", "rs:4,2"], 4096)), encoding="utf-8"
    )
    return path.as_uri()


def test_a_request_is_played_by_keyboard_alone(browser, played):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    def press(key):
        ActionChains(browser).send_keys(key).perform()
        return browser.find_element(By.ID, "what").text

    show(browser, 1280, "light")
    browser.get_log("browser")
    browser.get(f"{played}#step=3")
    steps = len(browser.find_elements(By.CSS_SELECTOR, ".steps li"))
    assert steps > 50
    assert browser.find_element(By.ID, "what").text.startswith(f"3 of {steps}: ")
    assert press(Keys.ARROW_RIGHT).startswith(f"4 of {steps}: ")
    assert press(Keys.ARROW_LEFT).startswith(f"3 of {steps}: ")
    assert press(Keys.END).startswith(f"{steps} of {steps}: ")
    assert not browser.find_elements(By.CSS_SELECTOR, ".bar.later")
    bytes_at_end = browser.find_element(By.CSS_SELECTOR, ".bytes").text
    press(Keys.HOME)
    assert browser.find_element(By.CSS_SELECTOR, ".bytes").text != bytes_at_end
    assert browser.find_element(By.ID, "clock").text == "0 µs"
    press(Keys.SPACE)
    assert browser.find_element(By.ID, "play").text == "Pause"
    press(Keys.SPACE)
    assert browser.find_element(By.ID, "play").text == "Play"
    # The slider is a separate control with a name and the step as text.
    slider = browser.find_element(By.ID, "at")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert (
        slider.get_attribute("aria-valuetext")
        == browser.find_element(By.ID, "what").text
    )
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_played_request_is_legible(browser, played, width, theme):
    show(browser, width, theme)
    browser.get(f"{played}#step=30")
    show(browser, width, theme)
    assert ask(browser, "overflow()")["page"] <= 0
    assert ask(browser, f"faint({TEXT_CONTRAST}, {LARGE_CONTRAST})")["faint"] == []
