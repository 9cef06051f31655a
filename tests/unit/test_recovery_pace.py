"""The pace of a recovery by hand, from the times of its operations and the states of its PGs."""

from types import SimpleNamespace

import numpy as np
import pytest

from stripesim.sim.ceph.failures.background.operations import Operation
from stripesim.sim.ceph.failures.background.recovery import RecoveryRound
from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.ceph.failures.results.recovery_results import (
    recovery_pace,
    whole_recovery_s,
)
from stripesim.sim.ceph.failures.timeline import FaultTimeline
from stripesim.sim.ceph.pool import Book
from stripesim.sim.engine.graph_builder import GraphBuilder

SECOND_NS = 10**9


def recovered(*operations, **more):
    """Return a run whose operations rebuild a shard each: PG, begin and end [s]."""
    groups, begins_s, ends_s = np.array(operations).T
    count = len(operations)
    graph = GraphBuilder("rebuild")
    book = Book(np.zeros((1, 1), dtype=np.int32))
    book.add(graph.finish(reply=graph.issue))
    return SimpleNamespace(
        rounds=[
            RecoveryRound(Operation(group, item, (0,), "rebuild"), is_last=True)
            for item, group in enumerate(groups.tolist())
        ],
        rounds_done=np.ones(count, dtype=bool),
        operations_done=np.ones(count, dtype=bool),
        shards_done=np.ones(count, dtype=np.int64),
        recovery=SimpleNamespace(
            issued_ns=begins_s * SECOND_NS,
            completed_ns=ends_s * SECOND_NS,
            templates=np.zeros(count, dtype=np.int64),
            bindings=np.zeros(count, dtype=np.int64),
        ),
        book=book,
        wake_ns=np.zeros(1, dtype=np.int64),
        **more,
    )


def test_the_whole_recovery_is_longer_only_while_some_pg_moves_objects():
    # Given PGs that move from 10 to 20 s, 15 to 30 s and 60 to 70 s, and have an eighth of the objects
    run = recovered(
        (0, 10, 12), (1, 15, 17), (0, 18, 20), (1, 28, 30), (2, 60, 62), (2, 68, 70),
        plan=SimpleNamespace(failures=(), changes=(), objects_ratio=8),
    )  # fmt: skip
    # When all PGs are clean at 100 s
    whole_s = whole_recovery_s(run, 10 * SECOND_NS, 100 * SECOND_NS)
    # Then 30 s become 240 s, and the other 60 s of peering and waiting for maps stay.
    assert whole_s == 8 * 30 + 60


@pytest.mark.parametrize(
    ("until_ns", "limit"),
    [(9_999_999_999, "sleep"), (10_000_000_000, "lease")],
)
def test_a_wait_for_a_lease_limits_a_recovery_of_which_it_is_half(until_ns, limit):
    # Given a recovery of 10 s, and a PG that waits for its lease from 3 s on, for nothing else from 5 s on
    timeline = FaultTimeline(groups=1)
    timeline.enter(3 * SECOND_NS, 0, State.WAIT)
    timeline.enter(until_ns, 0, State.CLEAN)
    waited_ns = {"sleep": 4 * SECOND_NS, "object": SECOND_NS, "max_active": 0}
    run = recovered((0, 0, 5), timeline=timeline, waited_ns=waited_ns)
    limited_by, _ = recovery_pace(run, {"recovery": [(0, 10 * SECOND_NS)]})
    assert limited_by == limit
