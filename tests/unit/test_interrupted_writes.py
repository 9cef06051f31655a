"""Writes interrupted by a failure are recovered, or rolled back if too few members have them."""

import numpy as np
import pytest

from stripesim.models.generations import recovery_model
from stripesim.models.recovery import SECOND_NS
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.failures import Failure, FaultPlan
from stripesim.sim.run import simulate

MIB = 1 << 20
OBJECTS = 64


def cut(models, make_pool, scheme, *, engine="compiled", dead=0, read_fraction=0.0):
    """Kill an OSD while clients write, with a few sub-writes on the network until the new map."""
    width = {"rs:4,2": 6, "rep:3": 3}[scheme]
    acting = np.tile(np.arange(width, dtype=np.int64), (4, 1))
    pool = make_pool(
        models, scheme, osds=width, acting=acting.tolist(), object_bytes=MIB
    )
    plan = FaultPlan(
        failures=[
            Failure(osds=(dead,), time_ns=SECOND_NS // 10, back_ns=40 * SECOND_NS)
        ],
        up_sets=lambda weights: acting,
        image_objects=OBJECTS,
        model=recovery_model("pacific"),
    )
    load = Synthetic(
        pattern="rand",
        block_bytes=65536,
        image_bytes=OBJECTS * MIB,
        read_fraction=read_fraction,
        requests=100,
        queue_depth=32,
        seed=3,
    )
    return simulate(pool, load.start(), faults=plan, engine=engine)


SLOW = {
    "rate_bits_per_s": 1e7
}  # 52 ms for a sub-write of a copy, as long as the map takes


@pytest.mark.parametrize(
    ("scheme", "dead", "recovered", "rolled_back"),
    [
        (
            "rep:3",
            0,
            1,
            3,
        ),  # The primary has sent one of its four groups' writes to the second copy.
        (
            "rep:3",
            2,
            4,
            0,
        ),  # The primary lives and has all four, the second copy one of them.
        ("rs:4,2", 0, 0, 3),  # Fewer than four shards have the new data.
        ("rs:4,2", 5, 1, 3),
    ],
)
def test_writes_on_enough_members_are_recovered_and_others_rolled_back(
    models, make_pool, change, scheme, dead, recovered, rolled_back
):
    slow = change(models, private_nic=SLOW)
    one, other = (
        cut(slow, make_pool, scheme, dead=dead, engine=engine)
        for engine in ("compiled", "simpy")
    )
    assert one.sha256 == other.sha256
    assert one.timeline == other.timeline
    assert one.timeline["interrupted"] == {
        "recovered": recovered,
        "rolled back": rolled_back,
    }
    assert one.row.faults.clean_at_end
    assert one.row.faults.requests_pending == one.row.faults.requests_failed == 0
    # What the survivors lack is recovered long before the dead OSD is back, and is no recovery of its data.
    early = one.engine_run.streams[1].issued_ns < 40 * SECOND_NS
    assert early.sum() == {("rep:3", 0): 1, ("rep:3", 2): 3, ("rs:4,2", 5): 1}.get(
        (scheme, dead), 0
    )
    assert one.row.faults.checking_s > 40


def test_reads_leave_no_interrupted_writes(models, make_pool):
    result = cut(models, make_pool, "rep:3", read_fraction=1.0)
    assert result.timeline["interrupted"] == {"recovered": 0, "rolled back": 0}
    assert result.row.faults.recovery.recovery_operations == 0
