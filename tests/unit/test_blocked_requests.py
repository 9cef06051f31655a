"""Requests that the state of their placement group held, apart from those that ran."""

from __future__ import annotations

import numpy as np

from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.ceph.failures.results.phases import BLOCKED_BY, held_ns
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
