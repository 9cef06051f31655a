"""Lessons in a page compute the answers of Python, and their files are graded with those of notebooks."""

import json
import math
import re
import shutil
import subprocess
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import stripesim
from stripesim.models.jit import prebuilt
from stripesim.notebooks import marking
from stripesim.notebooks.answers.queueing_theory import erlang_c_wait
from stripesim.notebooks.expressions import value_of, years_to_loss
from stripesim.notebooks.page_data import TracePart
from stripesim.notebooks.page_lessons import (
    FOLDER,
    Measured,
    PageLesson,
    page_lessons,
)
from stripesim.notebooks.teach import Lesson, Question, answer_text, signature
from stripesim.scenarios.answers.engine_page.page import PARTS
from stripesim.sim import kernels
from stripesim.sim.engine.compiled.engine import run as run_compiled
from support.axe import needs_axe, violations
from support.chromium import headless_chromium

SCRIPT = Path(__file__).resolve().parents[1] / "support" / "lesson_page.mjs"
WASM = prebuilt.FOLDER / prebuilt.WASM
SCRIPTS = (PARTS / "engine.js", PARTS / "charts.js", FOLDER / "lesson.js")
LESSONS = {lesson.name: lesson for lesson in page_lessons()}
#: Keys as a browser gets them, as in selenium's `Keys`.
TAB = "\ue004"
ENTER = "\ue007"
SEEDS = ["1", "4711"]

pytestmark = pytest.mark.skipif(
    not WASM.exists()
    or not prebuilt.is_current([kernel.function for kernel in kernels.example_calls()]),
    reason="no WebAssembly of these sources: make kernels, with ziglang installed",
)


@cache
def page_of(name):
    return LESSONS[name].page()


@cache
def opened_in_python(name, seed):
    """Return a lesson with its problem and the answers that Python computes."""
    return LESSONS[name].open(seed)


def data_of(page):
    (text,) = re.findall(r'^<script id="data".*>\n(.*)\n</script>$', page, re.MULTILINE)
    return json.loads(text)


def node(tmp_path, data, *, seeds=(), judged=(), documents=(), numbers=()):
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not installed (apt-get install nodejs)")
    path = tmp_path / "input.json"
    given = {"data": data, "seeds": seeds, "judged": judged, "documents": documents}
    given["numbers"] = numbers
    path.write_text(json.dumps(given))
    done = subprocess.run(
        [found, SCRIPT, WASM, path, *SCRIPTS],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", LESSONS)
def test_a_page_simulates_and_asks_what_python_does(name, tmp_path):
    lesson = LESSONS[name]
    answered = node(tmp_path, data_of(page_of(name)), seeds=SEEDS)
    for seed, opened in zip(SEEDS, answered["opened"], strict=True):
        native = opened_in_python(name, seed)
        names = lesson.names(native.data)
        for run, numbers in opened["runs"].items():
            own = names[run]
            # Same nanoseconds, divided in another order.
            wanted = [
                own.rate,
                own.mean_ms,
                own.p99_ms,
                *own.met,
                own.busiest_drive,
                own.mean_drive,
            ]
            wanted += [own.other_rate, own.other_end_s]
            assert numbers == pytest.approx(wanted, rel=1e-12)
        for question, (text, value, why, hint) in zip(
            native.questions.values(), opened["questions"], strict=True
        ):
            assert text == question.text
            if isinstance(value, str):
                assert value == question.value
            else:
                assert value == pytest.approx(question.value, rel=1e-9)
            assert hint == question.hint
            assert question.solution.endswith(f". {why}")


def test_littles_law_holds_for_each_run_of_the_first_lesson():
    lesson = LESSONS["first-steps"]
    for seed in SEEDS:
        names = lesson.names(lesson.open(seed).data)
        for name, run in lesson.runs.items():
            in_flight = value_of(run.in_flight, names)
            # Rate × latency. Half a per cent is for the end of the run, when few are left in flight.
            found = names[name].rate * names[name].mean_ms / 1e3
            assert found == pytest.approx(in_flight, rel=0.01), (seed, name)


def test_the_picture_of_the_busiest_drive_gives_its_answer():
    lesson = LESSONS["read-a-cluster"]
    (asked,) = [one for one in lesson.questions if one["name"] == "the busiest drive"]
    for seed in SEEDS:
        opened = lesson.open(seed)
        names = lesson.names(opened.data)
        # As drawn, with four digits.
        bars = [
            value_of(expression, names) for _, expression in asked["picture"]["bars"]
        ]
        busiest, mean = (float(f"{bar:.4g}") for bar in bars)
        answer = opened.data.mean_busy * busiest / mean
        assert opened["the busiest drive"].judge(answer) == "right"
        # The drives of other pools are idle, and do not count.
        program = lesson.runs["read"].program(names)
        is_drive = np.array(program.resources.kinds) == "ssd"
        busy_ns = run_compiled(program).busy_ns[is_drive]
        used_ns = busy_ns[busy_ns > 0]
        assert busiest / mean == pytest.approx(
            used_ns.max() * len(used_ns) / used_ns.sum(), rel=2e-3
        )


def test_key_value_threads_limit_the_idle_cluster_of_the_ninth_lesson():
    lesson = LESSONS["recovery-under-qos"]
    (asked,) = [one for one in lesson.questions if one["name"] == "reserved but idle"]
    assert "key-value thread" in asked["why"]
    names = lesson.names(lesson.open(1).data)
    program = lesson.runs["idle_for_recovery"].program(names)
    result = run_compiled(program)
    kinds = np.array(program.resources.kinds)
    busy_ns = result.busy_ns + result.held_ns
    shares = busy_ns / (program.resources.capacities * result.end_ns)
    assert shares[kinds == "kv"].max() > 0.9
    for kind in ("ssd", "ssd.link", "ssd.write"):
        assert shares[kinds == kind].max() < 0.7


def test_an_answer_by_littles_law_is_right_in_the_first_lesson():
    for seed in SEEDS:
        opened = LESSONS["first-steps"].open(seed)
        drawn = opened.data
        rate_factor = opened["depth"].value
        assert opened["what depth costs"].judge(drawn.deep / rate_factor) == "right"


@pytest.mark.parametrize("name", LESSONS)
def test_other_seeds_give_other_problems(name):
    lesson = LESSONS[name]
    drawn = {tuple(vars(lesson.open(seed).data).values()) for seed in range(8)}
    assert len(drawn) == 8


def test_a_page_judges_as_python_does(tmp_path):
    values = [
        (12.5, 0.02, "ms"),
        (0.004, 0.1, ""),
        (77, 0, "writes"),
        ("rs:6,3", 0, ""),
    ]
    texts = ["12.6", "12.8", "40", "-1", "0.004", "1e-3", "77", "1,077", "RS:6, 3", ""]
    texts += ["1e400", "-1e400", "Infinity", "inf", "nan"]
    # A decimal comma makes no number, neither 125 nor 4.
    texts += ["0,125", "0,004", "12,5", "1,23,456", "1077,000"]
    cases = [(text, *value) for value in values for text in texts]
    verdicts = node(tmp_path, {"runs": {}}, judged=cases)["verdicts"]
    for (text, value, tolerance, unit), verdict in zip(cases, verdicts, strict=True):
        question = Question("q", "", lambda v=value: v, unit=unit, tolerance=tolerance)
        given = text.replace("1,077", "1077")
        assert verdict == question.judge(given), (text, value)


def test_a_page_rounds_ties_as_python_does(tmp_path):
    # Binary numbers half-way between two texts: Python takes the even digit.
    numbers = [5.625, 5.635, 0.03125, -5.625, 5.375, 1234.5, 1235.5, 12.25, 99.95, 7.0]
    texts = node(tmp_path, {"runs": {}}, numbers=numbers)["texts"]
    assert texts[:2] == ["5.62", "5.63"]
    assert texts == [answer_text(number) for number in numbers]


def test_the_page_of_koh_figures_states_the_numbers_of_its_study():
    claims = stripesim.claims("koh2017")
    held_out = sum(claim.role == "held-out" for claim in claims)
    (ratio,) = (claim for claim in claims if claim.id == "koh2017-043")
    lesson = LESSONS["koh-figures"]
    asked = {one["name"]: one for one in lesson.questions}
    assert f"{held_out} of the {len(claims)} numbers" in asked["held out"]["text"]
    assert asked["held out"]["answer"].startswith(f"{held_out} *")
    assert asked["a published number"]["answer"].endswith(
        f"/ {float(ratio.published_text)})"
    )


def test_waits_of_the_queueing_lesson_are_those_of_theory():
    lesson = LESSONS["queueing-theory"]
    # With eight servers at half load, few requests wait: services by chance must not hide their wait.
    numbers = {**vars(lesson.open("1").data), "servers": 8, "load": 0.5}
    many, unlimited = (
        Measured.of(lesson.runs[name].program(numbers)).mean_ms
        for name in ("many", "unlimited")
    )
    wait = (many - unlimited) / 0.01
    # 20,000 requests, of which 6 % wait: the standard error is about a tenth.
    assert wait == pytest.approx(erlang_c_wait(8, 0.5), rel=0.3)


def test_the_chain_of_the_page_is_that_of_durability():
    scenario = """
        schemes = ["rs:4,2", "rs:4,3", "rep:3"]
        [durability]
        placement = "clustered"
        drives = 84
        drive_bytes = "16TB"
        afr = 0.02
        repair_bytes_per_s = "100MB"
        detection_s = 600
    """
    losses = {"rs:4,2": (6, 2), "rs:4,3": (7, 3), "rep:3": (3, 2)}
    rebuild_h = 16e12 / 100e6 / 3600 + 1 / 6
    parsed = stripesim.parse_scenario(scenario, label="lesson 11")
    for row in stripesim.durability(parsed, method="markov"):
        drives, survived = losses[row["scheme"]]
        years = years_to_loss(drives, survived, -math.log(0.98), rebuild_h)
        hours_of_all = years * 8766 / (84 // drives)
        assert hours_of_all == pytest.approx(row["mttdl_hours"], rel=1e-9)


def test_the_burst_of_the_page_is_that_of_durability():
    event = '[{name = "power", unit = "drive", units = 3, per_year = 0.1, lost_fraction = 1.0}]'
    scenario = f"""
        schemes = ["rs:4,2"]
        [durability]
        placement = "clustered"
        drives = 84
        drive_bytes = "16TB"
        # So reliable that the event alone counts.
        afr = 0.000001
        repair_bytes_per_s = "100MB"
        bursts = {event}
    """
    parsed = stripesim.parse_scenario(scenario, label="lesson 11")
    (row,) = stripesim.durability(parsed, method="burst")
    years = 10 * math.comb(84, 3) / (14 * math.comb(6, 3))
    assert row["nines"] == pytest.approx(math.log10(years), abs=0.001)


def test_rebuilds_overlap_as_a_poisson_number_does():
    lesson = LESSONS["how-many-nines"]
    numbers = {"fleet": 10_000, "afr_permille": 20, "rebuild_h": 43.83}
    mean = 10_000 * 0.02 * 43.83 / 8766
    met = Measured.of(lesson.runs["overlapping"].program(numbers)).met
    assert mean == pytest.approx(1)
    wanted = [1, 1 - math.exp(-1), 1 - 2 * math.exp(-1), 1 - 2.5 * math.exp(-1)]
    assert met[:4] == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize(("weight", "reserved"), [(2, 20), (2, 45), (4, 20), (9, 45)])
def test_the_shared_osd_serves_by_its_tags(weight, reserved):
    runs = LESSONS["recovery-under-qos"].runs
    numbers = {"weight": weight, "reserved": reserved, "limit": 70}
    rates = {
        name: Measured.of(runs[name].program(numbers))
        for name in ("reserving", "limited", "weighted", "both")
    }
    # It serves 10,000 requests a second.
    assert rates["reserving"].rate == pytest.approx(100 * (100 - reserved), rel=0.01)
    assert rates["limited"].rate == pytest.approx(7000, rel=0.01)
    assert rates["weighted"].other_rate == pytest.approx(1e4 / (weight + 1), rel=0.01)
    largest = max(100 * reserved, 1e4 / (weight + 1))
    assert rates["both"].other_rate == pytest.approx(largest, rel=0.01)


def test_clients_write_until_the_rebuild_ends():
    lesson = LESSONS["recovery-under-qos"]
    for recovering in lesson.numbers["recovering"]:
        for name in ("wpq", "for_clients", "balanced", "for_recovery"):
            run = lesson.runs[name]
            clients, rebuilt = run_compiled(
                run.program({"recovering": recovering})
            ).streams
            assert rebuilt.completed_ns.max() < clients.completed_ns.max()
            assert len(rebuilt.completed_ns) == 160


def test_a_rebuild_over_a_slow_network_takes_as_long_as_its_bytes():
    lesson = LESSONS["repair"]
    numbers = {"rs_scheme": "rs:8,3"}
    slow = Measured.of(lesson.runs["coded_slow"].program(numbers)).mean_ms
    # Seven shards of 512 KiB to the primary, which has one itself or lost it, and one to the new OSD: 1 Gb/s.
    shard_ms = 8 * 524_288 / 1e6
    assert 8 * shard_ms < slow < 10 * shard_ms


def test_a_part_of_a_trace_is_described_by_its_requests():
    # Issue and completion [ns], 1 for a write. The third read finds the write in flight.
    rows = [
        (0, 1_000_000, 0),
        (2_000_000, 9_000_000, 1),
        (3_000_000, 6_000_000, 0),
        (10_000_000, 11_000_000, 0),
    ]
    part = TracePart(rows)
    # Gaps of 2, 1 and 7 ms, mean 10/3 ms.
    assert part.gaps == pytest.approx([0, 0.6, 0.3, 2.1])
    assert part.rate == pytest.approx(300)
    assert part.cv2 == pytest.approx((0.36 + 0.09 + 4.41) / 3 - 1)
    assert part.response_ms == pytest.approx((1 + 7 + 3 + 1) / 4)
    assert part.reads == 3
    assert (part.first_reads_ms, part.second_reads_ms) == (1, 2)
    assert (part.alone_ms, part.beside_ms) == (1, 3)


def test_parts_of_a_trace_with_equal_rates_are_simulated_apart():
    run = LESSONS["calibrate"].runs["replayed"]
    bursts, spread = (
        run.measured({"load": 0.5, "part": SimpleNamespace(gaps=gaps)})
        for gaps in ([0, 0.1, 0.1, 2.8], [0, 1, 1, 1])
    )
    assert bursts != spread


def test_each_part_of_the_trace_has_reads_alone_and_beside_writes():
    lesson = LESSONS["calibrate"]
    for seed in range(60):
        part = lesson.names(lesson.open(seed).data)["part"]
        assert part.beside_ms > 0
        assert part.alone_ms > 0


def test_a_page_signs_as_python_does(tmp_path):
    document = {
        "student": "Åsa \u2028 \U0001f600 \x7f \"'\\",
        "answers": {"b": {"events": ["hint", "right"], "answer": "1e-7"}, "a": {}},
        "page": True,
        "seed": "4711",
    }
    # The second key is longer than a block of SHA-256.
    keys = ["", "grüße" * 20]
    signed = node(tmp_path, {"runs": {}}, documents=[[document, key] for key in keys])
    assert signed["signatures"] == [signature(document, key) for key in keys]


def test_each_question_is_complete():
    keys = {"name", "text", "answer", "unit", "tolerance", "hint", "why", "picture"}
    for lesson in LESSONS.values():
        assert all(one.keys() <= keys for one in lesson.questions), lesson.name
        names = [one["name"] for one in lesson.questions]
        assert len(set(names)) == len(names)


@pytest.fixture(scope="module")
def chrome():
    with headless_chromium("browser") as opened:
        yield opened


def written(folder, name):
    path = folder / f"{name}.html"
    path.write_text(page_of(name), encoding="utf-8")
    return path


def opened(chrome, path, seed):
    # The tab keeps answers of earlier tests, for all files of this disk.
    empty = path.with_name("empty.html")
    empty.touch()
    chrome.get(empty.as_uri())
    chrome.execute_script("sessionStorage.clear()")
    chrome.get(f"{path.as_uri()}#{seed}")
    for _ in range(400):
        if chrome.execute_script("return document.body.dataset.seed") == seed:
            return
        time.sleep(0.05)
    raise AssertionError(chrome.find_element("id", "error").text or "no lesson")


def saying(chrome, section, wanted):
    """Wait until a question says something, and return it."""
    for _ in range(200):
        text = section.find_element("css selector", ":scope > .said:last-child").text
        if wanted in text:
            return text
        time.sleep(0.05)
    raise AssertionError(f"got {text!r}, wanted {wanted!r}")


def solve_in(chrome, lesson):
    """Predict too much, look at the picture, and answer right, question by question."""
    for number, question in enumerate(lesson.questions.values()):
        section = chrome.find_element("id", f"question-{number}")
        heading = section.find_element("tag name", "h2").text
        assert heading.startswith(f"Question {number + 1}: ")
        figure = section.find_element("tag name", "figure")
        field = section.find_element("tag name", "input")
        button = section.find_element("css selector", "button.first")
        assert not figure.is_displayed()
        assert not section.find_element("css selector", "button.reveal").is_displayed()
        wrong = "rs:99,9" if isinstance(question.value, str) else question.value * 9
        field.send_keys(str(wrong))
        button.click()
        saying(chrome, section, "Your prediction is not right yet")
        has_picture = bool(LESSONS[lesson.name].questions[number].get("picture"))
        assert figure.is_displayed() == has_picture
        assert len(figure.find_elements("tag name", "svg")) == has_picture
        field.clear()
        field.send_keys(str(question.value))
        button.click()
        said = saying(chrome, section, "Right: ")
        assert f"You predicted {wrong}" in said or not isinstance(wrong, str)
        assert question.solution in said


# Submit answers question by question, and return what the page says to each. Thousands of keys take long.
FILL_IN = """
const [answers, done] = arguments;
(async () => {
  const said = [];
  for (const [number, texts] of answers.entries()) {
    const section = document.getElementById(`question-${number}`);
    for (const text of texts) {
      const before = section.lastChild.textContent;
      section.querySelector("input").value = text;
      section.querySelector("form").requestSubmit();
      while (section.lastChild.textContent === before) await new Promise((next) => setTimeout(next, 10));
      said.push(section.lastChild.textContent);
    }
  }
  done(said);
})();
"""


def fill_in(chrome, lesson):
    """Answer as `solve_in` does, without keyboard and mouse."""
    answers = []
    for question in lesson.questions.values():
        is_text = isinstance(question.value, str)
        wrong = "rs:99,9" if is_text else question.value * 9
        answers.append([str(wrong), str(question.value)])
    chrome.set_script_timeout(120)
    said = chrome.execute_async_script(FILL_IN, answers)
    for question, first, second in zip(
        lesson.questions.values(), said[::2], said[1::2], strict=True
    ):
        assert "Your prediction is not right yet" in first
        assert "Right: " in second
        assert question.solution in second
    pictures = chrome.find_elements("css selector", "figure:not([hidden]) svg")
    wanted = [one for one in LESSONS[lesson.name].questions if one.get("picture")]
    assert len(pictures) == len(wanted)


def handed_in(chrome, folder, name, student):
    for field, text in (("student", student), ("key", "autumn")):
        chrome.find_element("id", field).send_keys(text)
    chrome.find_element("css selector", "#hand-in button").click()
    path = folder / f"{name}-{student}.json"
    for _ in range(200):
        if path.exists():
            return path
        time.sleep(0.05)
    raise AssertionError("the page saved no file")


def lesson_of_notebook():
    question = Question("bytes", "3 copies of 4 KiB?", lambda: 12288)
    return Lesson("Copies", 4712, {}, lambda _: [question], name="first-steps")


def test_three_lessons_solved_in_chromium_from_a_disk_are_graded_with_one_of_a_notebook(
    chrome, tmp_path, monkeypatch, command
):
    chrome.execute_cdp_cmd(
        "Browser.setDownloadBehavior",
        {"behavior": "allow", "downloadPath": str(tmp_path)},
    )
    files = []
    for name in ("first-steps", "the-pg-lock", "queueing-theory"):
        opened(chrome, written(tmp_path, name), "4711")
        solve_in(chrome, opened_in_python(name, "4711"))
        files.append(handed_in(chrome, tmp_path, name, "Ada"))
    assert chrome.get_log("browser") == []

    notebook = lesson_of_notebook()
    notebook["bytes"].check(1.0)
    files.append(
        notebook.hand_in(tmp_path / "notebook.json", student="Bob", key="autumn")
    )
    changed = json.loads(files[0].read_text())
    changed["student"] = "Eve"
    files.append(tmp_path / "eve.json")
    files[-1].write_text(json.dumps(changed))

    # The cells of a notebook take long and have tests of their own.
    monkeypatch.setattr(marking, "solve", lambda path, seed: notebook)
    status, out, _ = command("mark", *files, "--key", "autumn", "--json", "-")
    assert status == 1
    graded = json.loads(out)["files"]
    assert [one["student"] for one in graded] == ["Ada", "Ada", "Ada", "Bob", "Eve"]
    for one in graded[:3]:
        assert one["points"] == one["points_max"] == 2 * len(one["questions"]) > 0
    assert (graded[3]["points"], graded[3]["points_max"]) == (0, 2)
    assert not graded[4]["is_signed"]


def test_hints_and_revealed_answers_are_handed_in(chrome, tmp_path, command):
    name = "first-steps"
    folder = tmp_path / "saved"
    folder.mkdir()
    chrome.execute_cdp_cmd(
        "Browser.setDownloadBehavior",
        {"behavior": "allow", "downloadPath": str(folder)},
    )
    opened(chrome, written(tmp_path, name), "7")
    lesson = PageLesson(name).open("7")
    first, second, *_ = lesson.questions.values()
    section = chrome.find_element("id", "question-0")
    section.find_element("css selector", "button.hint").click()
    section.find_element("tag name", "input").send_keys(str(first.value))
    section.find_element("css selector", "button.first").click()
    saying(chrome, section, "Right at once: ")
    section = chrome.find_element("id", "question-1")
    section.find_element("tag name", "input").send_keys("1000")
    section.find_element("css selector", "button.first").click()
    saying(chrome, section, "Your prediction is not right yet")
    # A slip replaces no answer.
    section.find_element("tag name", "input").send_keys("x")
    section.find_element("css selector", "button.first").click()
    saying(chrome, section, "wanted a number")
    section.find_element("css selector", "button.reveal").click()
    saying(chrome, section, second.solution)
    path = handed_in(chrome, folder, name, "Ada")
    status, out, _ = command("mark", path, "--key", "autumn", "--json", "-")
    (one,) = json.loads(out)["files"]
    assert status == 0
    # A hint halves the first 2 points. The second answer was revealed, and the others are missing.
    assert one["points"] == 1
    assert one["questions"][1]["answer"] == "1000"
    assert [q["verdict"] for q in one["questions"][:3]] == [
        "right",
        "revealed",
        "not answered",
    ]


def answered(chrome, number, text):
    """Answer a question by keyboard, and return what the page says."""
    section = chrome.find_element("id", f"question-{number}")
    said = section.find_element("css selector", ":scope > .said:last-child")
    before = said.text
    field = section.find_element("tag name", "input")
    field.clear()
    field.send_keys(text, ENTER)
    for _ in range(200):
        if said.text != before:
            return said.text
        time.sleep(0.05)
    raise AssertionError("the page says nothing new")


def shown(chrome):
    """Return the headings of the questions with the progress."""
    headings = chrome.find_elements("css selector", "#questions h2")
    return [one.text for one in headings], chrome.find_element("id", "progress").text


def named(chrome, seed):
    for _ in range(400):
        if chrome.execute_script("return document.body.dataset.seed") == seed:
            return
        time.sleep(0.05)
    raise AssertionError("no problems of this number")


def test_a_number_without_bounds_is_no_answer(chrome, tmp_path):
    opened(chrome, written(tmp_path, "first-steps"), "7")
    for text in ("1e400", "Infinity", "-1e999"):
        chrome.find_element("id", "seed").click()
        assert "wanted a number" in answered(chrome, 0, text)
        chrome.execute_script(
            "document.querySelector('#question-0 > .said:last-child').textContent = ''"
        )
    headings, progress = shown(chrome)
    assert len(headings) == 1
    assert progress.startswith("0 of 5 right")


def test_answers_stay_when_the_page_is_loaded_again_and_for_each_number(
    chrome, tmp_path
):
    # Given a right answer, a revealed one and a wrong prediction
    opened(chrome, written(tmp_path, "first-steps"), "4711")
    lesson = opened_in_python("first-steps", "4711")
    assert "Right at once" in answered(
        chrome, 0, str(lesson["Little's law on paper"].value)
    )
    answered(chrome, 1, "1000")
    chrome.find_element("css selector", "#question-1 .reveal").click()
    answered(chrome, 2, "1000")
    before = shown(chrome)
    assert before[1] == "1 of 5 right, 0 with a hint, 1 revealed"
    # When the page is loaded again
    chrome.refresh()
    named(chrome, "4711")
    # Then all of it is there.
    assert shown(chrome) == before
    section = chrome.find_element("id", "question-1")
    assert lesson["copies over code"].solution in section.text
    assert not section.find_element("tag name", "input").is_displayed()
    section = chrome.find_element("id", "question-2")
    assert "Your prediction is not right yet: too high" in section.text
    assert section.find_element("tag name", "svg").is_displayed()
    # Another number has its own answers, and the back button returns.
    field = chrome.find_element("id", "seed")
    field.clear()
    field.send_keys("李 0815", ENTER)
    named(chrome, "李 0815")
    assert len(shown(chrome)[0]) == 1
    chrome.back()
    named(chrome, "4711")
    assert shown(chrome) == before
    assert chrome.get_log("browser") == []


def test_the_last_of_two_numbers_asked_for_at_once_is_shown(chrome, tmp_path):
    opened(chrome, written(tmp_path, "first-steps"), "1")
    chrome.execute_script("location.hash = '#5'; location.hash = '#6'")
    named(chrome, "6")
    asked = opened_in_python("first-steps", "6")["Little's law on paper"].text
    (question,) = chrome.find_elements("css selector", "#questions section")
    assert asked in question.text


def test_an_address_that_is_no_text_names_a_number_all_the_same(chrome, tmp_path):
    opened(chrome, written(tmp_path, "first-steps"), "%E0%A4%A")
    assert not chrome.find_element("id", "error").is_displayed()


def test_tab_goes_on_from_an_answer_to_the_next_question(chrome, tmp_path):
    opened(chrome, written(tmp_path, "first-steps"), "7")
    right = opened_in_python("first-steps", "7")["Little's law on paper"].value
    answered(chrome, 0, str(right))
    chrome.switch_to.active_element.send_keys(TAB)
    assert chrome.switch_to.active_element.get_attribute("id") == "answer-1"


def test_a_file_has_the_name_of_its_student_in_any_script(chrome, tmp_path):
    folder = tmp_path / "saved"
    folder.mkdir()
    chrome.execute_cdp_cmd(
        "Browser.setDownloadBehavior",
        {"behavior": "allow", "downloadPath": str(folder)},
    )
    opened(chrome, written(tmp_path, "first-steps"), "8")
    assert handed_in(chrome, folder, "first-steps", "李雷")


def test_the_queue_follows_its_sliders(chrome, tmp_path):
    opened(chrome, written(tmp_path, "queueing-theory"), "1")
    section = chrome.find_element("id", "question-0")
    section.find_element("tag name", "input").send_keys("1e9")
    section.find_element("css selector", "button.first").click()
    saying(chrome, section, "Your prediction is not right yet")
    said = chrome.find_element("id", "live-said")
    move = (
        "const slider = document.getElementById(arguments[0]); slider.value = arguments[1];"
        "slider.dispatchEvent(new Event('input', {bubbles: true}));"
    )
    chrome.execute_script(move, "live-1", 100)
    chrome.execute_script(move, "live-0", 50)
    # 1 s / (100 − 50)
    for _ in range(200):
        if "Theory: 1/(µ − λ) = 20 ms" in said.text:
            break
        time.sleep(0.05)
    simulated_ms = float(re.search(r"Simulated: ([\d.]+) ms", said.text)[1])
    # At half load, the standard error of 20,000 requests is below 3 %.
    assert simulated_ms == pytest.approx(20, rel=0.1)
    chrome.execute_script(move, "live-0", 120)
    for _ in range(200):
        if "no mean exists" in said.text:
            return
        time.sleep(0.05)
    raise AssertionError(said.text)


def test_a_screen_reader_says_hints_and_the_values_of_pictures(chrome, tmp_path):
    opened(chrome, written(tmp_path, "first-steps"), "7")
    lesson = opened_in_python("first-steps", "7")
    names = LESSONS["first-steps"].names(lesson.data)
    # A hint appears where it is announced, in an element that was displayed before.
    section = chrome.find_element("id", "question-0")
    hint = section.find_element("css selector", "form + .said")
    assert hint.get_attribute("aria-live") == "polite"
    assert hint.value_of_css_property("display") == "block"
    section.find_element("css selector", "button.hint").click()
    assert "In flight = rate" in hint.text
    fill_in(chrome, lesson)
    pictures = chrome.find_elements("css selector", "figure:not([hidden]) svg")
    labels = [one.get_attribute("aria-label") for one in pictures]
    # The second question divides these bars.
    title, *bars = labels[0].split("; ")
    assert title == "4 KiB writes per second"
    rates = [float(bar.rpartition(" ")[2].replace(",", "")) for bar in bars]
    assert rates == pytest.approx([names["copies"].rate, names["coded"].rate], rel=1e-3)
    # The latency by which the last question is answered.
    latency = f"{names['deeper'].mean_ms:.3g} at {lesson.data.deep}"
    assert latency in labels[-1].split("; ")


@needs_axe
@pytest.mark.parametrize("name", ["first-steps", "queueing-theory"])
def test_axe_finds_no_violation_in_a_lesson(name, chrome, tmp_path):
    opened(chrome, written(tmp_path, name), "1")
    assert violations(chrome) == []
    fill_in(chrome, opened_in_python(name, "1"))
    assert violations(chrome) == []


@pytest.mark.parametrize("name", LESSONS)
def test_the_page_fits_a_phone(name, chrome, tmp_path):
    size = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    opened(chrome, written(tmp_path, name), "1")
    fill_in(chrome, opened_in_python(name, "1"))
    assert chrome.execute_script("return document.documentElement.scrollWidth") == 360
    chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
