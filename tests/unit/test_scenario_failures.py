"""Faults in scenarios: refused faults with their lines, drawn and replayed faults, and warnings."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table as RichTable

from stripesim.models.problems import ScenarioError
from stripesim.scenarios.answers.load.answer import answer_of_load
from stripesim.scenarios.answers.load.curve_builder import CurveSettings
from stripesim.scenarios.answers.load.curves import load_curves
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.answers.sweep.plan import plan_sweep
from stripesim.scenarios.answers.sweep.run import run_sweep
from stripesim.scenarios.cells import failures as fault_cells
from stripesim.scenarios.cells.build import check_schemes
from stripesim.scenarios.cells.failures import (
    drawn_failures,
    limits_of,
    plan_of,
    replayed_failures,
)
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import hole_warnings, inactive_warnings
from stripesim.scenarios.schema.scenario import Scenario, load_scenario, parse_scenario
from stripesim.scenarios.schema.topology import Topology
from stripesim.scenarios.show.figures.faults import draw_timelines
from stripesim.scenarios.show.result_table import result_table, with_phases
from stripesim.scenarios.show.tables import Table
from support.messages import states

BASE = """
schemes = ["rs:4,2"]
[cluster]
hosts = 7
osds_per_host = 2
pg_num = 16
[workload]
ops = ["read"]
patterns = ["rand"]
duration_s = 100
image_bytes = "64MiB"
"""
TOPOLOGY = Topology(np.repeat(np.arange(7, dtype=np.int64), 2), None)


def test_racks_have_the_numbers_by_which_events_name_them() -> None:
    # By the alphabet rack10 would come first.
    names = ["rack2", "rack10", "rack2"]
    topology = Topology(np.arange(3, dtype=np.int64), names, names)
    assert topology.hosts_of_racks([0]) == [0, 2]
    assert topology.osd_racks is not None
    assert topology.osd_racks.tolist() == [0, 1, 0]
    assert topology.osd_sites is not None
    assert topology.osd_sites.tolist() == [0, 1, 0]


def scenario_of(faults: str, **changes: str) -> Scenario:
    text = BASE
    for old, new in changes.items():
        text = text.replace(old, new)
    return parse_scenario(text + faults, label="s.toml")


def said(faults: str, *sets: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(BASE + faults, label="s.toml", sets=sets)
    return caught.value.faults


@pytest.mark.parametrize(
    ("faults", "place", "words"),
    [
        ("[[faults.events]]\nosds = [14]\nat_s = 1", "s.toml:13: faults.events.osds", "got 14, wanted an"),
        ("[[faults.events]]\nhosts = [7]\nat_s = 1", "s.toml:13: faults.events.hosts", "from 0 to 6"),
        ("[[faults.events]]\nracks = [0]\nat_s = 1", "s.toml:13: faults.events.racks", "cluster.racks, too"),
        ("[[faults.events]]\nosds = [1, 2, 1]\nat_s = 1", "s.toml:13: faults.events.osds", "got 1 twice"),
        ("[[faults.events]]\nosds = [1]\nat_s = -1", "s.toml:14: faults.events.at_s", "at least 0.0"),
        (
            "[[faults.events]]\nosds = [1]\nat_s = 5\nreturn_s = 4",
            "s.toml:15: faults.events.return_s",
            "got 4 ... at_s ... 5",
        ),
        ("[[faults.events]]\nat_s = 5", "s.toml:12: faults.events", "got no target"),
        (
            "[[faults.events]]\nosds = [3]\nat_s = 5\nreturn_s = 9\n[[faults.events]]\nhosts = [1]\nat_s = 8",
            "s.toml:18: faults.events.at_s",
            "OSD 3 ... 8.0 s",
        ),
        (
            "[[faults.events]]\nhosts = [0, 1]\nat_s = 5",
            "s.toml:12: faults.events",
            "5 hosts left with an OSD up, permanently, wanted at least 6, for rs:4,2",
        ),
        ("[faults]\nseries_s = 2", "s.toml:12: faults", "no failures"),
        ("[faults.drawn]\nunit = 'osd'", "faults.drawn", "neither lifetime nor trace"),
        (
            "[faults.drawn]\nlifetime = {distribution = 'weibull', scale_s = 5}",
            "s.toml:13: faults.drawn.lifetime",
            "weibull with scale_s",
        ),
        ("[faults.replay]\ntrace = 'none.tab'", "s.toml:13: faults.replay.trace", "no such file"),
        (
            "[[faults.corruptions]]\nosd = 99\nat_s = 5",
            "s.toml:13: faults.corruptions.osd",
            "0 ... 13",
        ),
        ("[repair]\nlost_osds = [0]\n[faults]", "faults", "[faults] ... [repair]"),
    ],
)  # fmt: skip
def test_impossible_faults_are_reported_with_their_line(
    faults: str, place: str, words: str
) -> None:
    lines = said(faults)
    assert any(place in line and states(line, words) for line in lines), lines


def test_a_timeout_without_faults_is_refused() -> None:
    assert any("timeout_s" in line for line in said("", "workload.timeout_s=3"))


def test_events_can_be_given_on_the_command_line() -> None:
    scenario = parse_scenario(
        BASE, sets=["faults.events={osds=[3], at_s=4.5, return_s=20}"]
    )
    assert scenario.faults is not None
    assert scenario.faults.events[0].osds == (3,)
    lines = said("", "faults.events={osds=[30], at_s=4.5}")
    assert lines[0].startswith("--set: faults.events.osds: got 30")


def test_limits_are_those_of_the_generation_and_device_unless_given() -> None:
    scenario = scenario_of(
        "[faults]\nmax_backfills=4\nheartbeat_grace_s=60\n[[faults.events]]\nosds=[1]\nat_s=1"
    )
    disk = {"drive": "hdd-7200"}
    model = limits_of(scenario.with_cluster(**disk))
    assert model.max_backfills_count == 4
    assert model.provenance["max_backfills_count"].kind == "given"
    assert model.heartbeat_grace_ns == 60 * 10**9
    assert model.recovery_max_active_count == 3
    pacific = scenario.model_copy(update={"generation": "pacific"})
    assert limits_of(pacific.with_cluster(**disk)).recovery_sleep_ns == 10**8
    assert limits_of(pacific).recovery_max_active_count == 10


@pytest.mark.parametrize("generation", ["pacific", "reef"])
def test_recovery_pauses_under_wpq_alone(generation: str) -> None:
    # osd_recovery_sleep_hdd 0.1 s, …_hybrid 0.025 s; mClock sets both to 0.
    scenario = scenario_of("[[faults.events]]\nosds=[1]\nat_s=1")
    scenario = scenario.model_copy(update={"generation": generation})

    def sleep_s(drive: str, queue: str) -> float:
        changed = scenario.with_cluster(drive=drive, op_queue=queue)
        return limits_of(changed).recovery_sleep_ns / 1e9

    assert sleep_s("hdd-7200", "wpq") == 0.1
    assert sleep_s("hdd-7200-nvme-db", "wpq") == 0.025
    assert sleep_s("nvme-tlc", "wpq") == 0
    assert sleep_s("hdd-7200", "mclock_scheduler") == 0


def test_draws_belong_to_a_unit_and_alternate() -> None:
    scenario = scenario_of(
        "[faults.drawn]\nlifetime = {distribution='weibull', scale_s=20, shape=0.7}\n"
        "downtime = {distribution='lognormal', median_s=3, sigma=1}"
    )
    found = drawn_failures(scenario, TOPOLOGY)
    assert len(found) > 14
    for osd in range(14):
        own = [failure for failure in found if failure.osds == (osd,)]
        for earlier, later in itertools.pairwise(own):
            assert earlier.back_ns is not None
            assert earlier.time_ns < earlier.back_ns < later.time_ns
    assert found == drawn_failures(scenario, TOPOLOGY)
    plan = plan_of(
        scenario,
        TOPOLOGY.osd_hosts,
        lambda weights: TOPOLOGY.osd_hosts[:, None],
    )
    assert len(plan.failures) == len(found)


TRACE = """# event_id component_id node_id platform_id node_name event_type start stop reason
0 1 a 1 a 1 1000 1030 NULL
1 1 b 1 b 1 1000 1050 NULL
2 1 a 1 a 0 1030 1040 NULL
3 1 a 1 a 1 1040 1090 NULL
4 1 b 1 b 0 1050 1090 NULL
"""


def test_a_trace_is_replayed_from_its_start_and_scaled(tmp_path: Path) -> None:
    (tmp_path / "t.tab").write_text(TRACE)
    faults = f"[faults.replay]\ntrace = '{tmp_path / 't.tab'}'\nspeed = 2"
    found = replayed_failures(scenario_of(faults), TOPOLOGY)
    assert [(failure.hosts, failure.osds) for failure in found] == [
        ((0,), (0, 1)),
        ((1,), (2, 3)),
    ]
    assert (found[0].time_ns, found[0].back_ns) == (15 * 10**9, 20 * 10**9)
    assert (found[1].time_ns, found[1].back_ns) == (25 * 10**9, None)


def replay_of(trace: Path, keys: str = "") -> str:
    return f"[faults.replay]\ntrace = '{trace}'\n{keys}"


def test_components_without_nodes_fail_one_by_one_and_return(tmp_path: Path) -> None:
    # b is up first, fails twice and stays down; the trace starts at 100 s.
    rows = ["time_s,component,up", "100,b,true", "105,b,false", "110,a,false"]
    rows += ["112,a,false", "120,b,true", "125,a,true", "130,b,false"]
    (tmp_path / "e.csv").write_text("\n".join(rows))
    for unit in ("osd", "host"):
        faults = replay_of(tmp_path / "e.csv", f"unit = '{unit}'")
        found = replayed_failures(scenario_of(faults), TOPOLOGY)
        times = [(one.osds[0], one.time_ns, one.back_ns) for one in found]
        second = 1 if unit == "osd" else 2
        assert times == [
            (0, 5 * 10**9, 20 * 10**9),
            (second, 10 * 10**9, 25 * 10**9),
            (0, 30 * 10**9, None),
        ]


def test_drives_of_one_node_are_osds_or_one_host(tmp_path: Path) -> None:
    events = (
        "time_s,component,node,up\n0,a,n,false\n5,b,n,false\n10,a,n,true\n20,b,n,true\n"
    )
    (tmp_path / "e.csv").write_text(events)
    osds = replay_of(tmp_path / "e.csv", "unit = 'osd'")
    found = replayed_failures(scenario_of(osds), TOPOLOGY)
    assert [(one.osds, one.back_ns) for one in found] == [
        ((0,), 10 * 10**9),
        ((1,), 20 * 10**9),
    ]
    (host,) = replayed_failures(scenario_of(replay_of(tmp_path / "e.csv")), TOPOLOGY)
    assert (host.hosts, host.back_ns) == ((0,), 20 * 10**9)


def test_a_replay_without_a_failure_is_refused(tmp_path: Path) -> None:
    # The only failure starts 30 s after the start of the trace and lasts 10 s; the run lasts 100 s.
    rows = [row for row in TRACE.splitlines(keepends=True) if " b " not in row]
    (tmp_path / "t.tab").write_text("".join(rows))
    for keys in ("from_s = 45", "speed = 0.1"):
        faults = replay_of(tmp_path / "t.tab", keys)
        with pytest.raises(ScenarioError, match=r"faults.replay.from_s.*no failure"):
            replayed_failures(scenario_of(faults), TOPOLOGY)


def test_a_replay_after_the_last_request_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.tab").write_text(TRACE)
    text = BASE.replace("duration_s = 100", "requests = 10")
    scenario = parse_scenario(text + replay_of(tmp_path / "t.tab"))
    with pytest.raises(ScenarioError, match=r"30 s into faults.replay"):
        run_scenario(scenario)


def test_a_trace_of_more_nodes_than_the_cluster_is_refused(tmp_path: Path) -> None:
    rows = [f"{node} 1 n{node} 1 n{node} 0 1000 1010 NULL\n" for node in range(9)]
    (tmp_path / "t.tab").write_text(TRACE + "".join(rows))
    faults = f"[faults.replay]\ntrace = '{tmp_path / 't.tab'}'"
    with pytest.raises(ValueError, match=r"got 11 failing nodes in .*7\b"):
        replayed_failures(scenario_of(faults), TOPOLOGY)


def test_a_real_trace_gives_distributions_to_draw_from(data: Path) -> None:
    trace = data / "failure-traces" / "fta_lanl" / "event_trace.tab.gz"
    faults = f"[faults.drawn]\nunit = 'host'\ntrace = '{trace}'\nspeed = 100000"
    found = drawn_failures(scenario_of(faults), TOPOLOGY)
    assert found
    assert all(len(failure.osds) == 2 for failure in found)


# Six hosts for six shards, of which CRUSH often misses the small one.
UNEVEN = [
    "cluster.hosts=[{count = 5, osds = 40}, {count = 1, osds = 1}]",
    'cluster.failure_domain_erasure="host"',
    "cluster.pg_num=512",
    'schemes=["rs:4,2"]',
]


def test_a_narrow_cluster_is_warned_of() -> None:
    narrow = parse_scenario("", sets=["workload.requests=1", *UNEVEN])
    wide = parse_scenario(
        'schemes = ["rs:4,2"]', sets=["workload.requests=1", "cluster.hosts=20"]
    )
    assert hole_warnings(wide) == []
    (warning,) = hole_warnings(narrow)
    assert "of 512 placement groups have a hole" in warning


def test_a_sweep_warns_once_of_the_holes_of_a_pool() -> None:
    plan = plan_sweep(
        "quickstart",
        over=["workload.queue_depth=1,2"],
        sets=[*UNEVEN, "workload.requests=20"],
    )
    swept = run_sweep(plan, jobs=1)
    warnings = [line for line in swept.warnings if "a hole" in line]
    assert warnings == hole_warnings(plan.scenario)
    assert "warnings" not in swept.records[0]


# Two OSDs for two copies: no spare host, and reads of nothing.
BARE = [
    'schemes=["rep:2"]',
    "cluster.hosts=2",
    'workload.ops=["read"]',
    "workload.image=pristine",
]


def test_run_sweep_and_load_give_the_same_warnings() -> None:
    scenario = parse_scenario("", sets=[*BARE, "workload.requests=50"])
    warnings = list(run_scenario(scenario).holes)
    assert len(warnings) == 2
    assert run_sweep(plan_sweep(scenario), jobs=1).of_rows == warnings
    assert answer_of_load(scenario, [], CurveSettings()).warnings == warnings


def test_images_that_do_not_fit_are_refused_everywhere() -> None:
    small = ["workload.requests=20", 'schemes=["rep:3"]']
    large = [*small, "workload.image_bytes=100TB"]
    with pytest.raises(ScenarioError, match=r"at most .* the capacity of rep:3"):
        run_scenario(parse_scenario("", sets=large))
    with pytest.raises(ScenarioError, match=r"at most .* the capacity of rep:3"):
        load_curves(parse_scenario("", sets=large), jobs=1)
    # The points of a sweep that fit run.
    plan = plan_sweep("quickstart", over=["workload.image_bytes=1GB,100TB"], sets=small)
    swept = run_sweep(plan, jobs=1)
    assert {row["workload.image_bytes"] for row in swept.records} == {10**9}
    assert {"the capacity of rep:3" in row["reason"] for row in swept.failed} == {True}


def test_scrubs_need_no_failure_but_a_duration() -> None:
    # Given 64 MiB on three copies, each read once in the interval of a run
    sets = ['schemes=["rep:3"]', "cluster.pg_num=16", "cluster.osds_per_host=1"]
    sets += ["workload.image_bytes=64MiB", 'workload.image="prefilled"']
    sets += ['workload.ops=["read"]', 'workload.patterns=["rand"]']
    sets += ["workload.queue_depth=1", "faults.scrub_interval_s=2"]
    scenario = parse_scenario("", sets=[*sets, "workload.duration_s=2"])
    # When they are scrubbed beside a client
    result = run_scenario(scenario)
    # Then scrubs read each copy, and no table is empty.
    (row,) = result.records
    assert row["scrub_device_read_bytes"] == 3 * 64 * 2**20
    assert not any(isinstance(part, Table) for part in result.shown)
    # And a run without a duration, in which scrubs take no time, is refused.
    with pytest.raises(ScenarioError, match="scrub_interval_s"):
        parse_scenario("", sets=[*sets, "workload.requests=10"])


def test_degraded_groups_below_min_size_are_warned_of() -> None:
    # Given two of eight hosts down. A pair of hosts holds two of three copies with 3 / 28, and two of six
    # shards with 15 / 28. These have one copy (min_size 2) and four shards (min_size 5) left.
    sets = ["workload.requests=1", "cluster.hosts=8", "cluster.osds_per_host=2"]
    sets += ["cluster.pg_num=4096"]
    schemes = 'schemes = ["rep:3", "rs:4,2"]'
    two = parse_scenario(schemes, sets=[*sets, "degraded.missing_osds=[0, 1, 2, 3]"])
    one = parse_scenario(schemes, sets=[*sets, "degraded.missing_osds=[0, 1]"])
    # Then their numbers are stated
    counts = [int(line.split()[1].replace(",", "")) for line in inactive_warnings(two)]
    assert counts == pytest.approx([4096 * 3 / 28, 4096 * 15 / 28], rel=0.1)
    # And one host is within min_size.
    assert inactive_warnings(one) == []


def test_a_sweep_warns_once_of_the_degraded_groups_of_a_pool() -> None:
    sets = [
        "workload.requests=20",
        "degraded.missing_osds=[0, 1]",
        'schemes=["rs:4,2"]',
    ]
    plan = plan_sweep("quickstart", over=["workload.queue_depth=1,2"], sets=sets)
    warnings = run_sweep(plan, jobs=1).warnings
    told = inactive_warnings(plan.scenario)
    assert [line for line in warnings if line in told] == told
    assert len(told) == 1


def test_a_scenario_with_faults_gives_rows_a_timeline_and_a_figure() -> None:
    scenario = scenario_of(
        "[faults]\ndown_out_interval_s = 5\n[[faults.events]]\nosds = [3]\nat_s = 10\n"
        "[[faults.corruptions]]\nosd = 8\nat_s = 12\n",
        **{
            "duration_s = 100": "duration_s = 60\nkind = 'open'\nrate_per_s = 5\ntimeout_s = 0.5"
        },
    )
    result = run_scenario(scenario)
    row = result.rows.to_dicts()[0]
    assert row["clean_at_end"]
    assert (
        row["requests"] + row["requests_failed"] + row["requests_pending"]
        == row["requests_issued"]
    )
    size_bytes = row["block_size_bytes"]
    for phase in ("before", "recovery", "after"):
        assert row[f"iops_{phase}"] > 0
        expected = pytest.approx(size_bytes * row[f"iops_{phase}"])
        assert row[f"throughput_{phase}_bytes_per_s"] == expected
    phases = [
        one for one in with_phases([row]) if one["phase"] not in ("whole run", "slow")
    ]
    assert all(one["throughput_bytes_per_s"] is not None for one in phases)
    table = result_table([row], Console(width=250))
    assert isinstance(table, RichTable)
    assert "phases leave out blocked requests" in str(table.caption)
    document = json.loads(json.dumps(result.to_json()))
    timeline = document["timeline"][0]
    whats = [event["what"] for event in timeline["events"]]
    assert (
        whats.index("failed")
        < whats.index("down")
        < whats.index("out")
        < whats.index("clean")
    )
    states = timeline["pg_states"]
    assert all(
        sum(states[name][at] for name in states if name != "time_s") == 16
        for at in range(len(states["time_s"]))
    )
    assert {parameter["name"] for parameter in result.parameters} >= {
        "recovery.heartbeat_grace_ns"
    }
    (figure,) = draw_timelines(result.timelines).values()
    assert len(figure.figure.axes) == 4
    assert "RS(4,2) under faults" in figure.caption


def test_the_shipped_scenario_loads_and_its_faults_fit_its_cluster() -> None:
    scenario = load_scenario("faults")
    assert build_models(scenario).ssd is not None
    hosts = np.repeat(np.arange(8, dtype=np.int64), 3)
    plan = plan_of(scenario, hosts, lambda weights: hosts[:, None])
    assert plan.failures[0].osds == (6, 7, 8)


@pytest.mark.parametrize(
    ("faults", "sets", "said"),
    [
        (
            "[[faults.events]]\nhosts = [0]\nat_s = 1\n[[faults.events]]\nosds = [1, 99]\nat_s = 1",
            [],
            "s.toml:17: faults.events.osds: got OSD 99 ... 0 ... 23",
        ),
        (
            "[[faults.events]]\nhosts = [40]\nat_s = 1",
            [],
            "s.toml:14: faults.events.hosts: got host 40 ... 0 ... 3",
        ),
        (
            "[[faults.events]]\nosds = [1]\nat_s = 1\n[[faults.events]]\nosds = [1]\nat_s = 3",
            [],
            "s.toml:18: faults.events.at_s: got ... OSD 1 ... 3.0 s",
        ),
        (
            "[[faults.corruptions]]\nosd = 50\nat_s = 1",
            [],
            "s.toml:14: faults.corruptions.osd: got OSD 50 ... 0 ... 23",
        ),
        (
            "",
            ["faults.events=[{osds=[77], at_s=1}]"],
            "--set: faults.events.osds: got OSD 77 ... 0 ... 23",
        ),
    ],
)
def test_faults_on_a_custom_map_are_reported_with_their_line(
    data, faults, sets, said
) -> None:
    crush = f"crush_map = '{data / 'ceph16/crush/A.decompiled.txt'}'\n"
    counts = "hosts = 7\nosds_per_host = 2\n"
    # Lines stay where they are.
    text = BASE.replace(counts, f"{crush}\n\n") + faults
    scenario = parse_scenario(text, label="s.toml", sets=sets)
    with pytest.raises(ValueError, match="got") as caught:
        check_schemes(scenario, build_models(scenario))
    assert states(str(caught.value), said)
    assert "\n" not in str(caught.value)


def test_a_scenario_does_not_include_its_line_numbers() -> None:
    events = "[[faults.events]]\nosds = [1]\nat_s = 1"
    one, other = (
        parse_scenario(text + events, label="s.toml") for text in (BASE, "\n\n" + BASE)
    )
    assert one == other and one.hash() == other.hash()
    assert one.where("faults", "events", 0, "osds") == "s.toml:13: faults.events.osds"
    assert other.where("faults", "events", 0, "osds") == "s.toml:15: faults.events.osds"
    assert pickle.loads(pickle.dumps(one)).where(
        "faults", "events", 0, "osds"
    ) == one.where("faults", "events", 0, "osds")
    assert (
        type(one)(schemes=("rep:3",), workload=one.workload).where("schemes", 0)
        == "Scenario: schemes"
    )


# The stored bytes of the pool, beyond the images of its clients.

STORED = """
schemes = ["rep:3"]
[cluster]
hosts = 5
osds_per_host = 1
pg_num = 64
stored_bytes = "4GiB"
[workload]
ops = ["read"]
patterns = ["rand"]
requests = 100
queue_depth = 1
image_bytes = "64MiB"
[faults]
down_out_interval_s = 5
recovery_sleep_s = 0.02
[[faults.events]]
osds = [2]
at_s = 0
"""


def recovery_of(text: str) -> tuple[dict[str, Any], list[str]]:
    result = run_scenario(parse_scenario(text), costs=False, first_full=False)
    return result.rows.to_dicts()[-1], list(result.holes)


@pytest.mark.parametrize("image", ["prefilled", "pristine"])
def test_a_failed_osd_loses_its_part_of_the_stored_bytes(image):
    row, warnings = recovery_of(
        STORED.replace("image_bytes", f'image = "{image}"\nimage_bytes')
    )
    # Three copies of 4 GiB on 5 OSDs, in 64 PGs: 192 shards of PGs, of which an OSD has 38 ± 4.
    assert row["recovery_lost_bytes"] == pytest.approx(3 * (4 << 30) / 5, rel=0.2)
    assert row["recovery_whole_s"] == row["recovery_s"]
    assert not [line for line in warnings if "stored" in line]


def test_a_repair_rebuilds_its_part_of_the_stored_bytes():
    text = STORED[: STORED.index("[faults]")] + "[repair]\nlost_osds = [2]\n"
    row, _ = recovery_of(text)
    assert row["repair_lost_bytes"] == pytest.approx(3 * (4 << 30) / 5, rel=0.2)


def test_the_recovery_of_a_part_tells_that_of_the_whole(monkeypatch):
    large = STORED.replace("4GiB", "32GiB")
    whole, _ = recovery_of(large)
    # 16 objects of the image, and 1,008 of the 8,176 others: an eighth of 8,192.
    monkeypatch.setattr(fault_cells, "OTHER_OBJECTS_MAX", 1008)
    part, warnings = recovery_of(large)
    assert part["objects_ratio"] == 8
    # Hashes distribute objects over PGs, which leaves differences.
    assert part["recovery_lost_bytes"] == pytest.approx(
        whole["recovery_lost_bytes"] / 8, rel=0.1
    )
    assert part["recovery_whole_s"] == pytest.approx(whole["recovery_s"], rel=0.15)
    assert any(states(line, "12.5 % ... stored") for line in warnings)


def test_a_run_that_ends_during_a_recovery_says_how_long_it_takes_at_least():
    whole, _ = recovery_of(STORED)
    end_s = whole["failure_to_clean_s"] - whole["recovery_s"] / 2
    row, warnings = recovery_of(
        STORED.replace("requests = 100", f"duration_s = {end_s}")
    )
    assert "recovery_s" not in row or row["recovery_s"] is None
    assert whole["recovery_s"] / 2 < row["recovery_whole_s"]
    assert row["recovery_whole_s"] < 1.1 * whole["recovery_s"]
    assert any(states(line, "workload.duration_s ... at least") for line in warnings)


def test_a_fault_after_all_requests_is_refused():
    late = STORED.replace("at_s = 0", "at_s = 7")
    with pytest.raises(ValueError, match=r"workload\.requests") as caught:
        recovery_of(late)
    assert states(str(caught.value), "100 requests ... faults.events.0.at_s = 7")
    # Requests that arrive after the fault meet it.
    arriving = late.replace("queue_depth = 1", 'kind = "open"\nrate_per_s = 10')
    row, _ = recovery_of(arriving)
    assert row["requests"] == 100


def test_a_fault_after_the_end_of_the_run_is_refused():
    fault = "[faults]\n[[faults.events]]\nosds = [2]\nat_s = 100\n"
    (line,) = said(fault)
    assert states(line, "faults.events.at_s: got 100 s ... workload.duration_s")
