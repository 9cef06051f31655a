"""Requests that the state of their placement group held, apart from those that ran."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.ceph.failures.results.phases import (
    BLOCKED_BY,
    describe_phases,
    held_ns,
)
from stripesim.sim.ceph.failures.timeline import FaultTimeline
from stripesim.sim.engine.program import PENDING
from stripesim.sim.observe.client_requests import ClientRequests


def test_a_request_was_blocked_while_its_group_was_not_active():
    timeline = FaultTimeline(2)
    for time_ns, state in (
        (100, State.STALE),
        (200, State.PEERING),
        (250, State.WAIT),
        (400, State.CLEAN),
    ):
        timeline.enter(time_ns, 1, state)
    timeline.enter(900, 0, State.PEERING)
    issued = np.array([50, 110, 110, 210, 300, 500, 950])
    completed = np.array([405, 150, 410, 402, 401, 510, PENDING])
    groups = np.array([0, 1, 1, 1, 1, 1, 0])
    flags = np.zeros(7, dtype=bool)
    held = held_ns(
        timeline,
        ClientRequests(issued, completed, groups, flags, groups, 0 * groups),
        1000,
    )
    by_reason = {name: held[:, index].tolist() for index, name in enumerate(BLOCKED_BY)}
    assert by_reason == {
        # The second ran although its group had a dead member; the third needed that member.
        "detection": [0, 0, 90, 0, 0, 0, 0],
        "peering": [0, 0, 50, 40, 0, 0, 50],
        "lease": [0, 0, 150, 150, 100, 0, 0],
        "min_size": [0, 0, 0, 0, 0, 0, 0],
        "gateway": [0, 0, 0, 0, 0, 0, 0],
    }


def test_requests_of_a_member_that_returns_unnoticed_were_blocked():
    # The member dies at 100 and is back at 300, before the monitor marks it down at 500.
    timeline = FaultTimeline(1)
    for time_ns, state in (
        (100, State.STALE),
        (500, State.PEERING),
        (550, State.CLEAN),
    ):
        timeline.enter(time_ns, 0, state)
    timeline.note(300, "returned", "osd.0")
    # One needs the member, one does not, one comes after its return, and one waits for peering.
    issued = np.array([150, 150, 350, 450])
    completed = np.array([320, 160, 360, 560])
    zeros = np.zeros(4, dtype=np.int64)
    requests = ClientRequests(issued, completed, zeros, zeros > 0, zeros, zeros)
    held = held_ns(timeline, requests, 1000)
    by_reason = dict(zip(BLOCKED_BY, held.T.tolist(), strict=True))
    assert by_reason["detection"] == [150, 0, 0, 0]
    assert by_reason["peering"] == [0, 0, 0, 50]


class _Finished(NamedTuple):
    """What the description of phases needs of a finished run."""

    timeline: FaultTimeline
    requested: ClientRequests
    end_ns: int

    def groups_of_pg(self, group):
        return (group,)


@pytest.mark.parametrize(("last_ns", "iops"), [(400_000_000, 10.0), (PENDING, 2.0)])
def test_the_time_of_a_phase_ends_with_the_load(last_ns, iops):
    """Four requests in 0.4 s are 10 a second, however long recovery takes, unless one is still pending."""
    timeline = FaultTimeline(1)
    completed = np.array([100_000_000, 200_000_000, 300_000_000, last_ns])
    zeros = np.zeros(4, dtype=np.int64)
    requests = ClientRequests(zeros, completed, zeros, zeros > 0, zeros + 1, zeros)
    phases = {
        "recovery": [(0, 1_500_000_000)],
        "after": [(1_500_000_000, 2_000_000_000)],
    }
    numbers, _ = describe_phases(_Finished(timeline, requests, 2_000_000_000), phases)
    assert numbers["recovery"].iops == pytest.approx(iops)
    assert ("after" in numbers) == (last_ns == PENDING)
