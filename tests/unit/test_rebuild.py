"""The repair of a sample is simulated; a whole OSD is its rule of three, and what cannot be is said."""

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.placement import OsdWeights
from stripesim.models.problems import RefusedError
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.answers.run.words import sentences_of_run
from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.cells.placement import up_sets
from stripesim.scenarios.forms import rebuild
from stripesim.scenarios.forms.rebuild import (
    Rebuild,
    groups_at_once,
    idle_rebuild,
    measured_rebuild,
    simulated_rate,
)
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario
from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.observe.audit import collecting_refusals

TEXT = """
schemes = ["rep:3"]
[cluster]
hosts = 4
osds_per_host = 2
pg_num = 32
failure_domain_erasure = "osd"
[workload]
requests = 1
"""


@pytest.fixture(scope="module")
def scenario():
    return parse_scenario(TEXT)


def test_replication_rebuilds_whole_objects_over_the_network(scenario):
    rebuild = idle_rebuild(scenario, "rep:3", sample_objects=60)
    assert rebuild.reason is None
    assert rebuild.lost_osds == (0,)
    assert rebuild.lost_bytes == rebuild.objects * (4 << 20)
    # A copy to the new OSD plus headers and frames. Half of the primaries are on that host.
    assert 0.5 < rebuild.network_bytes_per_lost_byte < 1.2
    # The rest continues at the current rate, within its interval.
    whole_s, ends_s = (
        rebuild.seconds_for(10 * rebuild.lost_bytes),
        rebuild.seconds_interval(10 * rebuild.lost_bytes),
    )
    assert whole_s == pytest.approx(
        rebuild.seconds + 9 * rebuild.lost_bytes / rebuild.pace_bytes_per_s
    )
    assert whole_s == pytest.approx(10 * rebuild.seconds, rel=0.25)
    assert ends_s is None or ends_s[0] <= whole_s <= ends_s[1]
    assert rebuild.limited_by is not None


def test_less_data_than_the_sample_takes_at_least_its_part_of_the_time():
    # The last objects of the sample waited for each other, so the steady rate is below that of the sample.
    sample = Rebuild("rep:3", lost_bytes=100.0, seconds=10.0, pace_bytes_per_s=5.0)
    assert sample.seconds_for(50.0) == 5.0
    assert sample.seconds_for(200.0) == 30.0
    # It took two seconds to start.
    late = Rebuild("rep:3", lost_bytes=100.0, seconds=12.0, pace_bytes_per_s=10.0)
    assert late.seconds_for(50.0) == 7.0


def test_a_sample_is_no_larger_in_a_pool_that_states_its_data(scenario):
    stored = parse_scenario(TEXT.replace("pg_num", 'stored_bytes = "1TB"\npg_num'))
    small, same = (
        idle_rebuild(one, "rep:3", sample_objects=60) for one in (scenario, stored)
    )
    assert same.objects == small.objects


def test_erasure_coding_reads_k_shards_for_each_lost_one(scenario):
    rebuild = idle_rebuild(scenario, "rs:4,2", sample_objects=60)
    assert rebuild.lost_bytes == rebuild.objects * (1 << 20)
    assert 2 < rebuild.network_bytes_per_lost_byte < 5


def test_the_rate_hardly_depends_on_the_sample():
    # Objects fall on placement groups by chance, a group moves one object at a time, and groups wait for
    # reservations: below about 200 objects a group, a third of the rate depends on who comes last.
    few_groups = parse_scenario(TEXT.replace("pg_num = 32", "pg_num = 16"))
    sample = idle_rebuild(few_groups, "rs:4,2", sample_objects=1600)
    assert sample.half_bytes_per_s == pytest.approx(sample.bytes_per_s, rel=0.2)


def test_an_osd_that_is_missing_already_is_not_lost_again():
    found = idle_rebuild(
        parse_scenario(TEXT + "[degraded]\nmissing_osds = [0]\n"),
        "rep:3",
        sample_objects=30,
    )
    assert found.lost_osds == (1,)


def test_throttles_of_the_scenario_hold(scenario):
    slow = parse_scenario(TEXT + "[repair]\nlost_osds = [0]\nrecovery_sleep_s = 0.5\n")
    free, throttled = (
        idle_rebuild(one, "rep:3", sample_objects=40) for one in (scenario, slow)
    )
    assert throttled.bytes_per_s < free.bytes_per_s / 2


@pytest.mark.parametrize(
    ("scheme", "outcome"),
    [
        ("none", "no redundancy"),
        ("rs:5,1", "no decode of rs:5,1"),
        ("rs:6,2", "no new OSD"),
    ],
)
def test_impossible_rebuilds_report_the_reason(scenario, scheme, outcome):
    found = idle_rebuild(scenario, scheme, sample_objects=20)
    assert outcome in found.reason
    assert (found.seconds, found.bytes_per_s, found.seconds_for(1e9)) == (
        None,
        None,
        None,
    )


def test_a_repair_under_load_is_read_off_its_row():
    scenario = load_scenario(
        "repair", sets=["workload.requests=200", 'schemes=["rep:3"]']
    )
    row = run_scenario(scenario).rows.to_dicts()[0]
    rebuild = measured_rebuild(scenario, row)
    assert rebuild.lost_osds == (7,)
    assert rebuild.bytes_per_s == pytest.approx(
        row["repair_lost_bytes"] / row["repair_s"]
    )


def test_recovery_and_rebuild_are_two_times_with_words_of_their_own():
    sets = ["workload.requests=200", 'schemes=["rep:3"]', "workload.image_bytes=1GiB"]
    (row,) = run_scenario(load_scenario("repair", sets=sets)).rows.to_dicts()
    # Of 256 objects some placement groups hold none. The others peer once more after their last object.
    assert row["recovery_s"] > row["repair_s"]
    said = " ".join(sentences_of_run([row]))
    assert f"recovery {row['recovery_s']:.1f} s" in said
    assert f"rebuild {row['repair_s']:.1f} s" in said


def test_an_unfinished_repair_has_no_rate():
    assert Rebuild("rep:3", objects=3, lost_bytes=1e6, seconds=None).bytes_per_s is None


def test_an_osd_of_a_balanced_cluster_is_rebuilt_like_any_other():
    # The balancer moves few groups, so that an OSD holds about as many bytes with it as without.
    wide = TEXT.replace("pg_num = 32", "pg_num = 256")
    rebuilds = [
        idle_rebuild(parse_scenario(text), "rep:3", sample_objects=60)
        for text in (wide, wide.replace("pg_num", "upmap_max_deviation = 1\npg_num"))
    ]
    plain, balanced = rebuilds
    assert balanced.reason is None
    assert balanced.lost_bytes == pytest.approx(plain.lost_bytes, rel=0.1)
    assert balanced.bytes_per_s == pytest.approx(plain.bytes_per_s, rel=0.3)


def test_a_rebuild_that_the_audit_refuses_is_not_shown():
    refused = Rebuild("rep:3", seconds=2.0, lost_bytes=1e9, refused="Bytes: got 2 B")
    with pytest.raises(RefusedError, match="rebuild of rep:3: Bytes"):
        refused.accepted()
    assert refused.withheld().bytes_per_s is None
    assert refused.withheld().reason == "Bytes: got 2 B"
    with collecting_refusals() as refusals:
        assert refused.accepted().bytes_per_s == 1e9 / 2.0
    assert refusals == ["rebuild of rep:3: Bytes: got 2 B"]


def backfilling(monkeypatch, scenario, scheme, objects):
    """Return the mean number of groups being backfilled while any is, in the largest simulated rebuild."""
    timelines = []
    original = rebuild.simulate

    def simulate(*args, **options):
        result = original(*args, **options)
        timelines.append(result.timeline)
        return result

    monkeypatch.setattr(rebuild, "simulate", simulate)
    idle_rebuild(scenario, scheme, sample_objects=objects)
    states = timelines[-1]["pg_states"]
    counts = np.array(states[State.BACKFILLING][:-1])
    lengths_s = np.diff(states["time_s"])
    return float(counts @ lengths_s / lengths_s[counts > 0].sum())


@pytest.mark.parametrize(
    ("hosts", "osds", "pg_num", "scheme", "max_backfills"),
    [
        (12, 8, 2048, "rep:3", 1),
        (12, 8, 1024, "rs:6,3", 1),
        (12, 8, 1024, "rs:6,3", 3),
        (3, 8, 256, "rep:3", 1),
        (3, 8, 256, "rep:3", 2),
        (6, 6, 256, "rep:2", 1),
    ],
)
def test_as_many_groups_are_rebuilt_at_a_time_as_in_a_simulated_rebuild(
    monkeypatch, hosts, osds, pg_num, scheme, max_backfills
):
    scenario = parse_scenario(
        TEXT,
        sets=[
            f"cluster.hosts={hosts}",
            f"cluster.osds_per_host={osds}",
            f"cluster.pg_num={pg_num}",
            'cluster.failure_domain_erasure="host"',
            f'schemes=["{scheme}"]',
            "repair.lost_osds=[0]",
            f"repair.max_backfills={max_backfills}",
            # Groups take long compared with the time until the next map.
            "repair.recovery_sleep_s=0.2",
        ],
    )
    simulated = backfilling(monkeypatch, scenario, scheme, 4000)
    # The count is the mean of several OSDs, and takes groups to be equally large.
    assert groups_at_once(scenario, scheme) == pytest.approx(simulated, rel=0.25)


def test_a_cluster_without_another_place_refills_the_new_drive():
    # Each host has one OSD, so CRUSH finds no place for a third copy.
    only = parse_scenario(TEXT, sets=["cluster.hosts=3", "cluster.osds_per_host=1"])
    assert groups_at_once(only, "rep:3") == limits_of(only).max_backfills_count


def test_a_cluster_is_placed_once_and_no_caller_changes_its_placement():
    scenario = parse_scenario(TEXT)
    scheme = parse_scheme("rep:3")
    placed = up_sets(scenario, scheme)
    expected = placed.copy()

    placed[:] = -9

    assert (up_sets(scenario, scheme) == expected).all()
    # Whatever decides about a placement gives another one.
    fewer = parse_scenario(TEXT.replace("pg_num = 32", "pg_num = 16"))
    assert len(up_sets(fewer, scheme)) == 16
    assert up_sets(scenario, parse_scheme("rep:2")).shape == (32, 2)
    out = OsdWeights(out=(int(expected[0, 0]),))
    assert not np.isin(up_sets(scenario, scheme, out), out.out).any()


def test_limits_of_faults_hold_for_the_rebuild_of_an_idle_cluster():
    """The same keys in [faults] and in [repair] give the same rate, and another than Ceph's defaults."""
    limits = "recovery_sleep_s = 0.5\nmax_backfills = 1\n"
    in_faults = parse_scenario(
        TEXT + "[faults]\n" + limits + "events = [{osds = [3], at_s = 0}]\n"
    )
    in_repair = parse_scenario(TEXT + "[repair]\nlost_osds = [3]\n" + limits)
    rates = [
        simulated_rate(one, "rep:3", 1e12).bytes_per_s
        for one in (parse_scenario(TEXT), in_faults, in_repair)
    ]
    assert rates[1] == rates[2] < rates[0] / 2
