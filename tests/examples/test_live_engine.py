"""The engine in a page changes the same bytes as native code, and its rows are those of the command line."""

import json
import shlex
import shutil
import subprocess
import time
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

import stripesim
from stripesim.models.jit import CompiledKernel, prebuilt
from stripesim.scenarios.answers.engine_page import page as live_engine
from stripesim.sim import kernels
from stripesim.sim.engine.compiled.engine import run
from stripesim.sim.engine.compiled.kernel import run_machine
from stripesim.sim.observe.resource_words import member_words
from support.axe import needs_axe, violations
from support.chromium import headless_chromium

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "support" / "engine_page.mjs"
ENGINE = live_engine.PARTS / "engine.js"
WASM = prebuilt.FOLDER / prebuilt.WASM
FEW = {"schemes": ["rs:4,2"]}
SOON = {
    "workload.duration_s": 3.0,
    "workload.queue_depth": 4,
    "workload.image_bytes": "64MiB",
}
#: Scenarios, shortened, each with rare events early.
SCENARIOS = {
    "quickstart": FEW | {"workload.requests": 300},
    "repair": {
        "schemes": ["rs:6,2"],
        "workload.requests": 2000,
        "workload.image_bytes": "256MiB",
    },
    "faults": FEW
    | SOON
    | {
        "faults.events": [{"hosts": [2], "at_s": 0.1, "kind": "process"}],
        "faults.down_out_interval_s": 1.0,
    },
    "slow-drive": FEW
    | SOON
    | {
        "workload.duration_s": 1.0,
        "faults.events": [{"osds": [9], "at_s": 0.1, "kind": "slow", "factor": 10}],
        "changes": [{"osds": [9], "at_s": 0.3, "kind": "out"}],
    },
    # A rehearsal: two hosts come, and an OSD's data moves away while others are filled.
    "rehearsal": FEW
    | SOON
    | {
        "changes": [
            {"kind": "add", "hosts": 2, "at_s": 0.1},
            {"kind": "out", "osds": [3], "at_s": 0.5},
        ],
    },
}
#: What a scenario changes that does not ship.
BASES = {"rehearsal": "quickstart"}
#: Calls of a scenario that are compared, and their bytes, at most.
CALLS = 12
CALL_BYTES = 12_000_000

pytestmark = pytest.mark.skipif(
    not WASM.exists()
    or not prebuilt.is_current([kernel.function for kernel in kernels.example_calls()]),
    reason="no WebAssembly of these sources: make kernels, with ziglang installed",
)


def node(tmp_path, given):
    """Return what the engine answers in Node, or skip the test where there is no Node."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not installed (apt-get install nodejs)")
    path = tmp_path / "input.json"
    path.write_text(json.dumps({"described": live_engine.described(), **given}))
    done = subprocess.run(
        [found, SCRIPT, ENGINE, WASM, path],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def recorded(name, monkeypatch):
    """Run a scenario natively, and return the world before and after some calls, with the status."""
    native = CompiledKernel.__call__
    calls = []

    def record(self, *arguments):
        if self is not run_machine:
            return native(self, *arguments)
        (world,) = arguments
        before = [array.copy() for array in world]
        status = native(self, world)
        if sum(array.nbytes for array in before) < CALL_BYTES:
            calls.append((before, [array.copy() for array in world], status))
        # Keep the first calls and the last ones, which are in the middle of recovery.
        if len(calls) > CALLS:
            del calls[CALLS // 2]
        return status

    with monkeypatch.context() as patched:
        patched.setattr(CompiledKernel, "__call__", record)
        stripesim.run(BASES.get(name, name), costs=False, sets=SCENARIOS[name])
    return calls


def stored(calls):
    """Return the calls as JSON, and their bytes."""
    described = []
    blob = bytearray()
    for before, after, status in calls:
        arrays = []
        for old, new in zip(before, after, strict=True):
            arrays.append({"shape": old.shape, "at": len(blob), "length": old.nbytes})
            blob += old.tobytes() + new.tobytes()
        described.append({"status": status, "arrays": arrays})
    return described, bytes(blob)


@pytest.fixture(scope="module", params=list(SCENARIOS))
def calls(request):
    with pytest.MonkeyPatch.context() as monkeypatch:
        return stored(recorded(request.param, monkeypatch))


def test_webassembly_in_node_changes_the_same_bytes_as_native_code(calls, tmp_path):
    described, blob = calls
    path = tmp_path / "bytes"
    path.write_bytes(blob)
    answers = node(tmp_path, {"calls": described, "bytes": str(path)})
    # An answer names the array that differs.
    assert answers == [""] * len(described)
    assert len(answers) >= 3
    changed = [one for one in described if one["status"] != 0]
    assert changed


COMPARE = """
const [described, calls, text, module, done] = arguments;
const bytes = stripesim.fromBase64(text);
stripesim.instantiate(stripesim.fromBase64(module)).then((exports) => {
  done(calls.map((one) => {
    const world = {};
    one.arrays.forEach((part, index) => {
      const slice = bytes.subarray(part.at, part.at + part.length);
      world[described.arrays[index].name] = { shape: part.shape, bytes: slice };
    });
    const { status, at } = stripesim.call(exports, described, world);
    const differ = one.arrays.filter((part, index) => {
      const own = new Uint8Array(exports.memory.buffer, at[index], part.length);
      const wanted = bytes.subarray(part.at + part.length, part.at + 2 * part.length);
      return own.some((byte, position) => byte !== wanted[position]);
    });
    return status === one.status && differ.length === 0;
  }));
}, (error) => done(String(error)));
"""


@pytest.fixture(scope="module")
def chrome():
    with headless_chromium("browser") as opened:
        yield opened


def test_webassembly_in_chromium_changes_the_same_bytes_as_native_code(
    calls, chrome, tmp_path
):
    described, blob = calls
    # The driver sends them as text, so the smallest ones suffice.
    least = sorted(described, key=lambda one: sum(a["length"] for a in one["arrays"]))[
        :4
    ]
    kept = bytearray()
    for one in least:
        for part in one["arrays"]:
            start = part["at"]
            part["at"] = len(kept)
            kept += blob[start : start + 2 * part["length"]]
    page = tmp_path / "page.html"
    page.write_text(f"<script>{ENGINE.read_text('utf-8')}</script>")
    chrome.get(page.as_uri())
    answers = chrome.execute_async_script(
        COMPARE,
        live_engine.described(),
        least,
        b64encode(kept).decode(),
        b64encode(WASM.read_bytes()).decode(),
    )
    assert answers == [True] * len(least)


LOADS = {
    "schemes": {"RS(4,2)": ["rs:4,2"]},
    "workload.ops": {"write": ["write"]},
    "workload.block_sizes_bytes": {"64 KiB": ["64k"]},
}
HARDWARE = {
    "cluster.drive": {"hard disk": "hdd-7200"},
    "network": {"10 Gb/s": 10.0},
    "cluster.cores_per_host": {"4": 4},
}
SETS = live_engine.sets_of(
    {key: next(iter(values.values())) for key, values in (LOADS | HARDWARE).items()}
)


@pytest.fixture(scope="module")
def small():
    return live_engine.programs(LOADS, HARDWARE)


@pytest.mark.parametrize(
    ("seed", "requests", "load"),
    [
        (1, 300, {"workload.queue_depth": 8}),
        (3, 500, {"workload.queue_depth": 256}),
        (2, 400, {"workload.kind": "open", "workload.rate_per_s": 330.0}),
    ],
    ids=["few in flight", "many in flight", "Poisson"],
)
def test_a_row_of_the_page_is_that_of_the_engine(small, tmp_path, seed, requests, load):
    rate = load.get("workload.rate_per_s")
    row = {
        "program": small["programs"][f"000000{1 if rate else 0}{seed}"],
        "state": str(live_engine.seed_state(seed)),
        "queue_depth": load.get("workload.queue_depth", 0),
        "requests": requests,
        "rate": rate,
        "gaps": live_engine.exponentials(seed) if rate else None,
    }
    ((digest, end_ns),) = node(tmp_path, {"runs": [row], "arrays": small["arrays"]})
    sets = {**SETS, **load, "workload.requests": requests}
    native = run(live_engine.program_of(sets, seed))
    completed = native.streams[0].completed_ns.astype("<i8").tobytes()
    # As a document digests the digests of its cells.
    assert digest == sha256(sha256(completed).digest()).hexdigest()
    assert end_ns == native.end_ns


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        first = {
            key: dict(list(values.items())[:1])
            for key, values in live_engine.HARDWARE.items()
        }
        two = {**live_engine.LOADS, "workload.ops": {"write": ["write"]}}
        monkeypatch.setattr(live_engine, "HARDWARE", first)
        monkeypatch.setattr(live_engine, "LOADS", two)
        path = tmp_path_factory.mktemp("page") / "engine.html"
        path.write_text(live_engine.engine_page(), encoding="utf-8")
        return path


def _answered(chrome, before=""):
    for _ in range(200):
        body = "return document.body.dataset.answered || ''"
        answered = chrome.execute_script(body)
        if answered not in ("", before):
            return answered
        time.sleep(0.05)
    raise AssertionError(chrome.find_element("id", "error").text or "no answer")


def _choose(chrome, control, value):
    """Set a control, wait for the whole answer, and return what the engine did until the first curve."""
    before = chrome.execute_script("return document.body.dataset.answered")
    chrome.execute_script(
        "const control = document.getElementById(arguments[0]);"
        "control.value = arguments[1];"
        "control.dispatchEvent(new Event('input', {bubbles: true}));",
        control,
        str(value),
    )
    _answered(chrome, before)
    return json.loads(chrome.execute_script("return document.body.dataset.first"))


@pytest.mark.parametrize(
    ("choices", "shown"),
    [
        ({"depth": 3}, "workload.queue_depth=8"),
        ({"loop": 1, "rate": 12, "seed": 3}, "workload.rate_per_s=4000"),
        (
            {
                "schemes": 2,
                "workload-block_sizes_bytes": 1,
                "requests": 2000,
                "depth": 6,
                "seed": 2,
            },
            'schemes=["rs:6,2"]',
        ),
    ],
    ids=["few in flight", "Poisson", "64 KiB, RS(6,2), 2000 requests"],
)
def test_the_command_that_the_page_names_gives_the_same_nanoseconds(
    chrome, page, command, choices, shown
):
    chrome.get(page.as_uri())
    _answered(chrome)
    before = chrome.find_element("id", "digest").text
    curve = chrome.find_element("id", "load").get_attribute("innerHTML")
    for choice in choices.items():
        _choose(chrome, *choice)
    digest = chrome.find_element("id", "digest").text
    assert digest != before
    # The point of the choice moves along the load curve.
    assert chrome.find_element("id", "load").get_attribute("innerHTML") != curve
    # A shell joins lines that end in a backslash.
    text = chrome.find_element("id", "command").text.replace("\\\n", "")
    words = shlex.split(text)
    assert words[0] == "stripesim"
    assert shown in words
    # Typed as the page shows it.
    status, out, err = command(*words[1:])
    assert status == 0, err
    document = json.loads(out)
    assert document["completions_sha256"] == digest
    assert chrome.get_log("browser") == []


def _numbers(chrome):
    """Return the numbers above the charts, by name."""
    texts = {}
    for one in chrome.find_elements("css selector", "#numbers div"):
        name, text = one.text.split("\n")
        texts[name] = text
    return texts


def test_throughput_times_latency_is_the_mean_in_flight(chrome, page):
    chrome.get(page.as_uri())
    _answered(chrome)
    for requests in (100, 2000):
        _choose(chrome, "requests", requests)
        shown = _numbers(chrome)
        rate = float(shown["throughput"].removesuffix(" /s").replace(",", ""))
        latency_s = float(shown["mean latency"].removesuffix(" ms")) / 1e3
        in_flight = float(shown["mean in flight"])
        # Three digits of each.
        assert rate * latency_s == pytest.approx(in_flight, rel=0.01)
        # 32 until no request follows the last ones.
        assert in_flight < 32
    assert in_flight > 0.95 * 32


def test_long_latencies_are_written_without_an_exponent(chrome, page):
    chrome.get(page.as_uri())
    _answered(chrome)
    written = chrome.execute_script(
        "return [0.00123456, 1.3, 999.4, 999.6, 17887.3].map((one) => ms(one * 1e6))"
    )
    assert written == ["0.00123", "1.30", "999", "1,000", "17,887"]


def test_the_address_holds_what_was_chosen(chrome, page):
    chrome.get(page.as_uri())
    _answered(chrome)
    for choice in (("schemes", 2), ("depth", 3), ("requests", 500)):
        _choose(chrome, *choice)
    digest = chrome.find_element("id", "digest").text
    chrome.refresh()
    _answered(chrome)
    assert chrome.find_element("id", "digest").text == digest
    # An address of another version names no entry of a list.
    chrome.get("about:blank")
    chrome.get(f"{page.as_uri()}#schemes=99&nonsense=1&depth=3")
    _answered(chrome)
    assert (
        chrome.execute_script("return document.getElementById('schemes').value") == "1"
    )
    assert chrome.get_log("browser") == []


def test_the_page_and_the_command_find_the_same_resources_busy(chrome, page, command):
    chrome.get(page.as_uri())
    _answered(chrome)
    # Key-value threads limit small writes. No drive and no core is near its limit.
    _choose(chrome, "requests", live_engine.REQUESTS)
    _choose(chrome, "depth", 6)
    drawn = [one.text for one in chrome.find_elements("css selector", "#busy text")]
    shown = dict(zip(drawn[::2], drawn[1::2], strict=True))
    text = chrome.find_element("id", "command").text.replace("\\\n", "")
    status, out, err = command(*shlex.split(text)[1:])
    assert status == 0, err
    document = json.loads(out)
    counted = {
        member_words(one["kind"]): f"{100 * one['utilisation']:.0f} %"
        for one in document["resources"]
    }
    assert shown.items() <= counted.items()
    assert member_words(document["rows"][0]["bottleneck"]) in shown


def test_a_rate_that_saturates_the_cluster_is_said(chrome, page, command):
    chrome.get(page.as_uri())
    _answered(chrome)
    said = chrome.find_element("id", "saturated")
    # 32 requests in flight: a closed loop offers no rate.
    assert not said.is_displayed()
    _choose(chrome, "requests", live_engine.REQUESTS)
    _choose(chrome, "loop", 1)
    # 10,000 requests/s.
    assert not said.is_displayed()
    # 100,000 requests/s.
    _choose(chrome, "rate", 40)
    words = said.text.split()
    served, offered = (float(words[at].replace(",", "")) for at in (2, 4))
    text = chrome.find_element("id", "command").text.replace("\\\n", "")
    status, out, err = command(*shlex.split(text)[1:])
    assert status == 0, err
    (row,) = json.loads(out)["rows"]
    assert row["saturated"]
    assert offered == pytest.approx(row["offered_iops"], rel=1e-3)
    # The command's rate is that until the last completion, the page's until the last arrival.
    assert served == pytest.approx(row["iops"], rel=0.1)
    assert said.text.startswith("Saturated: serves ")


def test_the_longest_name_of_a_busy_resource_is_inside_its_picture(chrome, page):
    chrome.get(page.as_uri())
    _answered(chrome)
    # Arrivals far beyond the cluster's rate fill the limit of admitted requests.
    _choose(chrome, "loop", 1)
    _choose(chrome, "rate", 30)
    names = chrome.find_elements("css selector", "#busy text.name")
    left = chrome.find_element("css selector", "#busy svg").rect["x"]
    assert max(len(name.text) for name in names) >= 40
    assert all(name.rect["x"] >= left for name in names)


def _label(chrome, picture):
    """Return what a screen reader says of a picture, in its parts."""
    svg = chrome.find_element("css selector", f"#{picture} svg")
    return svg.get_attribute("aria-label").split("; ")


def test_a_screen_reader_says_the_values_of_pictures(chrome, page):
    chrome.get(page.as_uri())
    _answered(chrome)
    # The busy resources: each bar as drawn.
    drawn = chrome.find_elements("css selector", "#busy text")
    names, shares = drawn[::2], drawn[1::2]
    bars = [
        f"{name.text} {share.text}" for name, share in zip(names, shares, strict=True)
    ]
    assert bars
    assert _label(chrome, "busy") == ["Busy resources", *bars]
    # The latency curve: the median and p99 above it are on it.
    shown = _numbers(chrome)
    said = _label(chrome, "latency")
    median, p99 = (
        float(shown[name].split()[0]) for name in ("median", "99th percentile")
    )
    assert f"50 % below {median:g}" in said
    assert f"99 % below {p99:g}" in said
    # The load curve: its eight points and the choice.
    *points, choice = _label(chrome, "load")[1:]
    assert len(points) == 8
    assert choice == f"your choice {shown['mean latency']} at {shown['throughput']}"


def test_a_screen_reader_says_what_sliders_stand_for(chrome, page):
    chrome.get(page.as_uri())
    _answered(chrome)
    # Steps of a factor of two, and of a tenth of a decade.
    _choose(chrome, "depth", 3)
    _choose(chrome, "rate", 10)
    said = {
        name: chrome.find_element("id", name).get_attribute("aria-valuetext")
        for name in ("depth", "rate", "requests")
    }
    assert said == {"depth": "8", "rate": "3,200 /s", "requests": "1,000"}


@needs_axe
def test_axe_finds_no_violation_in_the_page(chrome, page):
    chrome.get(page.as_uri())
    _answered(chrome)
    assert violations(chrome) == []


def test_the_load_curve_has_enough_ticks_to_read_it(chrome, page):
    chrome.get(page.as_uri())
    _answered(chrome)
    ticks = chrome.execute_script(
        "return [...document.querySelectorAll('#load text')]"
        ".filter(one => one.getAttribute('text-anchor') === 'end').length"
    )
    assert ticks >= 3


#: Uses of resources that the engine computes in 300 ms at 0.4 µs each. Browsers take 0.15 to 0.3 µs.
FIRST_USES = 750_000
#: Calls of the engine: the reader's choice, four points of a first curve, and a repetition with more room.
FIRST_CALLS = 6


@pytest.mark.parametrize("requests", [1000, live_engine.REQUESTS])
def test_a_choice_is_answered_by_little_work_of_the_engine(chrome, page, requests):
    chrome.get(page.as_uri())
    _answered(chrome)
    if requests != 1000:
        _choose(chrome, "requests", requests)
    choices = [
        ("depth", 0), ("depth", 8), ("depth", 5), ("schemes", 2), ("seed", 2), ("schemes", 0),
        ("workload-block_sizes_bytes", 1), ("schemes", 1), ("loop", 1), ("rate", 0), ("rate", 30),
        ("seed", 3), ("schemes", 2),
    ]  # fmt: skip
    first = {choice: _choose(chrome, *choice) for choice in choices}
    # A choice is a run of its own, not one from before.
    assert all(work["uses"] >= 10 * requests for work in first.values())
    assert {c: w for c, w in first.items() if w["uses"] > FIRST_USES} == {}
    assert {c: w for c, w in first.items() if w["calls"] > FIRST_CALLS} == {}


def test_the_page_says_that_a_first_curve_is_one_and_refines_it(chrome, page):
    chrome.get(page.as_uri())
    _answered(chrome)
    # Record what the load curve and its text look like whenever they change.
    chrome.execute_script(
        """
        globalThis.seen = [];
        const look = () => seen.push([
          document.getElementById("refined").textContent,
          document.querySelectorAll("#load .dot").length,
        ]);
        new MutationObserver(look).observe(document.getElementById("load"), {childList: true});
        """
    )
    _choose(chrome, "seed", 2)
    seen = chrome.execute_script("return seen")
    (first, points), (last, refined) = seen[0], seen[-1]
    assert "first curve" in first
    assert points == 4
    assert "first curve" not in last
    assert "1,000 requests" in last
    assert refined == 8


def test_numbers_do_not_run_into_each_other(chrome, page):
    size = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chrome.get(page.as_uri())
    _answered(chrome)
    overlapping = chrome.execute_script(
        "const cells = [...document.querySelectorAll('#numbers dd')];"
        "cells[5].textContent = '11,496,997,358 ns';"
        "return cells.filter((cell) => cell.scrollWidth > cell.clientWidth).length"
    )
    chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert overlapping == 0


def test_the_page_fits_a_phone(chrome, page):
    size = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chrome.get(page.as_uri())
    _answered(chrome)
    assert chrome.execute_script("return document.documentElement.scrollWidth") == 360
    chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
