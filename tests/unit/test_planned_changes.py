"""Planned changes: when each begins, what it moves, and what is left of the old copies."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import generation, recovery_model
from stripesim.models.placement import OsdWeights
from stripesim.models.recovery import SECOND_NS
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures import (
    Failure,
    FaultPlan,
    PlannedChange,
)
from stripesim.sim.ceph.failures.cluster_map import MapChange
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.ceph.paths.repair import move_path
from stripesim.sim.ceph.qos.op_queue import BEST_EFFORT, RECOVERY, mclock
from stripesim.sim.run import simulate

MIB = 1 << 20
OBJECTS = 40


def replaced_by(acting, spare):
    """Return up sets in which a spare OSD replaces those that are out or weigh nothing."""

    def up_sets(weights: OsdWeights):
        light = [osd for osd, weight in weights.crush if not weight]
        return np.where(np.isin(acting, [*weights.out, *light]), spare, acting)

    return up_sets


def play(
    models, make_pool, scheme, acting, changes, *, osds, objects=OBJECTS, **plan_keys
):
    """Make changes on a pool whose PGs have `acting`, or the up sets of a function, while nobody uses it."""
    up_sets = acting
    if not callable(acting):
        up_sets = replaced_by(np.array(acting, dtype=np.int64), osds - 1)
    pool = make_pool(
        models,
        scheme,
        osds=osds,
        acting=up_sets(OsdWeights()).tolist(),
        object_bytes=MIB,
    )
    plan = FaultPlan(
        changes=changes,
        up_sets=up_sets,
        image_objects=objects,
        model=recovery_model("pacific"),
        **plan_keys,
    )
    once = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=objects * MIB,
        read_fraction=1.0,
        requests=1,
        queue_depth=1,
    )
    return simulate(pool, once.start(), faults=plan)


def change(kind, *osds, at_s=None, weight=0):
    return PlannedChange(
        kind=kind,
        changes=tuple(MapChange(kind, osd, weight) for osd in osds),
        time_ns=None if at_s is None else round(at_s * SECOND_NS),
    )


def test_each_change_begins_once_the_cluster_is_clean_after_the_one_before(
    models, make_pool, directors
):
    play(
        models,
        make_pool,
        "rs:2,1",
        [[0, 1, 2]],
        [change("out", 1), change("in", 1), change("weight", 2)],
        osds=4,
    )
    (director,) = directors
    outcomes = director.changes.applied
    assert [outcome.change.kind for outcome in outcomes] == ["out", "in", "weight"]
    assert [list(outcome.up_after) for outcome in outcomes] == [
        [(0, 3, 2)],
        [(0, 1, 2)],
        [(0, 1, 3)],
    ]
    for before, after in pairwise(outcomes):
        assert before.clean_ns == after.asked_ns
        assert after.asked_ns < after.made_ns < after.clean_ns


def test_a_change_that_moves_nothing_ends_with_its_map(models, make_pool, directors):
    play(
        models,
        make_pool,
        "rep:2",
        [[0, 1]],
        [change("out", 2), change("out", 1)],
        osds=4,
    )
    first, second = directors[0].changes.applied
    assert first.made_ns == first.clean_ns == second.asked_ns
    assert list(second.up_after) == [(0, 3)]


def test_a_change_with_a_time_does_not_wait(models, make_pool, directors):
    play(
        models,
        make_pool,
        "rep:2",
        [[0, 1]],
        [change("out", 1, at_s=5.0)],
        osds=3,
    )
    (outcome,) = directors[0].changes.applied
    assert outcome.asked_ns == 5 * SECOND_NS


@pytest.mark.parametrize(
    ("scheme", "moved_osd", "sends"),
    [
        # Of RS(2,1) on OSDs 0 to 2, shard 1 goes from OSD 1 to the primary, OSD 0, and on to OSD 3.
        ("rs:2,1", 1, 2),
        # Shard 0 is the primary's: by log the new primary, OSD 3, reads it from OSD 0.
        ("rs:2,1", 0, 1),
        # A replica goes from the primary to OSD 3, or from a former primary to the new one.
        ("rep:3", 1, 1),
        ("rep:3", 0, 1),
    ],
)
def test_a_shard_that_moves_is_read_once_and_sent_through_the_primary(
    models, make_pool, directors, scheme, moved_osd, sends
):
    result = play(
        models,
        make_pool,
        scheme,
        [[0, 1, 2]],
        [change("out", moved_osd)],
        osds=4,
        object_writes_count=1,
    )
    shard_bytes = {"rs:2,1": MIB // 2, "rep:3": MIB}[scheme]
    moved_bytes = OBJECTS * shard_bytes
    row = result.row.faults.recovery
    assert row.recovery_bytes == moved_bytes
    assert row.recovery_device_read_bytes == moved_bytes
    # Messages have headers, and members note intervals: some per cent.
    assert moved_bytes < row.recovery_device_write_bytes < 1.1 * moved_bytes
    net_bytes = row.recovery_private_net_bytes
    assert sends * moved_bytes < net_bytes < (sends + 0.1) * moved_bytes


def test_backfill_moves_the_primary_s_shard_directly(models, make_pool, directors):
    """A PG whose new primary is backfilled is led by the old one, which has the shard."""
    result = play(models, make_pool, "rs:2,1", [[0, 1, 2]], [change("out", 0)], osds=4)
    moved_bytes = OBJECTS * MIB // 2
    assert result.row.faults.recovery.recovery_device_read_bytes == moved_bytes
    net_bytes = result.row.faults.recovery.recovery_private_net_bytes
    assert moved_bytes < net_bytes < 1.05 * moved_bytes
    states = {state for _, _, state in directors[0].state.timeline.changes}
    assert "active+backfilling" in states


def test_shards_of_one_object_move_in_one_operation(models, make_pool, directors):
    def up_sets(weights):
        return np.array([[0, 4, 5, 3] if weights.out else [0, 1, 2, 3]], dtype=np.int64)

    row = play(
        models, make_pool, "rs:2,2", up_sets, [change("out", 1)], osds=6
    ).row.faults.recovery
    # A binding has places for four OSDs: the primary, one source and one target, not for two of each.
    assert row.recovery_operations == 2 * OBJECTS
    assert row.recovery_bytes == 2 * OBJECTS * MIB // 2
    assert row.recovery_device_read_bytes == row.recovery_bytes


def test_the_old_copies_are_deleted_some_objects_at_a_time(
    models, make_pool, directors
):
    """70 objects of one PG: transactions of 30, 30 and 10, with a pause of a second after each."""
    play(
        models,
        make_pool,
        "rs:2,1",
        [[0, 1, 2]],
        [change("out", 1)],
        osds=4,
        objects=70,
    )
    (director,) = directors
    (outcome,) = director.changes.applied
    (group,) = director.state.groups
    assert sorted(group.copies) == [(0, 0), (2, 2), (3, 1)]
    assert director.state.now_ns >= outcome.clean_ns + 3 * SECOND_NS


def test_a_shard_that_returns_to_an_osd_is_moved_again(models, make_pool, directors):
    """OSD 1 gives shard 1 up and stays a member: what it had of it is gone when the shard comes back."""

    def up_sets(weights):
        return np.array([[0, 2, 1] if weights.out else [0, 1, 2]], dtype=np.int64)

    row = play(
        models,
        make_pool,
        "rs:2,1",
        up_sets,
        [change("out", 3), change("in", 3)],
        osds=4,
    ).row.faults.recovery
    assert row.recovery_bytes == 2 * 2 * OBJECTS * MIB // 2


@pytest.mark.parametrize(("kind", "is_out"), [("out", True), ("auto_out", False)])
def test_an_osd_that_restarts_stays_out_if_an_operator_said_so(
    models, make_pool, directors, kind, is_out
):
    restart = Failure(
        osds=(1,), time_ns=30 * SECOND_NS, back_ns=40 * SECOND_NS, kind="process"
    )
    play(
        models,
        make_pool,
        "rep:2",
        [[0, 1]],
        [change(kind, 1)],
        osds=3,
        failures=[restart],
    )
    assert (1 in directors[0].state.map.out) == is_out


def test_the_first_osd_of_crush_leads_a_replicated_pg(models, make_pool, directors):
    """CRUSH closes the gap: OSD 1 leads, although the new one takes the first place."""

    def up_sets(weights):
        return np.array([[1, 2, 3] if weights.out else [0, 1, 2]], dtype=np.int64)

    play(models, make_pool, "rep:3", up_sets, [change("out", 0)], osds=4)
    (group,) = directors[0].state.groups
    assert group.up == (3, 1, 2)
    assert group.members.primary_osd == 1


def test_new_hosts_make_a_pg_clean_that_had_too_few(models, make_pool, directors):
    """CRUSH finds two of three OSDs at first; the change ends once the third has all objects."""

    def up_sets(weights):
        has_third = dict(weights.crush).get(2, 0) > 0
        return np.array([[0, 1, 2 if has_third else NO_OSD]], dtype=np.int64)

    result = play(
        models, make_pool, "rs:2,1", up_sets, [change("weight", 2, weight=1)], osds=3
    )
    (outcome,) = directors[0].changes.applied
    assert outcome.clean_ns > outcome.made_ns
    assert result.row.faults.recovery.recovery_operations == OBJECTS
    assert directors[0].state.groups[0].is_clean


# Of 1200 MiB/s, each of 32 queues gives best effort nine tenths of its part. The start of an object, 1 MiB,
# waits that long after the reply to the previous push, which is of the same class.
LIMITED_S = 1 / (0.9 * 1200 / 32)
# Longest time of an object without a limit.
OBJECT_S = 0.007
UP_THRU_S = 1.0


def seconds_until_clean(models, make_pool, profile, acting):
    """Mark OSD 1 out, with whole logs, and return the time from the map until the PGs are clean [s]."""
    queue = mclock("tentacle", profile, queues=32)
    (row,) = play(
        replace(models, op_queue=queue),
        make_pool,
        "rep:3",
        acting,
        [change("out", 1)],
        osds=6,
        object_writes_count=1,
    ).timeline["changes"]
    return row["clean_s"] - row["map_s"]


@pytest.mark.parametrize(
    ("profile", "limited_count"),
    # The first object of a PG starts at once. Each of the other 39 waits until its queue may start it.
    [("balanced", OBJECTS - 1), ("high_recovery_ops", 0)],
)
def test_a_move_takes_a_map_for_up_thru_and_the_limit_of_best_effort(
    models, make_pool, profile, limited_count
):
    found_s = seconds_until_clean(models, make_pool, profile, [[0, 1, 2]])
    wanted_s = UP_THRU_S + limited_count * LIMITED_S
    assert wanted_s < found_s < wanted_s + OBJECTS * OBJECT_S


def test_pgs_that_share_an_osd_move_one_after_the_other(models, make_pool):
    # Both of their new members are OSD 5. The first object of each PG starts at once.
    found_s = seconds_until_clean(models, make_pool, "balanced", [[0, 1, 2], [3, 1, 4]])
    wanted_s = UP_THRU_S + (OBJECTS - 2) * LIMITED_S
    assert wanted_s < found_s < wanted_s + OBJECTS * OBJECT_S


def test_a_lost_shard_is_recovery_and_a_moved_one_best_effort():
    group = Group(0, parse_scheme("rs:2,1"), [0, 1, 2], [7])
    everywhere = {0, 1, 2, 3}
    assert group.is_misplaced(7, everywhere)
    # Shard 1 moves to OSD 3 while OSD 1 still has it, or is lost with OSD 1.
    group.up = (0, 3, 2)
    group.add_empty_copies()
    assert group.is_misplaced(7, everywhere)
    assert not group.is_misplaced(7, everywhere - {1})


@pytest.mark.parametrize("is_optimised", [True, False])
def test_the_start_of_a_move_costs_the_object_and_its_messages_the_shard(
    models, make_context, is_optimised
):
    release = generation("tentacle")
    ec = release.ec if is_optimised else release.classic_ec
    queue = mclock("tentacle", "balanced", queues=8)
    context = make_context(replace(models, op_queue=queue, ec=ec), "rs:2,1").moving
    path = move_path(context, moves=[(1, 2)], sizes_bytes=[2 * MIB])

    def costs(number):
        return sorted(path.dynamics.costs[path.dynamics.classes == number].tolist())

    # Shards of 2 MiB make an object of 4 MiB. The reply to the push costs an operation: 1200 MiB/s for
    # 21,500 operations per second are 58,525 bytes each. Reads are immediate.
    start, messages = [4 * MIB], [58_525, 2 * MIB]
    if is_optimised:
        assert costs(BEST_EFFORT) == messages + start
        assert costs(RECOVERY) == []
    else:
        # The primary pushes with the priority of the reply to its read, 127: it counts as recovery.
        assert costs(BEST_EFFORT) == start
        assert costs(RECOVERY) == messages


def test_a_move_of_a_copy_is_best_effort_with_its_messages(models, make_context):
    queue = mclock("reef", "balanced", queues=8)
    context = make_context(replace(models, op_queue=queue), "rep:3").moving
    path = move_path(context, moves=[(0, 2)], sizes_bytes=[4 * MIB])
    assert RECOVERY not in path.dynamics.classes


def test_norebalance_holds_backfills_of_data_that_only_moves(models, make_pool):
    """Under the flag, reservations and maps proceed; objects move once it is gone, and not before."""

    def clean_s(end_s):
        (row,) = play(
            models,
            make_pool,
            "rep:3",
            [[0, 1, 2]],
            [replace(change("out", 1, at_s=1), norebalance_ns=(end_s - 1) * SECOND_NS)],
            osds=5,
        ).timeline["changes"]
        return row["clean_s"]

    free_s = clean_s(1)
    # Backfill begins two maps after that of the change: pg_temp, up_thru. It is over within a second.
    assert 5 < free_s < 8
    # The end of pg_temp and the last up_thru follow after the objects.
    assert 30 + 1 < clean_s(30) < 30 + 4


def test_the_commands_of_a_change_are_a_part_of_its_duration(models, make_pool):
    """Two OSDs marked out by two commands: the second one begins its PG's movement 7 s after the first."""

    def row_of(delays_s):
        planned = replace(
            change("out", 1, 2, at_s=1),
            delays_ns=tuple(delay * SECOND_NS for delay in delays_s),
        )
        (row,) = play(
            models, make_pool, "rep:2", [[0, 1], [3, 2]], [planned], osds=5
        ).timeline["changes"]
        return row

    at_once = row_of(())
    typed = row_of((2, 9))
    # The shards of both commands count as one change.
    assert at_once["shards_moved"] == typed["shards_moved"] == 2
    assert typed["map_s"] == pytest.approx(1 + 2 + at_once["map_s"] - 1)
    # A map 50 ms after the second command, and four more for pg_temp and up_thru, each 1 s after the last.
    assert typed["duration_s"] == pytest.approx(9 + 0.05 + 4)
    for row in (at_once, typed):
        parts_s = [row[f"{part}_s"] for part in ("commands", "peering", "movement")]
        assert sum(parts_s) == pytest.approx(row["duration_s"])
        assert min(parts_s) >= 0
    assert at_once["commands_s"] == 0
    # The first PG has moved its objects by the second command: that time is movement, not commands.
    (first_s, _) = np.subtract(
        typed["backfills"]["end_s"], typed["backfills"]["start_s"]
    )
    assert typed["commands_s"] == pytest.approx(9 - first_s)


def test_a_plan_may_state_the_objects_of_each_pg(models, make_pool, directors):
    result = play(
        models,
        make_pool,
        "rep:2",
        [[0, 1], [2, 3]],
        [change("out", 1)],
        osds=5,
        group_objects=(7, 33),
    )
    (director,) = directors
    assert [len(group.objects) for group in director.state.groups] == [7, 33]
    # Only PG 0 is on OSD 1.
    assert result.row.faults.recovery.recovery_operations == 7
