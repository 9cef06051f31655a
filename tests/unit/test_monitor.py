"""The monitors: when they publish maps, and which OSDs they mark out."""

import numpy as np
import pytest

from stripesim.models.generations import recovery_model
from stripesim.models.recovery import SECOND_NS
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.failures.cluster_state import initial_state
from stripesim.sim.ceph.failures.monitor import DownOut, Monitor

ACTING = np.array([[0, 1], [2, 3]], dtype=np.int64)


@pytest.fixture
def monitored(models, make_pool):
    """Return the state of four OSDs without reports of the manager, and its monitor."""

    def make(*, racks=None, min_in_fraction=0.3):
        model = recovery_model("pacific").given(
            digest_period_ns=0,
            propose_min_wait_ns=SECOND_NS // 20,
            propose_interval_ns=SECOND_NS,
            monitor_tick_ns=5 * SECOND_NS,
            down_out_interval_ns=600 * SECOND_NS,
            min_in_fraction=min_in_fraction,
        )
        plan = FaultPlan(
            up_sets=lambda weights: ACTING,
            image_objects=0,
            model=model,
            osd_racks=None if racks is None else np.array(racks),
        )
        pool = make_pool(models, "rep:2", osds=4, acting=ACTING.tolist())
        state = initial_state(pool, plan)
        monitor = Monitor(state)
        monitor.subscribers.append(DownOut(state, monitor).on_map)
        return state, monitor

    return make


def run(state):
    """Call all handlers up to the last; return the moments at which there were any [s]."""
    moments = []
    while (next_ns := state.clock.next_ns()) is not None:
        moments.append(next_ns / SECOND_NS)
        state.clock.now_ns = next_ns
        state.clock.run_due()
    return moments


def test_changes_of_one_moment_share_a_map(monitored):
    state, monitor = monitored()
    updates = []
    monitor.subscribers.append(updates.append)
    for osd in (0, 3, 0):
        monitor.propose("out", osd)
    # The map follows 0.05 s after the first change; a change that is already in it comes once.
    assert run(state) == [0.05]
    assert [change.subject for change in updates[0].changes] == [0, 3]
    assert state.map.epoch == 2
    assert state.map.out == {0, 3}


def test_a_second_map_follows_a_second_after_the_first(monitored):
    state, monitor = monitored()
    monitor.propose("up_thru", 0)
    run(state)
    monitor.propose("up_thru", 1)
    assert run(state) == [0.05 + 1]


def test_an_osd_that_is_down_is_marked_out_at_a_tick_after_the_interval(monitored):
    state, monitor = monitored()
    monitor.propose("down", 1)
    # Down at 0.05 s, due at 600.05 s, seen at the tick of 605 s, in the map 0.05 s later.
    assert run(state) == [0.05, 605, 605.05]
    assert state.map.out == {1}


def test_an_osd_that_comes_up_in_time_stays_in(monitored):
    state, monitor = monitored()
    monitor.propose("down", 1)
    state.clock.at(300 * SECOND_NS, monitor.propose, "up", 1)
    run(state)
    assert state.map.up == {0, 1, 2, 3}
    assert state.map.out == set()


def test_an_osd_that_was_out_is_in_again_once_it_is_up(monitored):
    state, monitor = monitored()
    monitor.propose("down", 1)
    state.clock.at(700 * SECOND_NS, monitor.propose, "up", 1)
    run(state)
    assert state.map.out == set()


def test_an_osd_stays_in_if_too_few_are_in(monitored):
    # Three of four OSDs are 75 %, two are 50 %. With 75 % in another one may go, with 50 % none.
    state, monitor = monitored(min_in_fraction=0.75)
    for osd in (1, 2, 3):
        monitor.propose("down", osd)
    run(state)
    assert state.map.out == {1, 2}
    (event,) = state.timeline.events
    assert (event.kind, event.time_ns) == ("kept in", 605 * SECOND_NS)


def test_osds_of_a_rack_that_is_down_stay_in_until_one_comes_up(monitored):
    state, monitor = monitored(racks=[0, 0, 1, 1])
    monitor.propose("down", 0)
    monitor.propose("down", 1)
    run(state)
    assert state.map.out == set()
    assert [event.kind for event in state.timeline.events] == ["kept in", "kept in"]
    # When one of the two returns, the other is no longer exempt.
    monitor.propose("up", 0)
    run(state)
    assert state.map.out == {1}
