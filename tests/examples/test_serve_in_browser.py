"""The page of stripesim serve in a real browser: typed, clicked, by keyboard, narrow and wide, day and night.

Skipped where no Chromium with its driver is installed (Debian: ``apt-get install chromium chromium-driver``).
"""

import os
import secrets
import socket
import threading
import time
from importlib.resources import files
from pathlib import Path

import pytest

import stripesim
from stripesim.scenarios.answers.explain.play import play_page
from stripesim.scenarios.answers.explain.request import explain
from support.axe import needs_axe, violations
from support.chromium import POLL_S, headless_chromium
from support.small_experiments import (
    option_after_a_while,
    option_with_quick_rebuild,
    run_first_points,
    run_no_experiment,
    run_small_experiment,
    run_small_growth,
    run_until_stopped,
)

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
from selenium.webdriver import Keys  # noqa: E402 - after the check that it is there
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402 - after the check that it is there
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402 - after the check that it is there

from stripesim.scenarios.schema.scenario import parse_scenario  # noqa: E402 - after the check that it is there
from stripesim.web.app import create_app  # noqa: E402 - after the check that it is there
from stripesim.web.jobs import job_id  # noqa: E402 - after the check that it is there

COUNTS = ("hosts", "osds_per_host")
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
[durability]
afr = 0.01
repair_bytes_per_s = 100e6
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stripesim.web.app.option_of", option_with_quick_rebuild)
        # Each test opens a tab, and on a busy machine jobs of earlier tests still run.
        patch.setattr("stripesim.web.jobs.RUNNING_MAX", 100)
        # Every change of a value simulates, though few tests read the result.
        patch.setattr("stripesim.web.jobs.run_experiment", run_no_experiment)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def small_experiments(address, monkeypatch):
    """Simulate with few requests, for tests that look at the pictures."""
    monkeypatch.setattr("stripesim.web.jobs.run_experiment", run_small_experiment)


@pytest.fixture
def first_points(address, monkeypatch):
    """Simulate as for a user, but only the first points of a curve."""
    monkeypatch.setattr("stripesim.web.jobs.run_experiment", run_first_points)


@pytest.fixture
def running_workers(address, chrome):
    """Start the server's workers, for tests of the processor time that they use after that."""
    chrome.get(f"{address}?one_cluster=1&a.hosts=9")
    until(chrome, lambda browser: "of 8" in progress(browser))
    until(chrome, lambda browser: "Simulating" not in progress(browser))


@pytest.fixture(scope="module")
def chrome():
    with headless_chromium("browser") as browser:
        yield browser


@pytest.fixture
def own_jobs(address, monkeypatch):
    """Share no job with other tests, whose stand-ins simulate the same values differently."""
    test = secrets.token_hex(4)

    def own_job_id(options, settings):
        return job_id(options, settings) + test

    for module in ("app", "jobs"):
        monkeypatch.setattr(f"stripesim.web.{module}.job_id", own_job_id)


@pytest.fixture
def page(chrome, address, own_jobs, request):
    """Open the page on a desk, for a query if a test names one. Fail if the browser logs anything."""
    chrome.get_log("browser")
    resize(chrome, 1280)
    chrome.get(address + getattr(request, "param", ""))
    yield chrome
    assert chrome.get_log("browser") == []


def resize(browser, width, height=900):
    metrics = {
        "width": width,
        "height": height,
        "deviceScaleFactor": 1,
        "mobile": width < 500,
    }
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def results(browser):
    """Return the answer and the numbers as shown."""
    return "\n".join(
        browser.find_element("id", key).text for key in ("results", "numbers")
    )


def address_has(text):
    return lambda browser: text in browser.current_url


def type_into(browser, name, text):
    field = browser.find_element("name", name)
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(text)


def marks(browser, side):
    """Return the number of points of a load curve."""
    return (
        len(browser.find_elements("css selector", f"#picture-curve .mark.{side} title"))
        - 1
    )  # that of the legend


def stop_simulating(browser):
    """Type a wrong value, as otherwise the page's simulation goes on after the test."""
    type_into(browser, "a.hosts", "x")
    until(
        browser, lambda _: "see the problems" in browser.find_element("id", "job").text
    )


def processor_s_of_children():
    """Return the processor time that processes of this one have used, such as the server's workers [s]."""
    ticks = 0
    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def progress(browser):
    return browser.find_element("css selector", "#job .progress").text


def until(browser, holds, seconds=60):
    # The page may replace an element while it is read.
    stale = (StaleElementReferenceException,)
    wait = WebDriverWait(browser, seconds, POLL_S, ignored_exceptions=stale)
    wait.until(holds)


def error_next_to(browser, name):
    """Return the error that a field points to."""
    field = browser.find_element("name", name)
    return browser.find_element("id", field.get_attribute("aria-describedby"))


def raw_capacities(browser):
    """Return the raw capacity of both options as shown."""
    row = browser.find_element("xpath", "//tr[th[text()='Raw capacity']]")
    return [cell.text for cell in row.find_elements("tag name", "td")[:2]]


def open_group(browser, name):
    """Open a group of inputs, which a narrow page has closed."""
    summary = browser.find_element("xpath", f"//summary[text()='{name}']")
    if not browser.execute_script("return arguments[0].parentNode.open", summary):
        summary.send_keys(Keys.ENTER)


def picture(browser, key):
    """Return what a picture says, or nothing before it is there."""
    found = browser.find_elements("css selector", f"#picture-{key}")
    return found[0].get_attribute("textContent") if found else ""


def bars_of(browser, key, label):
    """Return the bars of a picture whose titles begin with a label."""
    titles = browser.find_elements("css selector", f"#picture-{key} title")
    texts = [title.get_attribute("textContent") for title in titles]
    return [text for text in texts if text.startswith(label)]


def table_of(browser, key):
    """Return the cells of each row of a picture's table, by the first one."""
    rows = browser.find_elements("css selector", f"#picture-{key} tbody tr")
    cells = [
        [cell.get_attribute("textContent") for cell in row.find_elements("xpath", "*")]
        for row in rows
    ]
    return {name: others for name, *others in cells}


def test_typing_recomputes_and_the_address_keeps_it(page):
    assert "123 TB" in results(page)
    type_into(page, "a.hosts", "16")
    until(page, lambda browser: "246 TB" in results(browser))
    until(page, address_has("a.hosts=16"))
    page.get(page.current_url)
    assert page.find_element("name", "a.hosts").get_attribute("value") == "16"
    assert "246 TB" in results(page)


def test_the_back_button_restores_the_earlier_values(page):
    type_into(page, "a.hosts", "16")
    until(page, address_has("a.hosts=16"))
    type_into(page, "a.hosts", "24")
    until(page, address_has("a.hosts=24"))
    page.back()
    until(page, lambda browser: "246 TB" in results(browser))
    assert "a.hosts=16" in page.current_url
    assert page.find_element("name", "a.hosts").get_attribute("value") == "16"


def test_a_number_opens_its_why_by_keyboard_alone_and_keeps_it(page):
    summary = page.find_element("css selector", "#numbers summary")
    page.execute_script("arguments[0].focus()", summary)
    ActionChains(page).send_keys(Keys.ENTER).perform()
    until(page, lambda browser: "32 OSDs" in results(browser))
    # It stays open while other values change.
    type_into(page, "a.hosts", "16")
    until(page, lambda browser: "64 OSDs" in results(browser))


def test_a_slider_moves_its_field_by_keyboard(page):
    slider = page.find_element("css selector", "[data-field=field-a-hosts]")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert page.find_element("name", "a.hosts").get_attribute("value") == "9"
    # 9 hosts with 4 drives of 3.84 TB.
    until(page, lambda browser: raw_capacities(browser) == ["138 TB", "138 TB"])
    # Typing moves the slider. Its stops are 1 to 32, then larger steps.
    type_into(page, "a.hosts", "12")
    assert slider.get_attribute("value") == "11"


def test_a_print_shows_all_inputs(page):
    # Given a window that shows a part of the inputs
    resize(page, 1280, 500)
    room = (
        "const inputs = document.querySelector('.inputs');"
        "return [inputs.clientHeight, inputs.scrollHeight]"
    )
    seen, whole = page.execute_script(room)
    assert seen < whole
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        seen, whole = page.execute_script(room)
        assert seen == whole
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_option_b_keeps_the_cluster_that_it_shared(page):
    type_into(page, "a.hosts", "16")
    page.find_element("name", "one_cluster").click()
    type_into(page, "a.hosts", "8")
    until(page, lambda browser: raw_capacities(browser) == ["123 TB", "246 TB"])


@pytest.mark.parametrize(
    ("base", "of_load"),
    [
        ("served", {"block_kib", "read_percent"}),
        ("s3", {"object_kib", "put", "get", "head", "list", "delete"}),
    ],
)
def test_every_control_is_reached_by_tab_and_has_a_label(page, base, of_load):
    page.get(f"{page.current_url}?base={base}")
    names = []
    for _ in range(120):
        ActionChains(page).send_keys(Keys.TAB).perform()
        names.append(page.execute_script("return document.activeElement.name"))
        if page.execute_script("return document.activeElement.closest('.answers')"):
            break
    assert {
        *of_load,
        "a.scheme",
        "b.scheme",
        "one_cluster",
        "a.hosts",
        "b.failure_domain",
        "a.parameters",
        "rate_per_s",
        "repair_mb_per_s",
        "file",
    } <= set(names)
    unlabelled = page.execute_script(
        "return [...document.querySelectorAll('input:not([type=hidden]), select')]"
        ".filter(one => !one.labels.length && !one.ariaLabel).map(one => one.name)"
    )
    assert unlabelled == []


def test_simulated_answers_go_away_without_a_valid_option(page, small_experiments):
    # One field holds the hosts of both options.
    page.get(f"{page.current_url}?one_cluster=1")
    until(page, lambda browser: "At the load of the form" in simulated(browser))
    type_into(page, "a.hosts", "0")
    until(page, lambda browser: simulated(browser) == "")
    type_into(page, "a.hosts", "9")
    until(page, lambda browser: "At the load of the form" in simulated(browser))


def test_a_timeline_shows_both_options_where_their_lines_coincide(
    page, small_experiments
):
    lines = "#picture-failure polyline.{}"
    until(
        page, lambda browser: browser.find_elements("css selector", lines.format("b"))
    )
    widths = [
        float(
            page.find_element("css selector", lines.format(side))
            .value_of_css_property("stroke-width")
            .removesuffix("px")
        )
        for side in ("a", "b")
    ]
    # The line of A is drawn first.
    assert widths[0] > 2 * widths[1]


def simulated(browser):
    return browser.find_element("id", "simulated").text.strip()


@pytest.mark.parametrize("width", [360, 1280])
def test_shares_of_operations_on_objects_are_typed_and_kept(page, width):
    resize(page, width)
    page.get(f"{page.current_url}?base=s3")
    open_group(page, "Load")
    shown = page.find_element("id", "closed")
    assert "list" not in shown.text
    type_into(page, "list", "5")
    type_into(page, "delete", "7.5")
    until(page, address_has("list=5&delete=7.5"))
    # A lone LIST and DELETE have their bars.
    until(page, lambda browser: bars_of(browser, "time", "B rs:4,2, delete"))
    assert bars_of(page, "time", "A rep:3, list")
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    page.get(page.current_url)
    assert page.find_element("name", "delete").get_attribute("value") == "7.5"
    # Without any operation, the first share has the error.
    open_group(page, "Load")
    for op in ("put", "get", "list", "delete"):
        type_into(page, op, "0")
    until(page, lambda browser: error_next_to(browser, "put").is_displayed())


@pytest.mark.parametrize(("base", "width"), [("served", 1280), ("s3", 360)])
def test_added_hosts_take_their_part_of_the_data(page, monkeypatch, base, width):
    monkeypatch.setattr("stripesim.web.jobs.run_experiment", run_small_growth)
    # Given eight hosts, with three copies or RS(4,2) of 9 TB. Recovery passes through each of the groups.
    resize(page, width)
    page.get(f"{page.current_url}?base={base}&one_cluster=1&stored_tb=9&a.pg_num=64")
    # When two more are typed
    open_group(page, "Failures and growth")
    type_into(page, "added_hosts", "2")
    until(page, address_has("added_hosts=2"))
    until(page, lambda browser: picture(browser, "added").count("moves") == 2, 120)
    # Then a fifth of the data moves to them. CRUSH also moves some between the others.
    assert "Add 2 hosts" in picture(page, "added")
    rows = table_of(page, "added")
    for text, stored_tb in zip(rows["data moved"], (27, 13.5), strict=True):
        assert 0.18 < float(text.removesuffix(" TB")) / stored_tb < 0.36
    for phase in ("before", "during", "after"):
        assert all(float(text.split()[0]) > 0 for text in rows[f"p99 {phase}"])
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_an_error_appears_and_disappears_when_fixed(page):
    field = page.find_element("name", "b.scheme")
    field.clear()
    field.send_keys("rs:9,9")
    until(page, lambda browser: "Option B is invalid" in results(browser))
    field.clear()
    field.send_keys("rs:3,2")
    until(page, lambda browser: "is invalid" not in results(browser))


def upload(page, path, expected="base=upload."):
    """Choose a file and press the button, as a person does."""
    page.find_element("name", "file").send_keys(str(path))
    button = page.find_element("xpath", "//button[text()='Upload']")
    # The page scrolls smoothly, and a click does not wait for it.
    page.execute_script(
        "arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", button
    )
    button.click()
    until(page, address_has(expected), 60)


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


def test_own_parameters_are_uploaded_by_a_click(page):
    shipped = files("stripesim.calibration.parameters") / "nvme.toml"
    upload(page, shipped, "a.parameters=own-")
    shown = page.find_element("name", "a.parameters").get_attribute("value")
    assert shown.startswith("own-")


@pytest.mark.parametrize(
    ("width", "typed"),
    [(360, "9999"), (1280, "-3"), (1280, ""), (1280, "9999"), (1280, "4.5")],
)
def test_a_bad_value_is_reported_next_to_its_field_which_keeps_the_focus(
    page, width, typed
):
    # Each option has its own cluster, so that B stays valid.
    page.get(f"{page.current_url}?a.hosts=8")
    resize(page, width)
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
    until(page, address_has(f"a.hosts={typed}&"))
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


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_fits_and_is_legible(page, width, theme):
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": theme}]},
    )
    resize(page, width)
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
    assert shades == []


# Clusters of seven OSDs. For the default ones of 32, finding the saturation takes ten times as long.
@pytest.mark.parametrize(
    "page",
    ["?one_cluster=1&a.hosts=7&a.osds_per_host=1&read_percent=100"],
    indirect=True,
)
@pytest.mark.usefixtures("running_workers", "first_points")
def test_the_load_curve_of_both_options_is_drawn_point_by_point(page):
    before_s = processor_s_of_children()
    until(page, lambda browser: min(marks(browser, "a"), marks(browser, "b")) >= 4, 120)
    # A second on an idle machine.
    assert processor_s_of_children() - before_s < 5
    # Though neither curve has ended.
    assert "Simulating" in progress(page)
    stop_simulating(page)


def test_new_values_stop_what_is_simulated_for_earlier_ones(page, monkeypatch):
    # Given experiments of both workers that do not end
    monkeypatch.setattr("stripesim.web.jobs.run_experiment", run_until_stopped)
    type_into(page, "a.hosts", "31")
    until(page, lambda browser: "Simulating" in progress(browser))
    # When other values take their place
    stop_simulating(page)
    # Then the workers simulate the next ones.
    monkeypatch.setattr("stripesim.web.jobs.run_experiment", run_small_experiment)
    type_into(page, "a.hosts", "8")
    until(page, lambda browser: min(marks(browser, "a"), marks(browser, "b")) >= 3)
    stop_simulating(page)


@pytest.mark.usefixtures("first_points")
def test_the_first_answer_is_on_the_first_screen_of_a_phone(page):
    resize(page, 360)
    page.get(page.current_url)
    until(page, lambda browser: marks(browser, "b") >= 4, 60)
    ends = page.execute_script(
        "return ['#results .headline', '#picture-curve > svg'].map(s =>"
        " document.querySelector(s).getBoundingClientRect().bottom)"
    )
    assert max(ends) <= 900
    # Nothing scrolls sideways, with everything open.
    page.execute_script(
        "document.querySelectorAll('details').forEach(d => { d.open = true })"
    )
    assert page.execute_script("return document.documentElement.scrollWidth") <= 360


# Texts that a field may show, but has no room for. Lists need some of it for an arrow.
CUT_TEXTS = """
const pen = document.createElement("canvas").getContext("2d");
const found = [];
for (const field of document.querySelectorAll("#plan input[placeholder], #plan select")) {
  if (!field.offsetParent) continue;
  const style = getComputedStyle(field);
  pen.font = style.font;
  const isList = field.tagName === "SELECT";
  const texts = isList ? [...field.options].map((one) => one.text) : [field.placeholder];
  const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
  const room = field.clientWidth - padding - (isList ? 20 : 0);
  for (const text of texts) if (pen.measureText(text).width > room) found.push(`${field.name}: ${text}`);
}
return found;
"""


@pytest.mark.parametrize("width", [360, 1280])
def test_no_text_of_a_field_is_cut_off(page, width):
    resize(page, width)
    # Each option with its own cluster, so that all fields are there twice.
    page.get(f"{page.current_url}?a.hosts=8")
    page.execute_script(
        "document.querySelectorAll('.group').forEach((one) => { one.open = true })"
    )
    assert page.execute_script(CUT_TEXTS) == []


def test_a_tab_that_is_closed_says_so(page, address, monkeypatch):
    closed = []
    monkeypatch.setattr(
        "stripesim.web.jobs.JobBoard.close", lambda board, tab: closed.append(tab)
    )
    first = page.current_window_handle
    page.switch_to.new_window("tab")
    page.get(address)
    tab = page.find_element("name", "tab").get_attribute("value")
    page.close()
    page.switch_to.window(first)
    until(page, lambda _: closed == [tab])


def test_answers_to_earlier_values_are_pale_while_new_ones_take_long(page, monkeypatch):
    monkeypatch.setattr("stripesim.web.app.option_of", option_after_a_while)
    shown = page.find_element("id", "numbers")
    assert shown.value_of_css_property("opacity") == "1"
    type_into(page, "a.hosts", "23")
    until(page, lambda _: shown.value_of_css_property("opacity") == "0.5")
    until(page, lambda _: shown.value_of_css_property("opacity") == "1")


@needs_axe
@pytest.mark.usefixtures("small_experiments")
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violation(chrome, address, tmp_path, width, theme):
    """On the live page, with mistakes on it too, on a cluster's capacity and on a request that is played."""
    played, capacity = tmp_path / "write.html", tmp_path / "capacity.html"
    played.write_text(play_page(explain("write", ["rep:3", "rs:4,2"], 4096)), "utf-8")
    data = Path(__file__).resolve().parents[1] / "unit" / "data" / "ceph16-report.json"
    capacity.write_text(stripesim.import_report(data).page(), "utf-8")
    features = [{"name": "prefers-color-scheme", "value": theme}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    resize(chrome, width)
    wrong = f"{address}?a.scheme=rs:9&b.failure_domain=x&problem=%3Cscript%3E"
    files_shown = (f"{played.as_uri()}#step=30", capacity.as_uri())
    for url in (address, wrong, f"{address}?base=s3", *files_shown):
        chrome.get(url)
        if url == address:
            until(chrome, lambda browser: "Simulated 8 of 8" in progress(browser), 120)
        assert violations(chrome) == [], url


def test_the_upload_is_in_the_window_and_not_covered(page):
    resize(page, 1400, 1000)
    page.refresh()
    covers = page.execute_script(
        "const box = document.querySelector('[action=\"/upload\"] button').getBoundingClientRect();"
        "const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);"
        "return top && top.textContent"
    )
    assert covers == "Upload"
