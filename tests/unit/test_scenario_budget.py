"""What cannot end or fit is refused when a scenario is read, with what it would take."""

import time

import pytest

from stripesim.scenarios.schema import budget
from stripesim.scenarios.schema.loader import ScenarioError, load_scenario, parse_scenario, shipped_scenarios

BASE = """
schemes = ["rep:3"]
[workload]
requests = 100
"""


def problems(*sets, text=BASE):
    start_s = time.perf_counter()
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, label="s.toml", sets=sets)
    # A refusal allocates nothing: it must not take the time that allocating takes.
    assert time.perf_counter() - start_s < 5
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("sets", "key", "words"),
    [
        (["workload.duration_s=1e9"], "workload.duration_s", "requests a cell"),
        (["workload.duration_s=1e6"], "workload.duration_s", "of computing"),
        (["workload.duration_s=1e30"], "workload.duration_s", "at most"),
        (["workload.duration_s=1e-300"], "workload.duration_s", "at least"),
        (["workload.requests=1000000000000"], "workload.requests", "at most 2,000,000,000 requests a cell"),
        (
            ["workload.kind=open", "workload.rate_per_s=9.3e9", "workload.duration_s=1e3"],
            "workload.",
            "9.3e+09",
        ),
        (["workload.timeout_s=1e30"], "workload.timeout_s", "at most"),
        (["workload.queue_depth=9223372036854775807"], "workload.queue_depth", "at most"),
        (
            ["workload.image_bytes=1000TiB", "cluster.object_bytes=64"],
            "workload.image_bytes",
            "of memory",
        ),
        (["cluster.hosts=2147483648"], "cluster.hosts", "at most"),
        (["cluster.hosts=1000000"], "cluster.hosts", "at most 100,000 OSDs"),
        (["cluster.osds_per_host=2147483648"], "cluster.osds_per_host", "at most"),
        (["cluster.pg_num=10000000", "schemes=rs:8,4", "cluster.hosts=20"], "cluster.pg_num", "at most"),
        (["cluster.object_bytes=9223372036854775807"], "cluster.object_bytes", "at most 1GiB"),
        (["cluster.public_gbit_per_s=1e-9"], "cluster.public_gbit_per_s", "at least 0.001"),
        (["cluster.cores_per_host=9223372036854775807"], "cluster.cores_per_host", "at most"),
    ],
)
def test_what_cannot_end_or_fit_is_refused_with_its_key(sets, key, words):
    lines = problems(*sets)
    assert len(lines) == 1, lines
    assert f": {key}" in lines[0]
    assert words in lines[0]


FAULTS = """
schemes = ["rep:3"]
[workload]
duration_s = 100
queue_depth = 1
[faults]
[[faults.events]]
osds = [1]
at_s = 1
"""


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ("faults.heartbeat_interval_s=1e300", "faults.heartbeat_interval_s"),
        ("faults.heartbeat_interval_s=1e-10", "faults.heartbeat_interval_s"),
        ("faults.recovery_max_active=9223372036854775807", "faults.recovery_max_active"),
        ("faults.series_s=1e-7", "faults.series_s"),
        ("faults.scrub_interval_s=0.001", "faults.scrub_interval_s"),
    ],
)
def test_times_and_counts_of_faults_are_bounded(change, key):
    (line,) = problems(change, "cluster.pg_num=100000", text=FAULTS)
    assert f": {key}: got " in line


def test_the_place_is_that_of_the_key():
    (line,) = problems(text=BASE.replace("requests = 100", "duration_s = 1e8"))
    assert line.startswith("s.toml:4: workload.duration_s: got 1e+08 s (up to ")


def test_shipped_scenarios_are_far_from_the_bounds():
    for name in shipped_scenarios():
        scenario = load_scenario(name)
        assert 10 * budget.requests_of(scenario, scenario.workload) < budget.REQUESTS_MAX


@pytest.mark.parametrize("text", ["a = " + "[" * 201 + "]" * 201, ".".join("a" * 500) + " = 1"])
def test_nesting_beyond_all_bounds_is_one_problem(text):
    (line,) = problems(text=text)
    assert line.startswith("s.toml:1: syntax: got ")
    (line,) = problems(text.replace(" = ", "="))
    assert line.startswith("--set: ")


def test_control_characters_do_not_reach_the_terminal():
    for line in problems(text='"a\\u001b[31m" = 1\n' + BASE):
        assert line.isprintable()


@pytest.mark.parametrize(
    ("faults", "key", "wanted"),
    [
        ("[[faults.events]]\nosds = [1]", "faults.events.at_s", "the time of the event [s]"),
        ("[[faults.corruptions]]\nat_s = 1", "faults.corruptions.osd", "the number of an OSD"),
        ("[faults.replay]\nspeed = 2.0", "faults.replay.trace", "the path of a trace"),
        ("[faults.drawn.lifetime]\nscale_s = 1.0", "faults.drawn.lifetime.distribution", '"exponential"'),
        ("[faults.drawn]\nspeed = 2.0", "faults.drawn", "faults.drawn.lifetime or faults.drawn.trace"),
    ],
)
def test_a_missing_key_says_what_it_takes_and_nothing_else_is_said(faults, key, wanted):
    text = BASE.replace("requests = 100", "duration_s = 10\ntimeout_s = 1.0\nqueue_depth = 4")
    (line,) = problems(text=text + faults)
    assert f": {key}: got " in line
    assert wanted in line
