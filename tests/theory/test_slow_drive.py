"""What one slow drive does to clients, by arithmetic: who waits for it, when p99 jumps, and saturation."""

from __future__ import annotations

import numpy as np
import pytest

from stripesim.models.generations import recovery_model
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.failures import FaultPlan, SlowDrives
from stripesim.sim.engine.program import SLOWDOWN_UNIT
from stripesim.sim.run import simulate

# A whole number of stripes of 6 chunks of 4 KiB: a chunk of padding would not be read.
OBJECT_BYTES = 42 * 6 * 4096
# So many that few requests find their stripe in a cache.
OBJECTS = 20_000
SLOW_OSD = 0


def slow_from_start(factor):
    return SlowDrives(
        osds=(SLOW_OSD,), time_ns=0, slowdown=round(factor * SLOWDOWN_UNIT)
    )


def play(
    pool, *slow_drives, queue_depth=1, requests=1500, until_ns=None, read_fraction
):
    """Run a closed loop on a pool with slow drives."""
    acting = pool.cluster.acting
    plan = FaultPlan(
        slow_drives=slow_drives,
        up_sets=lambda weights: acting,
        image_objects=OBJECTS,
        model=recovery_model("quincy"),
    )
    load = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=OBJECTS * pool.object_bytes,
        read_fraction=read_fraction,
        requests=requests,
        queue_depth=queue_depth,
    )
    return simulate(pool, load.start(), faults=plan, until_ns=until_ns)


def latencies_of(result):
    requested = result.requested
    return requested.completed_ns - requested.issued_ns


# Members of a PG whose drives an operation waits for: all replicas or shards for a write, the primary
# for a read of replicas, the k data shards for a read of whole stripes.
@pytest.mark.parametrize(
    ("scheme", "read_fraction", "waits_for"),
    [("rep:3", 0.0, 3), ("rs:6,3", 0.0, 9), ("rep:3", 1.0, 1), ("rs:6,3", 1.0, 6)],
)
def test_requests_are_late_exactly_if_they_wait_for_the_slow_drive(
    models, make_pool, scheme, read_fraction, waits_for
):
    # Given 30 OSDs, each in as many PGs as the scheme is wide.
    osds = 30
    pool = make_pool(models, scheme, groups=osds, osds=osds, object_bytes=OBJECT_BYTES)
    healthy = play(pool, read_fraction=read_fraction)
    # When one drive is a thousand times as slow.
    slow = play(pool, slow_from_start(1000), read_fraction=read_fraction)
    # Then the late requests are those of PGs that have it among the members that the operation needs.
    is_late = latencies_of(slow) > 2 * latencies_of(healthy).max()
    members = pool.cluster.acting[slow.requested.groups, :waits_for]
    np.testing.assert_array_equal(is_late, (members == SLOW_OSD).any(axis=1))
    # Requests draw objects, and objects draw PGs: 4 standard deviations of both.
    share = waits_for / osds
    deviation = np.sqrt(share * (1 - share) * (1 / len(is_late) + 1 / OBJECTS))
    assert is_late.mean() == pytest.approx(share, abs=4 * deviation)


@pytest.mark.parametrize("scheme", ["rep:3", "rs:6,3"])
@pytest.mark.parametrize(("slow_groups", "jumps"), [(2, False), (10, True)])
def test_p99_jumps_when_more_than_one_in_a_hundred_requests_wait(
    models, make_pool, scheme, slow_groups, jumps
):
    # Given 400 PGs, of which 2 (0.5 %) or 10 (2.5 %) have the slow drive; the others are elsewhere.
    width = {"rep:3": 3, "rs:6,3": 9}[scheme]
    with_it = [[*range(width)]] * slow_groups
    without = [[*range(width, 2 * width)]] * (400 - slow_groups)
    pool = make_pool(
        models,
        scheme,
        osds=2 * width,
        acting=with_it + without,
        object_bytes=OBJECT_BYTES,
    )
    healthy = play(pool, read_fraction=0.0)
    slow = play(pool, slow_from_start(100), read_fraction=0.0)
    is_slow = slow.requested.groups < slow_groups
    assert (is_slow.mean() > 0.01) == jumps
    p99_ns = np.percentile(latencies_of(slow), 99)
    # All writes are alike, so p99 is that of a healthy drive or that of a slow one.
    if jumps:
        assert p99_ns >= latencies_of(slow)[is_slow].min()
        # A commit waits for a sync, which takes 100 times its time.
        assert p99_ns > 100 * models.ssd.sync_ns(4096)
    else:
        assert p99_ns <= latencies_of(healthy).max()


@pytest.mark.parametrize("factor", [100, 400])
def test_a_saturated_closed_loop_runs_at_the_rate_of_the_slow_drive(
    sleepless, make_pool, factor
):
    # Given reads of 3-replication on 12 OSDs, so 1 of 12 goes to the slow drive, and 256 in flight.
    osds = 12
    pool = make_pool(
        sleepless, "rep:3", groups=5 * osds, osds=osds, object_bytes=OBJECT_BYTES
    )
    service_ns = factor * sleepless.ssd.read_ns(4096)
    end_ns = round(2000 * service_ns)
    result = play(
        pool,
        slow_from_start(factor),
        queue_depth=256,
        requests=None,
        until_ns=end_ns,
        read_fraction=1.0,
    )
    # When the requests in flight have piled up.
    requested = result.requested
    completes_late = requested.completed_ns > end_ns // 2
    is_slow = pool.cluster.acting[requested.groups, 0] == SLOW_OSD
    # Then the drive is always busy: half of the run has room for 1000 services on each server.
    services = 1000 * sleepless.ssd.servers
    # In the second half, 3/4 of all requests have been issued on average. Their blocks are in a cache.
    blocks = OBJECTS * OBJECT_BYTES // 4096
    cached = 0.75 * len(requested.issued_ns) / blocks
    slow_count = services / (1 - cached)
    assert (completes_late & is_slow).sum() == pytest.approx(slow_count, rel=0.005)
    # And the cluster completes as many requests as bring the drive that work.
    objects = np.arange(OBJECTS, dtype=np.int64)
    groups = pool.groups_of(np.zeros_like(objects), objects)
    share = (pool.cluster.acting[groups, 0] == SLOW_OSD).mean()
    # 4 standard deviations of the number of requests between two slow ones, 1/√4000 in all.
    wanted_count = pytest.approx(slow_count / share, rel=4 / np.sqrt(services))
    assert completes_late.sum() == wanted_count
    # The client submits more than twice as many if all drives are healthy.
    healthy = play(pool, queue_depth=256, requests=20_000, read_fraction=1.0)
    healthy_per_s = 20_000e9 / healthy.engine_run.end_ns
    slow_per_s = completes_late.sum() * 1e9 / (end_ns - end_ns // 2)
    assert slow_per_s < healthy_per_s / 2
