"""Reports in a real browser: quiet, alone, legible on a phone and a desk, by day and by night, and on paper.

Skipped where no Chromium with its driver is installed (Debian: ``apt-get install chromium chromium-driver``).
"""

import csv
import json
import time
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import polars as pl
import pytest

from stripesim.scenarios.answers.explain.play import Prediction, play_page
from stripesim.scenarios.answers.explain.request import explain
from stripesim.scenarios.answers.load.answer import answer_of_load
from stripesim.scenarios.answers.load.curve_builder import CurveSettings
from stripesim.scenarios.answers.load.curves import load_curves
from stripesim.scenarios.answers.load.page import report_of_load
from stripesim.scenarios.answers.rehearse import samples
from stripesim.scenarios.answers.rehearse.page import report_of_rehearsal
from stripesim.scenarios.answers.rehearse.rehearse import rehearse
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.answers.run.report.contents import gather
from stripesim.scenarios.answers.run.report.page import page_of_run
from stripesim.scenarios.answers.sweep.figures import draw_sweep
from stripesim.scenarios.answers.sweep.plan import plan_sweep
from stripesim.scenarios.answers.sweep.report import report_of_sweep
from stripesim.scenarios.answers.sweep.run import run_sweep
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario
from support.axe import needs_axe, violations
from support.chromium import POLL_S, headless_chromium

WIDTHS = (360, 1280)
THEMES = ("light", "dark")
PAGES = ("run", "sizes", "study", "sweep")

# Contrast required by WCAG 2.1 AA for text and for large text.
TEXT_CONTRAST, LARGE_CONTRAST = 4.5, 3.0

CHECKS = (Path(__file__).parent / "report_checks.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(tmp_path_factory, quick_rebuilds):
    """One report of each sort, in files: a run, a run over sizes with a repair, a study, a sweep."""
    from stripesim.scenarios.studies.registry import study_named

    folder = tmp_path_factory.mktemp("reports")
    small = [
        'schemes=["rep:3", "rs:6,3", "rs:10,4"]',
        'workload.block_sizes_bytes=["4k", "64k"]',
        "workload.queue_depth=16",
        "workload.requests=200",
        "cluster.pg_num=128",
    ]
    scenarios = {
        "run": load_scenario("quickstart"),
        "sizes": load_scenario("koh2017", sets=small),
    }
    for name, scenario in scenarios.items():
        page = page_of_run(gather(scenario, run_scenario(scenario)))
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    study = study_named("dachary2013")
    study.answer(study.run()).save(None, page=folder / "study.html")
    plan, result = swept()
    page = report_of_sweep(plan, result, draw_sweep(result.aggregated, plan.keys))
    (folder / "sweep.html").write_text(page, encoding="utf-8")
    return folder


def swept():
    """Sweep depth and block size; RS(4,2) fails at depth 4 and 64 KiB."""
    plan = plan_sweep(
        "quickstart",
        over=["workload.queue_depth=1,4,8,32", "workload.block_sizes_bytes=4k,64k"],
        sets=["workload.requests=60", 'workload.ops=["write"]'],
        replications=2,
    )
    result = run_sweep(plan, jobs=1)
    where = ("scheme", "workload.queue_depth", "block_size_bytes")
    (row,) = [
        mean
        for mean in result.means
        if itemgetter(*where)(mean) == ("rs:4,2", 4, 65536)
    ]
    failed = [{**row, "task": "t", "reason": "the worker was killed"}]
    kept = [mean for mean in result.means if mean is not row]
    return plan, replace(result, means=kept, failed=failed)


@pytest.fixture(scope="module")
def browser():
    """Start a headless Chromium that records its log and its requests."""
    with headless_chromium("browser", "performance") as chrome:
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


def show(browser, width, theme, height=800):
    screen = {
        "width": width,
        "height": height,
        "deviceScaleFactor": 1,
        "mobile": False,
    }
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


def test_a_report_moves_at_once_where_motion_is_reduced(browser, pages):
    browser.get((pages / "sweep.html").as_uri())
    behaviours = []
    for motion in ("no-preference", "reduce"):
        features = [{"name": "prefers-reduced-motion", "value": motion}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        root = browser.find_element("tag name", "html")
        behaviours.append(root.value_of_css_property("scroll-behavior"))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert behaviours == ["smooth", "auto"]


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


#: Plays more steps per second than readers can select.
FASTER = "document.getElementById('speed').add(new Option('60', '60', false, true));"


def test_play_stops_at_the_first_wait_for_a_placement_group(browser, played):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    show(browser, 1280, "light")
    browser.get_log("browser")
    browser.get(played)
    starts_us = ask(
        browser,
        "[...document.querySelectorAll('.bar.wait')]"
        ".filter((bar) => bar.title.startsWith('waits: PG '))"
        ".map((bar) => +bar.dataset.from).sort((a, b) => a - b)",
    )
    assert len(starts_us) > 1
    browser.execute_script(FASTER)
    # The list is a control with a label, so its first letters choose an option.
    until = browser.find_element(By.ID, "until")
    until.send_keys("a req")
    assert until.get_attribute("value") == "group"
    play = browser.find_element(By.ID, "play")
    for start_us in starts_us[:2]:
        play.send_keys(Keys.ENTER)
        WebDriverWait(browser, 30, POLL_S).until(lambda _: play.text == "Play")
        clock = browser.find_element(By.ID, "clock").text
        assert clock == f"{start_us:,.0f} µs"
        stopped = browser.find_element(By.ID, "stopped").text
        assert stopped.endswith(" waits for its PG.")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_played_request_is_legible(browser, played, width, theme):
    show(browser, width, theme)
    browser.get(f"{played}#step=30")
    show(browser, width, theme)
    assert ask(browser, "overflow()")["page"] <= 0
    assert ask(browser, f"faint({TEXT_CONTRAST}, {LARGE_CONTRAST})")["faint"] == []


@pytest.fixture(scope="module")
def tall(tmp_path_factory):
    """Play a write whose nine lanes are taller than a projector's window."""
    path = tmp_path_factory.mktemp("tall") / "write.html"
    path.write_text(play_page(explain("write", ["rs:6,3"], 1 << 22)), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize(("width", "height"), [(1280, 650), (360, 740)])
def test_the_lane_of_every_step_is_in_view(browser, tall, width, height):
    show(browser, width, "light", height)
    browser.get(tall)
    lanes = ask(browser, "lanesOutOfView()")
    assert lanes["seen"] > 50
    assert lanes["unseen"] == []
    # Without the page's own scrolling most lanes would be below the window.
    assert browser.execute_script("return document.body.scrollHeight") > 2 * height


def test_the_lane_is_in_view_while_the_request_plays(browser, tall):
    from selenium.webdriver.support.ui import WebDriverWait

    show(browser, 1280, "light", 650)
    browser.get(tall)
    browser.execute_script(
        f"{FASTER} document.getElementById('play').click(); window.states = [];"
        "const look = () => { const lane = document.querySelector('.host.active');"
        "  if (lane) { const box = lane.getBoundingClientRect();"
        "    states.push(box.top >= document.getElementById('player').getBoundingClientRect().bottom - 1"
        "      && box.bottom <= innerHeight + 1); }"
        "  requestAnimationFrame(look); }; look();"
    )
    last = browser.find_element("id", "at").get_attribute("max")
    WebDriverWait(browser, 30, POLL_S).until(
        lambda page: page.find_element("id", "play").text == "Play"
    )
    assert browser.find_element("id", "at").get_attribute("value") == last
    states = browser.execute_script("return states")
    assert len(states) > 20
    assert all(states)


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_cover_no_bars(browser, tall, width):
    show(browser, width, "light")
    browser.get(tall)
    labels = ask(browser, "coveringLabels()")
    assert labels["labels"] > 30
    assert labels["bars"] > 100
    assert labels["covering"] == []


GROWN = """
name = "growth"
schemes = ["rs:4,2"]
generation = "quincy"
[cluster]
hosts = 7
osds_per_host = 2
pg_num = 32
drive_bytes = "100GB"
stored_bytes = "20GB"
op_queue = "fifo"
[workload]
ops = ["read"]
patterns = ["rand"]
image_bytes = "1GiB"
duration_s = 5
queue_depth = 1
[[changes]]
kind = "add"
hosts = 1
"""


def rehearsal_page():
    """Return the report of a rehearsal with all its sections: findings, commands, figures, settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "SHARDS_MAX", 200)
        patch.setattr(samples, "REQUESTS_MAX", 20_000)
        document = rehearse(parse_scenario(GROWN))
    return report_of_rehearsal(
        "growth",
        "One more host.",
        document,
        outside=["cluster.drive: got hdd-7200"],
        warnings=document["warnings"],
    )


def load_page():
    """Return the report of a load curve with points in a steady state and past saturation."""
    scenario = load_scenario(
        "quickstart", sets=["workload.ops=read", "workload.patterns=rand"]
    )
    settings = CurveSettings(
        replications=2, requests=200, points_max=8, p99_bounds_s=[0.005]
    )
    curves = load_curves(scenario, settings, jobs=1)
    document = answer_of_load(scenario, curves, settings).document
    return report_of_load(scenario, curves, document)


def question_page():
    """Return a page of the gallery whose question has been answered."""
    asked = Prediction("How many shards?", "shards", 6.0, "Because it does.")
    return play_page(explain("read", ["rs:6,3"], 4096), asked)


def explorer_page_of_sweep():
    """Return the report of a sweep."""
    plan, result = swept()
    return report_of_sweep(plan, result, draw_sweep(result.aggregated, plan.keys))


NEW_PAGES = {
    "explorer": explorer_page_of_sweep,
    "load": load_page,
    "question": question_page,
    "rehearsal": rehearsal_page,
}


@needs_axe
@pytest.mark.parametrize("name", NEW_PAGES)
def test_axe_finds_no_violation_in_a_report(browser, tmp_path, name):
    path = tmp_path / f"{name}.html"
    path.write_text(NEW_PAGES[name](), encoding="utf-8")
    for width in WIDTHS:
        for theme in THEMES:
            show(browser, width, theme)
            browser.get(path.as_uri())
            assert violations(browser) == [], (width, theme)
            if name == "question":
                answer_question(browser)
                assert violations(browser) == [], (width, theme)


def answer_question(browser):
    from selenium.webdriver.common.keys import Keys

    browser.find_element("id", "guessed").send_keys("3", Keys.ENTER)
    assert browser.find_element("id", "picture").is_displayed()


@pytest.fixture
def explorer(browser, pages):
    """Open the report of a sweep from disk, and fail if the browser logs anything."""
    show(browser, 1280, "light")
    browser.get_log("browser")
    browser.get("about:blank")
    browser.get((pages / "sweep.html").as_uri())
    yield browser
    assert browser.get_log("browser") == []


def curves(browser):
    """Return the values that each scheme's curve shows, and the table of the selected cell."""
    return browser.execute_script(
        "const values = (curve) => [...curve.querySelectorAll('.mark')].map((mark) => +mark.dataset.value);"
        "const cells = (row) => [...row.children].map((cell) => cell.textContent);"
        "return [Object.fromEntries([...document.querySelectorAll('#plot .curve')]"
        "  .map((curve) => [curve.dataset.scheme, values(curve)])),"
        "  [...document.querySelectorAll('#cell tr')].map(cells)];"
    )


def means_of(result, scheme, **where):
    """Return the throughputs of a scheme in order of depth [MB/s]."""
    rows = result.aggregated.filter(pl.col("scheme") == scheme, **where)
    return (rows.sort("workload.queue_depth")["throughput_bytes_per_s"] / 1e6).to_list()


def test_an_explorer_on_disk_follows_its_sliders(explorer):
    from selenium.webdriver.common.keys import Keys

    # given: the same sweep, whose cells are equal because its seeds are
    _, result = swept()
    before, table = curves(explorer)
    small = means_of(result, "rep:3", block_size_bytes=4096)
    assert before["3-replication"] == pytest.approx(small, rel=1e-4)
    assert table[0] == ["", "3-replication", "RS(4,2)"]
    # when: the slider of the block size moves by keyboard
    slider = explorer.find_element("id", "axis-1")
    slider.send_keys(Keys.ARROW_RIGHT)
    # then: curve and table are those of 64 KiB
    assert slider.get_attribute("aria-valuetext") == "64KiB"
    after, _ = curves(explorer)
    large = means_of(result, "rep:3", block_size_bytes=65536)
    assert after["3-replication"] == pytest.approx(large, rel=1e-4)
    # when: the depth, which the curves run along, moves to 4
    explorer.find_element("id", "axis-0").send_keys(Keys.ARROW_RIGHT)
    # then: the curves stay, the table is that of depth 4
    same, table = curves(explorer)
    assert same == after
    shown = float(table[1][1].split()[0].replace(",", ""))
    assert shown == pytest.approx(large[1], rel=0.005)
    # The failed cell is a gap in the curve, and the table says why.
    assert len(after["RS(4,2)"]) == 3
    assert table[-1][2] == "failed: the worker was killed"
    said = explorer.find_element("id", "said").get_attribute("textContent")
    assert "failed: the worker was killed" in said


def test_the_address_of_an_explorer_holds_its_state(explorer):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    explorer.find_element("id", "axis-1").send_keys(Keys.END)
    Select(explorer.find_element("id", "metric")).select_by_value("latency_p99_ns")
    Select(explorer.find_element("id", "scale")).select_by_value("log")
    time.sleep(0.4)
    seen = curves(explorer)
    address = explorer.current_url
    explorer.get("about:blank")
    explorer.get(address)
    assert curves(explorer) == seen
    assert "99th" in explorer.find_element("id", "plot").get_attribute("aria-label")


def test_an_explorer_gives_its_rows_as_csv(explorer, tmp_path):
    folder = {"behavior": "allow", "downloadPath": str(tmp_path)}
    explorer.execute_cdp_cmd("Browser.setDownloadBehavior", folder)
    download = explorer.find_element("id", "download")
    # It lies at the lower edge of the window, and the page would scroll smoothly while the click comes.
    explorer.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", download
    )
    download.click()
    deadline = time.monotonic() + 10
    # A browser first writes an empty file of this name.
    while time.monotonic() < deadline:
        if any(path.stat().st_size for path in tmp_path.glob("*.csv")):
            break
        time.sleep(0.05)
    (path,) = tmp_path.glob("*.csv")
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    # 4 depths × 2 sizes × 2 schemes, one of which failed
    assert len(rows) == 15
    assert rows[0]["scheme"] == "3-replication"
    assert float(rows[0]["throughput [MB/s]"]) > 0


def test_a_question_comes_before_the_picture(browser, tmp_path):
    from selenium.webdriver.common.keys import Keys

    # given
    asked = Prediction("How many shards?", "shards", 6.0, "Because it does.")
    path = tmp_path / "asked.html"
    path.write_text(
        play_page(explain("read", ["rs:6,3"], 4096), asked), encoding="utf-8"
    )
    show(browser, 1280, "light")
    browser.get_log("browser")
    # when
    browser.get(path.as_uri())
    # then: neither picture nor answer
    picture = browser.find_element("id", "picture")
    answer = browser.find_element("id", "answer")
    assert not picture.is_displayed()
    assert not answer.is_displayed()
    # when
    browser.find_element("id", "guessed").send_keys("3", Keys.ENTER)
    # then
    assert picture.is_displayed()
    assert "Your guess of 3 is 2 times too low." in answer.text
    assert "Simulated: 6 shards. Because it does." in answer.text
    assert browser.switch_to.active_element == answer
    # A link to a step opens there, but asks all the same.
    browser.get("about:blank")
    browser.get(f"{path.as_uri()}#step=3")
    assert not browser.find_element("id", "picture").is_displayed()
    assert not browser.find_element("id", "answer").is_displayed()
    browser.find_element("id", "give-up").click()
    assert browser.find_element("id", "picture").is_displayed()
    assert browser.find_element("id", "what").text.startswith("3 of ")
    assert browser.get_log("browser") == []
