"""Every key outside the calibrated range is reported, and no key inside."""

import pytest

from stripesim.calibration.parameters import sets as parameter_sets
from stripesim.calibration.parameters.calibrated_range import calibrated_range
from stripesim.calibration.parameters.sets import ParameterSet, names
from stripesim.models.placement import map_to_text
from stripesim.models.problems import ParameterSetError
from stripesim.scenarios.answers.durability.durability import estimate_durability
from stripesim.scenarios.answers.plan.candidates import candidates_of
from stripesim.scenarios.cells.notes import outside_of, outside_of_all
from stripesim.scenarios.cells.placement import crush_of
from stripesim.scenarios.schema.scenario import Scenario, load_scenario, parse_scenario
from support.messages import states

RANGE = """
[calibrated]
source = "ten runs"
notes = ["time is assumed"]

[calibrated.keys]
"schemes" = ["rep:3"]
"workload.queue_depth" = { min = 1, max = 64 }
"repair" = []
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(parameter_sets, "files", lambda _package: tmp_path)

    def write(text):
        (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
        return calibrated_range(ParameterSet("mine"))

    return write


def test_a_question_inside_gets_the_notes_alone(written):
    asked = {"schemes": ["rep:3"], "workload": {"queue_depth": 64}, "repair": None}
    (note,) = written(RANGE).problems(asked)
    assert str(note) == "mine: time is assumed"


def test_each_key_outside_is_reported_with_its_value_and_the_range(written):
    asked = {
        "schemes": ["rep:3", "rs:4,2"],
        "workload": {"queue_depth": 65},
        "repair": {"lost_osds": [0]},
    }
    warnings = list(map(str, written(RANGE).problems(asked)))
    expected = [
        "schemes: got rs:4,2 ... mine ... rep:3 ... ten runs",
        "workload.queue_depth: got 65 ... mine ... 1 ... 64 ... ten runs",
        "repair: ... mine ... ten runs",
        "mine: time is assumed",
    ]
    assert all(map(states, warnings, expected)) and len(warnings) == len(expected)


def test_a_set_without_a_range_warns_about_it(written):
    (line,) = map(str, written("").problems({"schemes": ["rep:3"]}))
    assert line.startswith("mine: ")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[calibrated]\nkeys = {}", "wanted source, keys and optionally notes"),
        (
            '[calibrated]\nsource = "x"\nkey = 1',
            "wanted source, keys and optionally notes",
        ),
        (
            '[calibrated]\nsource = "x"\nkeys.seed = 3',
            "seed: got 3",
        ),
        (
            '[calibrated]\nsource = "x"\nkeys.seed = { min = 4, max = 3 }',
            "seed",
        ),
    ],
)
def test_a_faulty_range_is_reported_in_one_line(written, text, found):
    with pytest.raises(ParameterSetError, match=r"^mine.toml: \[calibrated\]") as error:
        written(text)
    assert states(str(error.value), found)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", names())
def test_ranges_that_ship_name_keys_of_a_scenario(name):
    for key in calibrated_range(ParameterSet(name)).keys:
        model = Scenario.model_fields
        for part in key.split("."):
            assert part in model, f"{name}: {key}"
            inner = model[part].annotation
            model = getattr(inner, "model_fields", {})


def test_the_study_is_inside_its_range():
    assert outside_of(load_scenario("koh2017")) == []


@pytest.mark.parametrize(
    "name", ["quickstart", "faults", "slow-drive", "repair", "koh2017"]
)
def test_a_shipped_scenario_is_inside_its_calibrated_range(name):
    assert outside_of(load_scenario(name)) == []


def test_every_candidate_of_the_shipped_plan_is_inside_the_range():
    scenario = load_scenario("plan")
    candidates = [
        one.scenario for one in candidates_of(scenario, scenario.plan) if one.scenario
    ]
    assert len(candidates) > 10
    assert outside_of_all(candidates) == []


def test_the_shipped_question_about_durability_asks_for_no_calibrated_number():
    # The chain computes its answer exactly from the scenario alone.
    scenario = load_scenario("durability")
    (row,) = estimate_durability(scenario, "markov")["rows"]
    assert row["exact"]
    given = scenario.durability.model_dump(exclude_unset=True)
    assert {
        "drives",
        "drive_bytes",
        "afr",
        "repair_bytes_per_s",
        "detection_s",
    } <= given.keys()


def test_a_scenario_outside_names_each_key():
    sets = ['schemes=["rs:5,3"]', "cluster.osds_per_host=9", "workload.queue_depth=256"]
    keys = [
        problem.key for problem in outside_of(load_scenario("quickstart", sets=sets))
    ]
    assert keys == ["schemes", "cluster.osds_per_host", "workload.queue_depth"]


def test_hosts_in_groups_are_compared_by_their_number_and_their_own_osds():
    # Given groups of the shipped cluster's own hosts, and then with a host more than was measured (10)
    inside = [r"cluster.hosts=[{count=3, drive_bytes='4TB'}, {count=2, osds=4}]"]
    outside = [r"cluster.hosts=[{count=9}, {count=2, osds=9, cores=256}]"]

    problems = outside_of(load_scenario("quickstart", sets=outside))

    assert outside_of(load_scenario("quickstart", sets=inside)) == []
    assert {problem.key: problem.got for problem in problems} == {
        "cluster.hosts": "11",
        "cluster.osds_per_host": "9",
        "cluster.cores_per_host": "256",
    }


def test_hosts_of_a_crush_map_are_those_compared(tmp_path):
    # Given a map of eleven hosts with nine OSDs each
    counted = load_scenario("quickstart", sets=["cluster.hosts=11"])
    crush = map_to_text(crush_of(counted.with_cluster(osds_per_host=9)))
    (tmp_path / "crush.txt").write_text(crush)
    path = tmp_path / "mapped.toml"
    path.write_text(
        'schemes = ["rep:3"]\n[cluster]\ncrush_map = "crush.txt"\n'
        "[workload]\nrequests = 1\nqueue_depth = 32\n"
    )

    problems = outside_of(load_scenario(path))

    assert {problem.key: problem.got for problem in problems} == {
        "cluster.hosts": "11",
        "cluster.osds_per_host": "9",
    }


def test_the_form_hides_unused_keys_of_a_workload():
    text = (
        'schemes = ["rep:3"]\n[workload]\nkind = "open"\n'
        "rate_per_s = 10.0\nqueue_depth = 999\nrequests = 1\n"
    )
    keys = [problem.key for problem in outside_of(parse_scenario(text))]
    assert keys == ["workload.kind"]


def test_each_of_several_workloads_is_compared_and_the_table_that_none_runs_is_not():
    # Given [workload] with 256 requests in flight, its default, which no workload inherits
    text = (
        'schemes = ["rep:3"]\n[workload]\nduration_s = 1.0\npatterns = ["rand"]\n'
        '[[workloads]]\nname = "a"\nread_fraction = 0.5\nqueue_depth = {depth}\n'
        '[[workloads]]\nname = "b"\nread_fraction = 0.5\nkind = "{kind}"\n{keys}\n'
    )
    inside = text.format(depth=8, kind="closed", keys="queue_depth = 16")
    assert outside_of(parse_scenario(inside)) == []
    outside = text.format(depth=999, kind="open", keys="rate_per_s = 10.0")
    problems = outside_of(parse_scenario(outside))
    assert {problem.key: problem.got for problem in problems} == {
        "workloads.queue_depth": "999",
        "workloads.kind": "open",
    }


def test_several_scenarios_give_each_line_once():
    sets = ['schemes=["rs:5,3"]', "cluster.osds_per_host=9"]
    one, other = (
        load_scenario("quickstart", sets=[*sets, f"workload.queue_depth={depth}"])
        for depth in (256, 512)
    )
    lines = outside_of_all([one, other, one])
    # Scheme and OSDs once, each depth once.
    assert len(lines) == len(set(lines)) == 4
