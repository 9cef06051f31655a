"""Joins of the first few steps, and tests of completion, checked by hand on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from stripesim.sim.ceph.demands import _ends_without_waits
from stripesim.sim.engine.compiled import state as compiled_state
from stripesim.sim.engine.conditions import completed as has_completed
from stripesim.sim.engine.conditions import idle
from stripesim.sim.engine.graph import (
    COUNTER_INDEX,
    NO_ROLE,
    Template,
    chained,
)
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import FIFO, POOL, ListedRequests
from stripesim.sim.observe.critical_path import critical_steps, predecessors_of
from support.engines import Run, both, completed, latencies, program, single

#: Every request takes part in each delay.
ALWAYS = np.ones(64)

SERVERS = [(FIFO, 1)] * 3


def loop(count: int, queue_depth: int = 1, template: int = 0) -> ListedRequests:
    templates = np.full(count, template, dtype=np.int64)
    return ListedRequests(templates, np.zeros_like(templates), queue_depth=queue_depth)


def quorum(first: int, *demands_ns: int) -> Template:
    """Return one use of each role at a time, of which the first few make the reply."""
    graph = GraphBuilder(f"first {first}")
    uses = [
        graph.use(
            role, demand_ns, after=[graph.issue], label="use", device_read_bytes=1
        )
        for role, demand_ns in enumerate(demands_ns)
    ]
    return graph.finish(reply=graph.join(uses, first=first))


def hedged(delay_ns: int, *demands_ns: int) -> Template:
    """Return a use of role 0, and one of role 1 if the first has not completed after a time."""
    graph = GraphBuilder("hedged")
    one = graph.use(0, demands_ns[0], after=[graph.issue], label="read")
    late = graph.delay(NO_ROLE, delay_ns, after=[graph.issue], label="wait")
    yes, no = graph.branch(has_completed(one), after=[late], label="has replied")
    other = graph.use(1, demands_ns[1], after=[no], label="second read")
    either = graph.merge([yes, other])
    return graph.finish(reply=graph.join([one, either], first=1))


@both
@pytest.mark.parametrize(("first", "end_ns"), [(1, 100), (2, 200), (3, 300)])
def test_a_join_completes_with_the_first_of_its_steps(
    run: Run, first: int, end_ns: int
) -> None:
    found = run(program([quorum(first, 300, 100, 200)], SERVERS, [loop(1)]))
    assert completed(found) == [end_ns]
    # The late ones run to their end, and count.
    assert found.end_ns == 300
    assert found.busy_ns.tolist() == [300, 100, 200]
    assert found.uses == 3


@both
def test_late_steps_delay_the_requests_behind_them(run: Run) -> None:
    found = run(program([quorum(2, 100, 200, 350)], SERVERS, [loop(3)]))
    # Each request is issued with the second answer to the one before. Servers 0 and 1 are idle then, server 2
    # is not, and its answers (350, 700, 1,050 ns) are always the last.
    assert completed(found) == [200, 400, 600]
    assert found.end_ns == 3 * 350
    # Waits at server 2: from 200 to 350, and from 400 to 700.
    assert found.waited_ns.tolist() == [0, 0, 150 + 300]


@both
def test_a_late_step_does_not_reach_the_request_that_comes_after_its_own(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_state, "_SLOTS", 1)
    # The slow server answers every 1,000 ns and is 98 requests behind at the end. If its answers counted for
    # requests that came later, these would complete before their own 10 ns.
    found = run(program([quorum(1, 10, 1_000)], SERVERS, [loop(100)]))
    assert latencies(found) == [10] * 100
    assert found.end_ns == 100 * 1_000


@both
def test_all_steps_account_the_late_ones_too(run: Run) -> None:
    template = quorum(1, 10, 20, 30)
    found = run(program([template], SERVERS, [loop(4)], bin_ns=1_000))
    assert found.bins[0, COUNTER_INDEX["device_read_bytes"]] == 4 * 3
    bound = np.ones(3, dtype=bool)
    assert template.totals(bound)[COUNTER_INDEX["device_read_bytes"]] == 3


@both
def test_one_of_the_late_steps_may_wait_for_a_unit_and_returns_it(run: Run) -> None:
    graph = GraphBuilder("with a lock")
    fast = graph.use(0, 10, after=[graph.issue], label="fast")
    taken = graph.acquire(1, after=[graph.issue], label="lock")
    slow = graph.use(2, 100, after=[taken], label="slow")
    back = graph.release(1, after=[slow], label="unlock")
    template = graph.finish(reply=graph.join([fast, back], first=1))
    pairs = [(FIFO, 1), (POOL, 1), (FIFO, 1)]
    found = run(program([template], pairs, [loop(3)]))
    assert completed(found) == [10, 20, 30]
    # The unit goes from request to request: 0 to 100, 100 to 200, 200 to 300.
    assert found.held_ns.tolist() == [0, 300, 0]


@both
def test_a_hedged_read_asks_the_second_only_if_the_first_is_late(run: Run) -> None:
    fast = run(program([hedged(50, 40, 10)], SERVERS, [loop(1)]))
    assert completed(fast) == [40]
    assert fast.busy_ns.tolist() == [40, 0, 0]
    slow = run(program([hedged(50, 500, 10)], SERVERS, [loop(1)]))
    assert completed(slow) == [50 + 10]
    assert slow.busy_ns.tolist() == [500, 10, 0]


@both
def test_a_first_answer_at_the_moment_of_the_test_counts_by_the_order_of_keys(
    run: Run,
) -> None:
    # Both the read (step 1) and the delay (step 2) end at 50 ns. The read comes first, so it has completed.
    found = run(program([hedged(50, 50, 10)], SERVERS, [loop(1)]))
    assert found.busy_ns.tolist() == [50, 0, 0]


@both
def test_a_join_of_the_first_is_skipped_with_its_branch(run: Run) -> None:
    graph = GraphBuilder("on one side")
    yes, no = graph.branch(idle(0), after=[graph.issue], label="idle")
    uses = [graph.use(role, 10, after=[yes], label="use") for role in (1, 2)]
    first = graph.join(uses, first=1)
    other = graph.delay(NO_ROLE, 70, after=[no], label="otherwise")
    template = graph.finish(reply=graph.merge([first, other]))
    blocker = single(100)
    streams = [loop(1), loop(1, template=1)]
    found = run(program([blocker, template], SERVERS, streams))
    # The first stream occupies server 0, so the request takes the other side.
    assert completed(found, 1) == [70]
    alone = run(program([template], SERVERS, [loop(1)]))
    assert completed(alone) == [10]


@both
def test_a_path_within_another_keeps_its_quorum(run: Run) -> None:
    inner = quorum(1, 30, 10)
    graph = GraphBuilder("outer")
    before = graph.use(2, 5, after=[graph.issue], label="before")
    reply = graph.embed(inner, after=[before], roles=[0, 1], label="inner")
    outer = graph.finish(reply=reply)
    twice = chained(inner, inner, name="twice")
    found = run(program([outer, twice], SERVERS, [loop(1), loop(1, template=1)]))
    # Stream 1 takes server 1 from 0 to 10. The inner path waits for it from 5, and has it until 20.
    # The second half of stream 1, from 10, waits for it until 20 and replies at 30. Server 0 is slower.
    assert completed(found, 0) == [20]
    assert completed(found, 1) == [30]


@both
def test_an_embedded_hedge_tests_its_own_step(run: Run) -> None:
    graph = GraphBuilder("outer")
    before = graph.use(2, 5, after=[graph.issue], label="before")
    reply = graph.embed(hedged(50, 500, 10), after=[before], roles=[0, 1], label="in")
    found = run(program([graph.finish(reply=reply)], SERVERS, [loop(1)]))
    assert completed(found) == [5 + 50 + 10]


def test_the_critical_path_leads_through_the_step_that_completed_the_quorum() -> None:
    template = quorum(2, 300, 100, 200)
    before = predecessors_of(template)
    # Steps 1 to 3 are the uses, step 4 the join.
    assert critical_steps(before, [0, 300, 100, 200, 200], 4) == [0, 3, 4]


def test_without_queues_a_join_starts_with_the_last_step_that_it_waits_for() -> None:
    ends_ns = _ends_without_waits(
        quorum(2, 300, 100, 200), ALWAYS, stripes_in_flight=False
    )
    assert ends_ns == [0, 300, 100, 200, 200]
    early = _ends_without_waits(hedged(50, 40, 10), ALWAYS, stripes_in_flight=False)
    late = _ends_without_waits(hedged(50, 500, 10), ALWAYS, stripes_in_flight=False)
    # The reply is the last step, the second read the fourth.
    assert (early[4], early[-1]) == (None, 40)
    assert (late[4], late[-1]) == (60, 60)


@pytest.mark.parametrize("first", [0, 3, -1, 1.5])
def test_refuses_a_quorum_that_cannot_be_met(
    first: float,
) -> None:
    graph = GraphBuilder("a path")
    uses = [graph.use(role, 1, after=[0], label="use") for role in range(2)]
    with pytest.raises(ValueError, match=rf"^a path: join: got first = {first}, wan"):
        graph.join(uses, first=first)  # type: ignore[arg-type]


def test_refuses_a_quorum_of_steps_that_may_not_run() -> None:
    graph = GraphBuilder("a path")
    yes, _ = graph.branch(idle(0), after=[0], label="idle")
    uses = [graph.use(0, 1, after=[before], label="use") for before in (yes, 0)]
    join = graph.join(uses, first=1)
    with pytest.raises(ValueError, match=r"^a path: join: got predecessors that run"):
        graph.finish(reply=join)


def test_refuses_a_release_that_may_come_before_its_acquire() -> None:
    graph = GraphBuilder("a path")
    taken = graph.acquire(1, after=[0], label="lock")
    other = graph.use(0, 1, after=[0], label="use")
    first = graph.join([taken, other], first=1)
    back = graph.release(1, after=[first], label="unlock")
    with pytest.raises(ValueError, match=r"^a path: unlock: wanted it to run only aft"):
        graph.finish(reply=back)


def test_accepts_a_release_after_enough_steps_that_follow_the_acquire() -> None:
    graph = GraphBuilder("a path")
    taken = graph.acquire(1, after=[0], label="lock")
    uses = [
        graph.use(0, 1, after=[before], label="use") for before in (taken, taken, 0)
    ]
    # Two of three steps include at least one that follows the acquire.
    first = graph.join(uses, first=2)
    assert (
        graph.finish(reply=graph.release(1, after=[first], label="unlock")).steps == 7
    )


def test_refuses_to_test_a_step_that_may_not_run_or_completes_at_once() -> None:
    graph = GraphBuilder("a path")
    yes, _ = graph.branch(idle(0), after=[0], label="idle")
    sometimes = graph.use(0, 1, after=[yes], label="sometimes")
    graph.branch(has_completed(sometimes), after=[0], label="replied")
    with pytest.raises(
        ValueError, match=r"^a path: replied: got a test of 'sometimes'"
    ):
        graph.finish(reply=0)
    taken = graph.acquire(1, after=[0], label="lock")
    with pytest.raises(
        ValueError, match=r"locked: got step 4, wanted a use, delay or "
    ):
        graph.branch(has_completed(taken), after=[0], label="locked")
