"""Endless or oversized runs are refused when a scenario is read, with their estimated size."""

import re
import time

import pytest

from stripesim.models.memory_limit import MemoryLimit
from stripesim.models.problems import ScenarioError
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.schema import budget, memory
from stripesim.scenarios.schema.loader import shipped_scenarios
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario
from stripesim.sim.ceph.failures.results.series import SERIES_BINS_MAX

BASE = """
schemes = ["rep:3"]
[workload]
requests = 100
"""


ADD_60K = '{kind="add", hosts=30000, osds_per_host=2}'


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
        (["workload.duration_s=1e9"], "workload.duration_s", "requests per cell"),
        (["workload.duration_s=1e6"], "workload.duration_s", "of computing"),
        (["workload.duration_s=1e30"], "workload.duration_s", "at most"),
        (["workload.duration_s=1e-300"], "workload.duration_s", "at least"),
        (
            ["workload.requests=1000000000000"],
            "workload.requests",
            "at most 2,000,000,000 requests per cell",
        ),
        (
            [
                "workload.kind=open",
                "workload.rate_per_s=9.3e9",
                "workload.duration_s=1e3",
            ],
            "workload.",
            "9.3e+09",
        ),
        (["workload.timeout_s=1e30"], "workload.timeout_s", "at most"),
        (
            ["workload.queue_depth=9223372036854775807"],
            "workload.queue_depth",
            "at most",
        ),
        (["cluster.hosts=2147483648"], "cluster.hosts", "at most"),
        (["cluster.hosts=1000000"], "cluster.hosts", "at most 100,000 OSDs"),
        (["cluster.osds_per_host=2147483648"], "cluster.osds_per_host", "at most"),
        (
            ["cluster.pg_num=10000000", "schemes=rs:8,4", "cluster.hosts=20"],
            "cluster.pg_num",
            "at most",
        ),
        (
            ["cluster.object_bytes=9223372036854775807"],
            "cluster.object_bytes",
            "at most 1GiB",
        ),
        (
            ["cluster.public_gbit_per_s=1e-9"],
            "cluster.public_gbit_per_s",
            "at least 0.001",
        ),
        (
            ["cluster.cores_per_host=9223372036854775807"],
            "cluster.cores_per_host",
            "at most",
        ),
        (
            ['changes=[{kind="add", hosts=60000}, {kind="add", hosts=1}]'],
            "changes",
            "at most 100,000 OSDs in all",
        ),
        (
            # Two changes with 60,000 OSDs each
            [f"changes=[{ADD_60K}, {ADD_60K}]"],
            "changes",
            "60,000 OSDs beside 60,",
        ),
    ],
)
def test_endless_or_oversized_runs_are_refused_with_the_key(sets, key, words):
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
        (
            "faults.recovery_max_active=9223372036854775807",
            "faults.recovery_max_active",
        ),
        ("faults.series_s=1e-7", "faults.series_s"),
        ("faults.scrub_interval_s=0.001", "faults.scrub_interval_s"),
    ],
)
def test_times_and_counts_of_faults_are_bounded(change, key):
    (line,) = problems(change, "cluster.pg_num=100000", text=FAULTS)
    assert f": {key}: got " in line


def test_series_have_the_bins_that_were_asked_for_or_are_refused():
    assert budget.BINS_MAX == SERIES_BINS_MAX


def test_scrubs_that_take_days_are_refused():
    # A day with seven scrubs per second of each of 1,024 groups.
    day = ["workload.duration_s=86400", "faults.scrub_interval_s=1"]
    (line,) = problems(*day, text=FAULTS)
    assert ": faults.scrub_interval_s: got 1 s (6.19e+08 scrubs" in line


def test_failures_of_many_osds_are_bounded():
    # 900 failures of 10 racks that hold all of 10,000 OSDs: 9 million.
    events = "".join(
        f"[[faults.events]]\nracks = {list(range(10))}\nat_s = {2 * at_s + 1}\nreturn_s = {2 * at_s + 2}\n"
        for at_s in range(900)
    )
    cluster = "[cluster]\nhosts = 1000\nosds_per_host = 10\nracks = 10\n"
    (line,) = problems(text=BASE + cluster + "[faults]\n" + events)
    assert ": faults.events: got 9,000,000 " in line


def test_pauses_of_recovery_beyond_the_clock_are_refused():
    # 25,000 objects of three shards on 24 OSDs: 3,125 shards are lost, about 130 for each OSD to start.
    repair = 'schemes = ["rep:3"]\n[workload]\nrequests = 10\n[cluster]\nobject_bytes = 4000000\n'
    repair += (
        "stripe_unit_bytes = 4000\n[repair]\nlost_osds = [0]\nrecovery_sleep_s = 1e8\n"
    )
    (line,) = problems(text=repair)
    assert ": repair.recovery_sleep_s: got " in line
    assert f"at most {1e9 / (3125 / 24):.3g} s" in line


def test_an_open_loop_that_outlasts_the_clock_is_refused():
    (line,) = problems("workload.kind=open", "workload.rate_per_s=1e-300")
    assert ": workload.rate_per_s: got 1e-300 " in line
    # 100 requests in 10⁹ s.
    assert "at least 1e-07" in line


def test_the_place_is_that_of_the_key():
    (line,) = problems(text=BASE.replace("requests = 100", "duration_s = 1e8"))
    assert line.startswith("s.toml:4: workload.duration_s: got 1e+08 s (up to ")


def test_shipped_scenarios_are_far_from_the_bounds():
    for name in shipped_scenarios():
        scenario = load_scenario(name)
        assert (
            10 * budget.requests_of(scenario, scenario.workload) < budget.REQUESTS_MAX
        )


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 201 + "]" * 201, ".".join("a" * 500) + " = 1"]
)
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
        (
            "[[faults.events]]\nosds = [1]",
            "faults.events.at_s",
            "[s]",
        ),
        (
            "[[faults.corruptions]]\nat_s = 1",
            "faults.corruptions.osd",
            "OSD",
        ),
        ("[faults.replay]\nspeed = 2.0", "faults.replay.trace", "trace"),
        (
            "[faults.drawn.lifetime]\nscale_s = 1.0",
            "faults.drawn.lifetime.distribution",
            '"exponential"',
        ),
        (
            "[faults.drawn]\nspeed = 2.0",
            "faults.drawn",
            "faults.drawn.lifetime or faults.drawn.trace",
        ),
    ],
)
def test_a_missing_key_is_reported_with_its_form_and_no_other_fault(
    faults, key, wanted
):
    text = BASE.replace(
        "requests = 100", "duration_s = 10\ntimeout_s = 1.0\nqueue_depth = 4"
    )
    (line,) = problems(text=text + faults)
    assert f": {key}: got " in line
    assert wanted in line


@pytest.fixture
def leave_memory(monkeypatch):
    """Set the available memory."""

    def leave(left_bytes):
        monkeypatch.setattr(
            memory, "memory_limit", lambda: MemoryLimit(left_bytes, "test")
        )

    return leave


# Each of these ran out of memory, or took all that the machine has. With the bytes that they really take, as
# measured: ru_maxrss of a process. (Pieces and stripes were measured as many, but 1 B instead of 32 B large.)
HUNGRY = [
    (["cluster.op_shards=1000000"], "cluster.op_shards", 9.4e9),
    (
        [
            "cluster.object_bytes=32",
            "cluster.stripe_unit_bytes=32",
            "workload.block_sizes_bytes=32MiB",
        ],
        "cluster.object_bytes",
        56e9,
    ),
    (
        [
            "schemes=rs:6,3",
            "cluster.hosts=10",
            "cluster.object_bytes=128MiB",
            "cluster.stripe_unit_bytes=32",
            "workload.block_sizes_bytes=128MiB",
        ],
        "cluster.stripe_unit_bytes",
        7.3e9,
    ),
    (
        [
            "workload.kind=open",
            "workload.rate_per_s=1000",
            "workload.requests=100000000",
        ],
        "workload.requests",
        21e9,
    ),
    (
        ["workload.queue_depth=10000000", "workload.requests=10000000"],
        "workload.queue_depth",
        9e9,
    ),
    (
        ["workload.image_bytes=20TiB", "cluster.object_bytes=4k", "repair.lost_osds=0"],
        "workload.image_bytes",
        2e12,
    ),
    (
        ["workload.kind=s3", "cluster.gateways.count=1000000"],
        "cluster.gateways.count",
        6e9,
    ),
]


@pytest.mark.parametrize(
    ("sets", "key", "measured_bytes"), HUNGRY, ids=[key for _, key, _ in HUNGRY]
)
def test_a_run_that_does_not_fit_is_refused_and_the_value_that_fits_is_named(
    leave_memory, sets, key, measured_bytes
):
    leave_memory(measured_bytes / 4)
    (line,) = problems(*sets)
    place, _, said = line.partition(f": {key}: got ")
    assert place in ("--set", "s.toml:3")
    value = re.search(r"wanted at (?:most|least) ([0-9,]+[kMGTi]*B?)", said)[1].replace(
        ",", ""
    )
    assert parse_scenario(BASE, sets=[*sets, f"{key}={value}"]).schemes
    # The proposed size is not too small: it would not fit into two thirds of the memory.
    leave_memory(measured_bytes / 4 / 1.5)
    with pytest.raises(ScenarioError):
        parse_scenario(BASE, sets=[*sets, f"{key}={value}"])


def test_a_closed_loop_bounded_by_time_is_refused_by_the_rate_that_it_has(leave_memory):
    """One request in flight takes about 0.35 ms, so a minute has some 170,000 requests of 215 bytes."""
    leave_memory(12_000_000)
    minute = parse_scenario(
        BASE,
        sets=[
            "workload.duration_s=60",
            "workload.queue_depth=1",
            "workload.ops=write",
            "workload.patterns=rand",
            "workload.image_bytes=1GiB",
        ],
    )
    with pytest.raises(ValueError, match=r"workload\.duration_s: got ") as caught:
        run_scenario(minute, costs=False)
    most_s = float(re.search(r"wanted at most ([0-9.]+) s", str(caught.value))[1])
    second = minute.model_copy(
        update={
            "workload": minute.workload.model_copy(update={"duration_s": most_s / 4})
        }
    )
    requests = run_scenario(second, costs=False).requests
    # The largest accepted run uses the available memory within a factor of two.
    assert 12_000_000 / 2 < 4 * requests * 215 < 12_000_000 * 2
