"""Slow drives: which service times grow, phases, other faults beside them, and refused scenarios."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.generations import recovery_model
from stripesim.models.problems import ProblemsError, ScenarioError
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.cells.build import check_schemes
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.scenarios.show.figures.faults import draw_timelines
from stripesim.scenarios.show.result_table import with_phases
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.failures import Failure, FaultPlan, PlannedChange, SlowDrives
from stripesim.sim.ceph.failures.cluster_map import MapChange
from stripesim.sim.run import simulate
from support.messages import states

S = 10**9
MIB = 1 << 20
FACTOR = 7
OBJECTS = 40


def play(pool, *slow_drives, until_s=None, up_sets=None, read_fraction=1.0, **plan):
    """Run a closed loop of one client on a pool."""
    acting = pool.cluster.acting
    faults = FaultPlan(
        slow_drives=slow_drives,
        up_sets=up_sets or (lambda weights: acting),
        image_objects=OBJECTS,
        model=recovery_model("quincy").given(down_out_interval_ns=5 * S),
        **plan,
    )
    load = Synthetic(
        pattern="rand",
        block_bytes=16384,
        image_bytes=OBJECTS * pool.object_bytes,
        read_fraction=read_fraction,
        requests=None if until_s else 50,
        queue_depth=1,
    )
    until_ns = until_s and until_s * S
    return simulate(pool, load.start(), faults=faults, until_ns=until_ns)


def slow(osd=0, at_s=0.0, end_s=None, factor=FACTOR):
    return SlowDrives(
        osds=(osd,),
        time_ns=round(at_s * S),
        slowdown=round(factor * 1000),
        end_ns=None if end_s is None else round(end_s * S),
    )


# What of an OSD is its drive. The log of the last one is on a separate drive, which is healthy.
PARTS = {
    "intel-730": {"ssd", "sync"},
    "intel-730-raid0": {"ssd", "sync"},
    "nvme-tlc": {"ssd", "sync", "ssd.link", "ssd.write"},
    "samsung-pm983": {"ssd", "sync", "ssd.link", "ssd.write"},
    "hdd-7200": {"ssd", "sync"},
    "hdd-7200-nvme-db": {"ssd"},
}


@pytest.mark.parametrize("drive", PARTS)
@pytest.mark.parametrize("read_fraction", [1.0, 0.0])
def test_all_service_times_of_the_drive_grow_and_no_others(
    sleepless, make_pool, drive, read_fraction
):
    # Given two replicas of everything on OSDs 0 and 1.
    drive_models = replace(sleepless, ssd=ParameterSet(drive).device())
    pool = make_pool(drive_models, "rep:2", object_bytes=MIB)
    kinds = np.array(pool.cluster.resources.kinds)
    of_drive = pool.cluster.drive_resources(0)
    assert set(kinds[of_drive]) == PARTS[drive]
    # When the drive of OSD 0 is slow.
    healthy = play(pool, read_fraction=read_fraction).engine_run.busy_ns
    slowed = play(pool, slow(), read_fraction=read_fraction).engine_run.busy_ns
    # Then the same services take exactly that many times as long there, and as long as ever elsewhere.
    np.testing.assert_array_equal(slowed[of_drive], FACTOR * healthy[of_drive])
    assert slowed[of_drive].any()
    elsewhere = np.setdiff1d(np.arange(len(kinds)), of_drive)
    np.testing.assert_array_equal(slowed[elsewhere], healthy[elsewhere])


def events_of(result):
    return [
        (event["time_s"], event["what"], event["text"])
        for event in result.timeline["events"]
    ]


def test_a_drive_that_is_slow_for_a_while_gives_a_phase_of_its_own(
    sleepless, make_pool
):
    pool = make_pool(sleepless, "rep:2", object_bytes=MIB)
    result = play(pool, slow(at_s=1, end_s=2.5), until_s=4, read_fraction=0.0)
    assert events_of(result) == [
        (1.0, "slow", "osd.0 ×7"),
        (2.5, "not slow", "osd.0"),
    ]
    assert result.timeline["phases"] == {
        "before": [[0.0, 1.0]],
        "slow": [[1.0, 2.5]],
        "after": [[2.5, 4.0]],
    }
    phases = result.row.faults.phases
    before = phases["before"]
    # A write waits for the sync of the slow drive, and all writes go there.
    added_ns = (FACTOR - 1) * sleepless.ssd.sync_ns(4096)
    assert phases["slow"].latency_p50_ns - before.latency_p50_ns > added_ns
    # One request at a time: the rate is the inverse of the mean latency.
    for numbers in phases.values():
        assert numbers.iops == pytest.approx(1e9 / numbers.latency_mean_ns, rel=0.01)
    assert phases["after"].latency_p99_ns == pytest.approx(before.latency_p99_ns)


def test_a_slow_osd_marked_out_leaves_the_slow_phase_when_its_data_has_moved(
    sleepless, make_pool
):
    # Given OSD 0 slow from the start, marked out at 1 s, and still slow at the end.
    acting = np.array([[0, 1], [1, 2]], dtype=np.int64)
    moved = np.array([[2, 1], [1, 2]], dtype=np.int64)
    pool = make_pool(
        sleepless, "rep:2", osds=3, acting=acting.tolist(), object_bytes=MIB
    )
    result = play(
        pool,
        slow(),
        until_s=10,
        up_sets=lambda weights: moved if 0 in weights.out else acting,
        changes=[PlannedChange(kind="out", changes=(MapChange("out", 0),), time_ns=S)],
    )
    phases = list(result.timeline["phases"])
    assert phases == ["slow", "degraded", "recovery", "after"]
    numbers = result.row.faults.phases
    assert numbers["after"].latency_p99_ns < numbers["slow"].latency_p99_ns
    assert result.row.faults.recovery_s > 0
    # Both drives take part in moving its objects: OSD 0 is read, and OSD 2 is written.
    objects = result.row.faults.recovery.recovery_bytes // MIB
    assert 0 < objects < OBJECTS


def test_a_slow_osd_that_crashes_is_slow_again_when_it_returns(sleepless, make_pool):
    acting = np.array([[0, 1, 2]], dtype=np.int64)
    alive = np.array([[3, 1, 2]], dtype=np.int64)
    pool = make_pool(
        sleepless, "rep:3", osds=4, acting=acting.tolist(), object_bytes=MIB
    )
    result = play(
        pool,
        slow(at_s=1),
        until_s=12,
        up_sets=lambda weights: alive if 0 in weights.out else acting,
        failures=[Failure(osds=(0,), time_ns=2 * S, back_ns=4 * S)],
    )
    phases = result.timeline["phases"]
    assert result.row.faults.clean_at_end
    # Slow until the crash, and from the end of its recovery.
    (first, second) = phases["slow"]
    assert first[0] == 1.0
    assert second[1] == 12.0
    assert phases["degraded"][0][0] == first[1] >= 2.0
    assert "after" not in phases


def test_slow_drives_that_contradict_each_other_or_the_cluster_are_refused(
    sleepless, make_pool
):
    pool = make_pool(sleepless, "rep:2")
    for one, other, said in (
        (slow(2), slow(), "fault 0: got OSD 2 ... 0 to 1"),
        (slow(), slow(1, at_s=-1), "fault 1: got time -1.0 s"),
        (slow(), slow(at_s=5), "fault 1: got a slowdown of OSD 0 at 5 s ... 0 s"),
        (slow(end_s=5), slow(at_s=5), "fault 1: got a slowdown of OSD 0 at 5 s"),
        (slow(factor=0.5), slow(1), "fault 0: got factor 0.5 ... 1 to 1000"),
        (slow(at_s=3, end_s=2), slow(1), "fault 0: got an end at 2 s ... 3 s"),
        (replace(slow(), osds=()), slow(1), "fault 0: got no OSD"),
    ):
        with pytest.raises(ProblemsError) as caught:
            play(pool, one, other)
        assert states(str(caught.value), said)
    # One that has ended may begin again.
    assert play(pool, slow(end_s=1), slow(at_s=2)).row.requests == 50


SCENARIO = """
schemes = ["rs:4,2"]
[cluster]
hosts = 7
osds_per_host = 2
pg_num = 16
[workload]
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
queue_depth = 1
duration_s = 8
image_bytes = "64MiB"
[faults]
series_s = 0.5
"""
SLOW = '[[faults.events]]\nkind = "slow"\n'


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (SLOW + "osds = [1]\nat_s = 1", "s.toml:16: faults.events.factor: got nothing"),
        (SLOW + "osds = [1]\nat_s = 1\nfactor = 0.9", "s.toml:20: faults.events.factor: got 0.9 ... 1.0"),
        (SLOW + "osds=[1]\nat_s=1\nfactor=1001", "s.toml:20: faults.events.factor: got 1001 ... 1000.0"),
        (SLOW + "osds = [1]\nat_s = 1\nfactor = nan", "s.toml:20: faults.events.factor: got NaN"),
        (SLOW + "osds = [14]\nat_s = 1\nfactor = 2", "s.toml:18: faults.events.osds: got 14 ... 0 ... 13"),
        (SLOW + "at_s = 1\nfactor = 2", "s.toml:16: faults.events: got no target"),
        (
            SLOW + "osds = [1]\nat_s = 3\nfactor = 2\nreturn_s = 3",
            "s.toml:21: faults.events.return_s: got 3 ... at_s ... 3",
        ),
        (
            SLOW + "osds = [1]\nat_s = 3\nfactor = 2\ndata = 'lost'",
            's.toml:21: faults.events.data: got "lost"',
        ),
        (
            "[[faults.events]]\nosds = [1]\nat_s = 3\nfactor = 2",
            's.toml:19: faults.events.factor: got 2 ... kind is "process"',
        ),
        (
            "[[faults.events]]\nosds = [5]\nat_s = 2\n"
            f"{SLOW}osds = [1]\nat_s = 1\nfactor = 2\n{SLOW}hosts = [0]\nat_s = 3\nfactor = 5",
            "s.toml:27: faults.events.at_s: got a slowdown of OSD 1 at 3 s",
        ),
        ("[faults.drawn]\nkind = 'slow'", "faults.drawn.kind: got"),
    ],
)  # fmt: skip
def test_impossible_slow_drives_are_reported_with_their_line(event, said):
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(SCENARIO + event, label="s.toml")
    lines = caught.value.faults
    assert any(states(line, said) for line in lines), lines


def test_faults_as_a_list_are_refused_with_the_table_to_use():
    text = SCENARIO.replace("[faults]\nseries_s = 0.5\n", "")
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(f"{text}[[faults]]\nkind = 'slow'\nosds = [1]", label="s.toml")
    (line,) = caught.value.faults
    assert states(line, "s.toml:14: faults: got ... [[faults.events]]")


def test_slow_drives_on_a_custom_map_are_reported_with_their_line(data):
    crush = f"crush_map = '{data / 'ceph16/crush/A.decompiled.txt'}'\n\n"
    text = SCENARIO.replace("hosts = 7\nosds_per_host = 2\n", crush)
    failing = "[[faults.events]]\nosds = [3]\nat_s = 1\nreturn_s = 2\n"
    late = f"{SLOW}osds = [1, 99]\nat_s = 1\nfactor = 2\n"
    scenario = parse_scenario(text + failing + late, label="s.toml")
    with pytest.raises(ValueError, match="got") as caught:
        check_schemes(scenario, build_models(scenario))
    said = "s.toml:22: faults.events.osds: got OSD 99 ... 0 ... 23"
    assert states(str(caught.value), said)


def test_a_scenario_with_a_slow_host_and_a_crash_gives_rows_by_phase_and_a_figure():
    # Given the two drives of host 2 slow for 2 s, and OSD 9 down later.
    events = (
        f"{SLOW}hosts = [2]\nat_s = 1.0\nreturn_s = 3.0\nfactor = 20\n"
        "[[faults.events]]\nosds = [9]\nat_s = 4\nreturn_s = 5\n"
    )
    result = run_scenario(parse_scenario(SCENARIO + events))
    # Both have their phases, in one row and in the table.
    row = result.rows.to_dicts()[0]
    assert row["latency_p99_slow_ns"] > 1.2 * row["latency_p99_before_ns"]
    assert row["iops_slow"] < row["iops_before"]
    phases = [one["phase"] for one in with_phases(result.records)]
    assert phases[:3] == ["whole run", "before", "slow drive"]
    # The timeline says it, and so does its figure.
    (timeline,) = json.loads(json.dumps(result.to_json()))["timeline"]
    said = [(event["what"], event["text"]) for event in timeline["events"]]
    assert said[:2] == [("slow", "osd.4, osd.5 ×20"), ("not slow", "osd.4, osd.5")]
    (figure,) = draw_timelines(result.timelines).values()
    assert "slow at 1.0 s, normal at 3.0 s, fails at 4.0 s" in figure.caption


def test_slow_drives_go_with_drawn_failures_of_others():
    drawn = "[faults.drawn]\nlifetime = {distribution = 'exponential', scale_s = 1e6}\n"
    event = f"{SLOW}osds = [1]\nat_s = 1\nfactor = 2"
    result = run_scenario(parse_scenario(SCENARIO + drawn + event))
    assert "latency_p99_slow_ns" in result.rows.columns
