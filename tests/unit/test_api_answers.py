"""Every result of the API is an answer: a document, short in a terminal, a table in a notebook."""

import json
import pickle
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import polars as pl
import pytest

import stripesim
from stripesim.cli import output
from stripesim.scenarios.show.answer import Answer, AnsweredList
from stripesim.scenarios.show.tables import Table

pytestmark = pytest.mark.usefixtures("quick_rebuilds")

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "tests" / "unit" / "data" / "ceph16-report.json"
MEASURED = ROOT / "tests" / "unit" / "data" / "randread-fio.json"
REGISTER = ROOT / "docs" / "registers" / "micron-and-sepia"
#: Longest representation of an answer: a sentence of 160 characters, the class and the number of items.
LONGEST = 240
QUESTIONS = {
    "run": lambda scenario: stripesim.run(scenario, costs=False),
    "sweep": lambda scenario: stripesim.sweep(
        scenario, {"workload.queue_depth": [1, 4]}, jobs=1
    ),
    "study": lambda _: stripesim.study("dachary2013", jobs=1),
    "explain": lambda _: stripesim.explain("write", ["rep:3", "rs:6,3"]),
    "durability": lambda _: stripesim.durability("durability", method="markov"),
    "import_report": lambda _: stripesim.import_report(REPORT),
    "plan": lambda _: stripesim.plan(
        "plan", sets={"schemes": "rs:4,2", "plan.hosts": 8, "plan.osds_per_host": 4}
    ),
    "predict": stripesim.predict,
    "score": lambda _: stripesim.score(
        REGISTER / "register.json", REGISTER / "measured.csv"
    ),
    "check": lambda scenario: stripesim.check(scenario, MEASURED),
}


@pytest.fixture(scope="module")
def scenario():
    return stripesim.Scenario(
        name="small",
        schemes=["rep:3"],
        cluster={"hosts": 4},
        workload={"requests": 40, "ops": ["read"], "patterns": ["rand"]},
    )


@pytest.fixture(scope="module")
def results(scenario):
    return {name: ask(scenario) for name, ask in QUESTIONS.items()}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_result_is_an_answer(results, name):
    result = results[name]
    answer = result.answer if isinstance(result, AnsweredList) else result
    assert isinstance(answer, stripesim.Answer)
    assert dict(answer) == answer.to_json()


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_result_is_short_in_a_terminal_and_a_table_in_a_notebook(results, name):
    shown = repr(results[name])
    assert "\n" not in shown
    assert len(shown) <= LONGEST
    page = results[name]._repr_html_()
    assert page.startswith("<p>")
    # A row of headings, and at most 20 rows.
    assert 2 <= page.count("<tr>") <= 21


@pytest.mark.parametrize("name", sorted(QUESTIONS.keys() - {"study"}))
def test_a_result_that_was_shown_can_be_sent_to_another_process(results, name):
    shown = results[name]._repr_html_()
    sent = pickle.loads(pickle.dumps(results[name]))
    assert repr(sent) == repr(results[name])
    assert sent._repr_html_() == shown


def test_a_notebook_shows_the_first_figure_with_its_caption(results):
    result = results["sweep"]
    figures = result.figures()
    page = result._repr_html_()
    assert page.count("<figure>") == min(1, len(figures)) == 1
    shown = figures["sweep"]
    assert shown._repr_html_().startswith('<figure><img alt="')
    assert escape(shown.caption) in page
    assert repr(shown) == f"<CaptionedFigure: {shown.caption}>"


def test_a_result_is_saved_with_the_files_of_its_command(results, tmp_path):
    written = results["sweep"].save(tmp_path)
    names = {path.name for path in written}
    assert names >= {"results.csv", "aggregated.csv", "provenance.json"}
    assert pl.read_csv(tmp_path / "results.csv").height == 2


def test_a_prediction_is_registered_and_scored_from_python(scenario, tmp_path):
    # given
    file = tmp_path / "register.json"
    measured = tmp_path / "measured.csv"
    # when
    registered = stripesim.predict(scenario, register=file)
    rate = registered["rows"][0]["values"][0]
    measured.write_text(f"scheme,metric,value\nrep:3,iops,{2 * rate['predicted']}\n")
    scored = stripesim.score(file, measured)
    # then
    assert json.loads(file.read_text()) == registered.to_json()
    (row,) = scored.rows.to_dicts()
    assert row["measured"] == pytest.approx(2 * row["predicted"])
    assert row["error"] == pytest.approx(-0.5)
    assert row["inside"] is (row["low"] <= row["measured"] <= row["high"])
    with pytest.raises(stripesim.AnswerError, match=r"^register: .*never replaced"):
        stripesim.predict(scenario, register=file)


def test_a_check_takes_the_load_of_the_file_in_place_of_the_scenarios(
    results, scenario
):
    checked = results["check"]
    # Four jobs with two reads in flight each.
    assert (checked["clients"], checked["queue_depth"]) == (4, 2)
    assert scenario.workload.queue_depth != 2
    assert checked["verdict"] == "slower"
    assert checked["values"][0]["measured"] == 500
    with pytest.raises(stripesim.MeasuredError, match=r"nothing\.json"):
        stripesim.check(scenario, "nothing.json")


def test_a_study_names_its_verdicts_and_keeps_its_ledger(results):
    result = results["study"]
    summary = result.ledger.summary()
    counted = f"{summary['right']} of {summary['held_out']} held-out claims right"
    assert counted in repr(result)
    assert result["summary"] == json.loads(json.dumps(summary))


def test_a_plan_names_its_recommendation_and_keeps_its_candidates(results):
    result = results["plan"]
    assert repr(result).startswith(
        "<Answer: recommended: rs:4,2 on 8 × 4 samsung-pm983"
    )
    assert result.rows.select("scheme", "hosts", "meets").rows() == [
        ("rs:4,2", 8, True)
    ]
    with pytest.raises(stripesim.ScenarioError, match=r"plan: got nothing, wanted"):
        stripesim.plan("quickstart")


def test_items_keep_being_a_list(results):
    timelines = results["explain"]
    assert [timeline.scheme for timeline in timelines] == ["rep:3", "rs:6,3"]
    assert repr(timelines) == f"[{timelines[0]!r}, … 1 more]"
    assert repr(AnsweredList([], Answer)) == "[]"
    assert "[]" in AnsweredList([], Answer)._repr_html_()


def test_a_notebook_shows_text_as_text_and_counts_the_rows_left_out():
    rows = [[f"<b>{number}"] for number in range(23)]
    answer = Answer(document={}, shown=["a < b\nsecond", Table("", ["<i>"], rows)])
    page = answer._repr_html_()
    assert page.startswith("<p>a &lt; b</p>")
    assert "<b>" not in page and "<i>" not in page
    assert "&lt;b&gt;19" in page and "&lt;b&gt;20" not in page
    # 23 rows, 20 of them shown.
    assert page.endswith("<p>3 more rows</p>")


def test_a_long_sentence_is_cut_in_a_terminal():
    answer = Answer(document={}, shown=["x" * 1000])
    assert len(repr(answer)) <= LONGEST


def test_a_change_of_the_data_changes_the_document(results):
    changed = replace(results["run"], stopped=True)
    assert "stopped" not in results["run"]
    assert changed["stopped"] == "interrupted"
    assert changed["rows"] == results["run"]["rows"]


def test_warnings_of_a_run_are_all_of_them_but_printed_once(capsys):
    answer = Answer(document={}, outside=["a: far"], warnings=["a: far", "b: odd"])
    output.deliver(answer, output.destination(None, None))
    printed = capsys.readouterr().err
    assert printed.count("a: far") == 1
    assert "warning: b: odd" in printed


def test_warnings_of_a_run_begin_with_those_outside_the_calibrated_range(results):
    result = results["run"]
    assert [*map(str, result.outside), *result.holes] == result.warnings
    assert result["warnings"] == [*result.warnings, *result.refusals]


def test_a_scenario_is_short_in_a_terminal(scenario):
    assert repr(scenario) == "<Scenario: small, rep:3>"
    assert re.fullmatch(r"<Pool: .*>", repr(stripesim.pool(scenario)))


@pytest.mark.usefixtures("quick_figures")
def test_the_examples_of_the_reference_run(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "generate" / "api.py").read_text("utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S)
    # Pandas is an extra.
    program = "\n".join(examples).replace("answer.rows.to_pandas()", "answer.rows")
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    assert (tmp_path / "results" / "results.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "x"}, "method: got 'x', wanted one of markov, splitting, burst"),
        ({"walks": 9}, "walks: got 9, wanted at least 10"),
        ({"walks": 0}, "walks: got 0"),
        ({"walks": 20.5}, "walks: got 20.5"),
        ({"walks": True}, "walks: got True"),
    ],
)
def test_durability_refuses_what_it_cannot_walk(arguments, message):
    with pytest.raises(stripesim.AnswerError) as refused:
        stripesim.durability("durability", **arguments)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"requests": 0}, "requests: got 0, wanted at least 100"),
        ({"requests": 99}, "requests: got 99"),
        ({"p99_bounds_s": [0.005, -1]}, "p99_bounds_s: got -1, wanted a number"),
        ({"p99_bounds_s": ["5ms"]}, "p99_bounds_s: got '5ms'"),
        ({"p99_bounds_s": [float("nan")]}, "p99_bounds_s: got nan"),
    ],
)
def test_load_curves_refuse_what_no_run_can_meet(scenario, arguments, message):
    with pytest.raises(stripesim.AnswerError) as refused:
        stripesim.load_curves(scenario, jobs=1, **arguments)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("bound_s", [0, -0.005, "5ms"])
def test_virtual_machines_refuse_a_bound_that_is_no_time(scenario, bound_s):
    with pytest.raises(stripesim.AnswerError, match="p99_bound_s: got"):
        stripesim.virtual_machines(scenario, p99_bound_s=bound_s, jobs=1)


def test_the_rows_of_durability_are_its_table(results):
    answer = results["durability"].answer
    rows = answer.rows
    (row,) = answer["rows"]
    assert rows["nines"].to_list() == [row["nines"]]
    assert rows["method"].to_list() == ["markov"]
    # Lists and columns of runs are left out.
    assert not any(dtype.is_nested() for dtype in rows.dtypes)
    assert "iops" not in rows.columns


def test_the_rows_of_load_are_the_points_of_its_curves():
    scenario = stripesim.Scenario(
        schemes=["rep:3"],
        cluster={"hosts": 3, "osds_per_host": 1, "pg_num": 32},
        workload={"ops": ["read"], "patterns": ["rand"], "requests": 400},
    )
    curves = stripesim.load_curves(scenario, requests=200, jobs=1)
    rows = curves.answer.rows
    (curve,) = curves
    assert rows["offered_iops"].to_list() == [
        point.offered_iops for point in curve.points
    ]
    assert set(rows["scheme"]) == {"rep:3"}
