"""New maps and their changes. Data follows any change."""

import numpy as np
import pytest

from stripesim.models.generations import recovery_model
from stripesim.models.recovery import SECOND_NS
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.failures.cluster_map import ClusterMap, MapChange
from stripesim.sim.ceph.failures.director import FaultDirector
from stripesim.sim.run import simulate

MIB = 1 << 20
OBJECTS = 40


def crush(weights):
    """Return up sets of two PGs on OSDs 0 to 2. OSD 3 replaces one that is out, and CRUSH lists it first."""
    out = weights.out
    up_sets = [[0, 1, 2], [1, 2, 0]]
    for row in up_sets:
        if out and out[0] in row:
            row.remove(out[0])
            row.insert(0, 3)
    return np.array(up_sets, dtype=np.int64)


@pytest.mark.parametrize(
    ("is_replicated", "after"),
    [
        # Replicas stay in their places, the new one takes the free place.
        (True, [(0, 3, 2), (3, 2, 0)]),
        # Shards of a code are where CRUSH has them.
        (False, [(3, 0, 2), (3, 2, 0)]),
    ],
)
def test_a_map_change_gives_the_up_sets_before_and_after(is_replicated, after):
    cluster_map = ClusterMap(4, crush, is_replicated=is_replicated)
    update = cluster_map.apply([MapChange("out", 1)])
    assert update.epoch == 2
    assert list(update.up_before) == [(0, 1, 2), (1, 2, 0)]
    assert list(update.up_after) == after
    assert cluster_map.up_sets == after


def test_an_osd_that_is_down_leaves_a_hole_until_it_is_out():
    cluster_map = ClusterMap(4, crush, is_replicated=True)
    down = cluster_map.apply([MapChange("down", 0)])
    assert list(down.up_after) == [(NO_OSD, 1, 2), (1, 2, NO_OSD)]
    assert down.subjects("down", "up") == {0}
    back = cluster_map.apply([MapChange("up", 0)])
    assert list(back.up_after) == list(down.up_before)


def test_a_map_that_only_notes_something_moves_nothing():
    cluster_map = ClusterMap(4, crush, is_replicated=True)
    update = cluster_map.apply([MapChange("up_thru", 2), MapChange("pg_temp", 1)])
    assert update.up_after is update.up_before


def test_the_monitors_know_an_osd_alive_in_the_map_with_which_it_asked():
    """An interval that begins with the map that has ``up_thru`` needs another one."""
    cluster_map = ClusterMap(4, crush, is_replicated=True)
    cluster_map.apply([MapChange("pg_temp", 1)])
    update = cluster_map.apply([MapChange("up_thru", 2)])
    assert update.epoch == 3
    assert cluster_map.up_thru == {0: 1, 1: 1, 2: 2, 3: 1}


@pytest.mark.parametrize("scheme", ["rep:3", "rs:2,1"])
def test_data_moves_off_an_osd_that_is_out_although_it_is_up(
    models, make_pool, monkeypatch, scheme
):
    # Given one PG on OSDs 0 to 2, where OSD 3 replaces the one that is out.
    acting = np.array([[0, 1, 2]], dtype=np.int64)
    pool = make_pool(models, scheme, osds=4, acting=acting.tolist(), object_bytes=MIB)
    plan = FaultPlan(
        up_sets=lambda weights: np.where(np.isin(acting, weights.out), 3, acting),
        image_objects=OBJECTS,
        model=recovery_model("pacific"),
    )
    load = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=OBJECTS * MIB,
        read_fraction=1.0,
        requests=300,
        queue_depth=0,
        rate_per_s=20,
        seed=1,
    )
    # When the monitors mark an OSD out that is up.
    begin = FaultDirector.begin
    directors = []

    def begin_and_mark_out(director, progress):
        directors.append(director)
        director.state.clock.at(SECOND_NS, director.monitor.propose, "out", 1)
        begin(director, progress)

    monkeypatch.setattr(FaultDirector, "begin", begin_and_mark_out)
    result = simulate(pool, load.start(), faults=plan)
    # Then every object moves once, none is lost or out of reach, and the PG is clean on its new members.
    (group,) = directors[0].state.groups
    assert group.members.acting == (0, 3, 2)
    assert result.row.faults.clean_at_end
    assert result.row.faults.recovery.recovery_operations == OBJECTS
    assert result.row.faults.recovery.recovery_lost_bytes == 0
    assert result.row.faults.pgs_unavailable == 0
    assert result.row.requests == 300
