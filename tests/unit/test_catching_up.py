"""Members in log recovery serve each object that they already have."""

import numpy as np
import pytest

from stripesim.models.generations import recovery_model
from stripesim.models.recovery import SECOND_NS
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.failures import Failure, FaultPlan
from stripesim.sim.run import simulate

MIB = 1 << 20
OBJECTS = 40


def returning(models, make_pool, scheme, *, engine="compiled", requests=5000, **limits):
    """Run 50 requests/s, a tenth writes, on 40 objects of one group while OSD 0 is away for ten seconds."""
    width = {"rs:4,2": 6, "rep:3": 3}[scheme]
    acting = np.arange(width, dtype=np.int64)[None, :]
    pool = make_pool(
        models, scheme, osds=width, acting=acting.tolist(), object_bytes=MIB
    )
    plan = FaultPlan(
        failures=[Failure(osds=(0,), time_ns=10 * SECOND_NS, back_ns=20 * SECOND_NS)],
        up_sets=lambda weights: acting,
        image_objects=OBJECTS,
        model=recovery_model("pacific").given(recovery_sleep_ns=SECOND_NS, **limits),
    )
    load = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=OBJECTS * MIB,
        read_fraction=0.9,
        requests=requests,
        queue_depth=0,
        rate_per_s=50,
        seed=3,
    )
    return simulate(pool, load.start(), faults=plan, engine=engine)


def catching_up(result):
    """Return which requests that were issued while the group recovered had to do without the first OSD."""
    ((start_s, stop_s),) = result.timeline["phases"]["recovery"]
    stream = result.engine_run.streams[0]
    during = (stream.issued_ns > start_s * SECOND_NS) & (
        stream.issued_ns < stop_s * SECOND_NS
    )
    names = [
        result.book.templates[template].name
        for template in stream.templates[during].tolist()
    ]
    return np.array(["[0] catching up" in name for name in names])


@pytest.mark.parametrize("scheme", ["rs:4,2", "rep:3"])
def test_a_returning_osd_serves_each_object_that_it_has(models, make_pool, scheme):
    result = returning(models, make_pool, scheme)
    assert result.row.faults.clean_at_end
    # One object a second is whole again, so on average half of those that were written are yet to come.
    missing = result.row.faults.recovery.recovery_operations
    assert 15 <= missing <= 35
    without = catching_up(result)
    expected = missing / 2 / OBJECTS
    assert len(without) > 700
    assert without.mean() == pytest.approx(
        expected, abs=3 * np.sqrt(expected / len(without)) + 0.02
    )
    tenth = len(without) // 10
    assert without[:tenth].mean() > expected > without[-tenth:].mean()


@pytest.mark.parametrize("scheme", ["rs:4,2", "rep:3"])
def test_an_async_recovery_target_serves_no_request(models, make_pool, scheme):
    result = returning(models, make_pool, scheme, async_recovery_min_count=0)
    assert catching_up(result).mean() > 0.95


@pytest.mark.parametrize("scheme", ["rs:4,2", "rep:3"])
def test_both_engines_send_requests_to_the_same_members(models, make_pool, scheme):
    # The OSD is back after 20 s, and recovers in the 40 s that follow.
    one, other = (
        returning(models, make_pool, scheme, engine=engine, requests=3000)
        for engine in ("compiled", "simpy")
    )
    assert one.row.faults.clean_at_end
    assert one.sha256 == other.sha256
    assert one.timeline == other.timeline
