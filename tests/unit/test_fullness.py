"""How full OSDs become while data moves: both copies count, and what is too full has to wait."""

import numpy as np
import pytest

from stripesim.models.generations import recovery_model
from stripesim.models.recovery import SECOND_NS
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.failures import FaultPlan, PlannedChange
from stripesim.sim.ceph.failures.cluster_map import MapChange
from stripesim.sim.ceph.failures.fullness import Fullness
from stripesim.sim.ceph.failures.plan import FillPlan
from stripesim.sim.run import simulate

MIB = 1 << 20
OBJECTS = 40


def fill_of(used, capacity, shard_bytes=1, *, clients_write=False):
    return FillPlan(
        capacity_bytes=np.array(capacity, dtype=np.float64),
        used_bytes=np.array(used, dtype=np.float64),
        shard_bytes=shard_bytes,
        nearfull_ratio=0.85,
        backfillfull_ratio=0.90,
        full_ratio=0.95,
        clients_write=clients_write,
    )


def test_an_osd_crosses_each_ratio_once_on_its_way():
    fullness = Fullness(fill_of([80, 90], [100, 100]))
    crossed = [fullness.add(second, 0, 5) for second in range(1, 5)]
    # 85, 90, 95 and 100 of 100.
    assert crossed == ["nearfull", "backfillfull", "full", None]
    # OSD 1 is at its ratio from the beginning.
    assert fullness.crossings[0] == (0, 1, "backfillfull")
    assert fullness.history[-1] == (4, 0, 100)
    assert fullness.add(5, 0, -12) is None
    assert fullness.history[-1] == (5, 0, 88)


def test_backfill_needs_room_for_the_whole_pg_and_recovery_for_the_next_shard():
    fullness = Fullness(fill_of([80], [100]))
    assert fullness.has_room(0, 9, is_backfill=True)
    # 80 + 10 is the ratio.
    assert not fullness.has_room(0, 10, is_backfill=True)
    assert fullness.has_room(0, 1000, is_backfill=False)


def test_without_a_plan_nothing_is_full():
    fullness = Fullness(None)
    assert fullness.add(1, 0, 10**9) is None
    assert fullness.has_room(0, 10**9, is_backfill=True)


def play(models, make_pool, fill, objects=OBJECTS, **load):
    """PG 0 moves from OSD 0 to OSD 4, and at the same time PG 1 from OSD 4 to OSD 5."""
    before = np.array([[0, 1], [4, 1]], dtype=np.int64)
    after = np.array([[4, 1], [5, 1]], dtype=np.int64)
    pool = make_pool(models, "rep:2", osds=6, acting=before.tolist(), object_bytes=MIB)
    plan = FaultPlan(
        changes=[PlannedChange(kind="out", changes=(MapChange("out", 0),))],
        up_sets=lambda weights: after if weights.out else before,
        image_objects=objects,
        model=recovery_model("quincy"),
        fill=fill,
    )
    once = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=objects * MIB,
        **{"read_fraction": 1.0, "requests": 1, "queue_depth": 1, **load},
    )
    return simulate(pool, once.start(), faults=plan)


@pytest.fixture
def per_group(make_pool, models):
    pool = make_pool(models, "rep:2", osds=6, acting=[[0, 1], [4, 1]], object_bytes=MIB)
    objects = np.arange(OBJECTS, dtype=np.int64)
    return np.bincount(pool.groups_of(np.zeros_like(objects), objects), minlength=2)


def test_old_and_new_copies_count_until_the_old_one_is_deleted(
    models, make_pool, per_group
):
    first, second = per_group.tolist()
    used = [first, OBJECTS, 0, 0, second, 0]
    result = play(models, make_pool, fill_of(used, [10 * OBJECTS] * 6))
    fill = result.timeline["fill"]
    last = {}
    for osd, used_bytes in zip(fill["osd"], fill["used_bytes"], strict=True):
        last[osd] = used_bytes
    # In the end OSD 4 has PG 0, OSD 5 has PG 1, OSD 0 has nothing.
    assert last == {0: 0, 4: first, 5: second}
    # OSD 4 held both for a while: PG 1 leaves only once it is clean.
    most = max(
        used_bytes
        for osd, used_bytes in zip(fill["osd"], fill["used_bytes"], strict=True)
        if osd == 4
    )
    assert second < most <= first + second
    assert result.row.faults.clean_at_end


def test_backfill_to_an_osd_that_is_too_full_waits_until_it_has_deleted(
    models, make_pool, per_group
):
    first, second = per_group.tolist()
    used = [first, OBJECTS, 0, 0, second, 0]
    # OSD 4 has room for PG 0 only once PG 1 is gone: 0.9 of its capacity is less than both.
    capacity = [10 * OBJECTS] * 6
    capacity[4] = round((first + second) / 0.9) - 1
    assert max(first, second) < 0.9 * capacity[4] < first + second
    result = play(models, make_pool, fill_of(used, capacity))
    states = result.timeline["pg_states"]
    assert max(states["active+backfill_toofull"]) == 1
    assert result.row.faults.clean_at_end
    (change,) = result.timeline["changes"]
    # osd_backfill_retry_interval.
    assert change["duration_s"] > 30
    assert result.timeline["fill"]["crossings"] == []


def test_backfill_waits_for_ever_if_nothing_frees_space(models, make_pool, per_group):
    first, second = per_group.tolist()
    capacity = [10 * OBJECTS] * 6
    capacity[5] = second
    used = [first, OBJECTS, 0, 0, second, 0]
    result = play(models, make_pool, fill_of(used, capacity))
    assert not result.row.faults.clean_at_end
    # OSD 0 frees space once, so that Ceph tries again once, and the run ends.
    assert 30 * SECOND_NS < result.engine_run.end_ns < 60 * SECOND_NS
    (change,) = result.timeline["changes"]
    assert change["duration_s"] is None


def test_a_full_osd_stops_writes_until_it_has_deleted(models, make_pool, per_group):
    """OSD 0 is full until PG 0 has left it, which clients would write to meanwhile."""
    first, second = per_group.tolist()
    used = [first, OBJECTS, 0, 0, second, 0]
    capacity = [10 * OBJECTS] * 6
    capacity[0] = first
    load = {"read_fraction": 0.0, "requests": 400, "queue_depth": 0, "rate_per_s": 100}
    waits_s = {}
    for clients_write in (False, True):
        fill = fill_of(used, capacity, clients_write=clients_write)
        result = play(models, make_pool, fill, **load)
        assert result.row.requests == 400
        (change,) = result.timeline["changes"]
        waits_s[clients_write] = result.requested.latencies_ns.max() / 1e9
    # A new map takes 2 s at most, and peering as long: without the ratio nobody waits longer.
    assert waits_s[False] < 4
    # With it, what is asked in the first moments waits until the old copy is deleted.
    assert waits_s[True] > 0.9 * change["clean_s"]


def test_reads_go_on_while_an_osd_is_full(models, make_pool, per_group):
    # Given OSD 0 full until PG 0 has left it, and as many reads as writes in an open loop.
    first, second = per_group.tolist()
    capacity = [10 * OBJECTS] * 6
    capacity[0] = first
    fill = fill_of([first, OBJECTS, 0, 0, second, 0], capacity, clients_write=True)
    load = {"read_fraction": 0.5, "requests": 400, "queue_depth": 0, "rate_per_s": 100}
    result = play(models, make_pool, fill, **load)
    requested = result.requested
    # When both PGs have peered, at 2.05 s, and the old copies are not deleted yet, at 4.05 s.
    issued_s = requested.issued_ns / 1e9
    waits_s = (requested.completed_ns - requested.issued_ns) / 1e9
    meanwhile = (issued_s > 2.1) & (issued_s < 3)
    # Then reads are served in less than a millisecond, except of a PG that peers once more, and all writes
    # wait for more than a second.
    (change,) = result.timeline["changes"]
    assert change["clean_s"] > 4
    assert np.median(waits_s[meanwhile & ~requested.is_write]) < 1e-3
    assert waits_s[meanwhile & requested.is_write].min() > 1
    # Requests of both kinds count for their PG.
    assert set(requested.groups.tolist()) == {0, 1}
