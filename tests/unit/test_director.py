"""Actions of a director on requests, one at a time and checked by hand on both engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from stripesim.models.problems import ProblemsError
from stripesim.sim.engine import conditions
from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS
from stripesim.sim.engine.graph import COUNTER_INDEX, IntArray, Template
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import (
    BATCH,
    CUT,
    FAILED,
    FIFO,
    GATE,
    PENDING,
    POOL,
    Action,
    End,
    EngineRun,
    Program,
    Report,
    RequestChunk,
    RunView,
    SetGroup,
    Slow,
    Start,
    Stop,
    Wake,
)
from support.engines import Run, both, completed, program, single


@dataclass
class Script:
    """A director that performs scripted actions and records its reports."""

    moments: dict[int, list[Action]] = field(default_factory=dict)
    heard: list[tuple[int, list[tuple[int, int]]]] = field(default_factory=list)
    answer: Callable[[int, Sequence[Report]], list[Action]] | None = None

    def begin(self, view: RunView) -> None:
        self.view = view

    def next_ns(self) -> int | None:
        return min(self.moments, default=None)

    def act(self, now_ns: int, reports: Sequence[Report]) -> Sequence[Action]:
        if reports:
            self.heard.append(
                (now_ns, [(report.stream, report.index) for report in reports])
            )
        actions = self.moments.pop(now_ns, [])
        return actions + (
            self.answer(now_ns, reports) if self.answer and reports else []
        )


@dataclass
class Source:
    """Requests to groups; a request's template, planned again, is that of its group in `now`."""

    queue_depth: int
    groups: list[int]
    templates: list[int]
    rows: list[int] | None = None
    arrivals_ns: list[int] | None = None
    now: dict[int, tuple[int, int]] = field(default_factory=dict)
    reports: bool = False
    feed: bool = False
    timeout_ns: int = 0
    keys: list[tuple[int, int]] | None = None
    at: int = 0
    replanned: list[list[int]] = field(default_factory=list)

    def take(self, count: int) -> RequestChunk:
        part = slice(self.at, len(self.groups))
        self.at = len(self.groups)
        keys = None
        if self.keys is not None:
            keys = np.array(
                [[one, (0, 0)] for one in self.keys[part]], dtype=np.int64
            ).reshape(-1, 2, 2)
        return RequestChunk(
            np.array(self.templates[part], dtype=np.int64),
            np.array((self.rows or [0] * len(self.groups))[part], dtype=np.int64),
            np.array(self.groups[part], dtype=np.int64),
            None
            if self.arrivals_ns is None
            else np.array(self.arrivals_ns[part], dtype=np.int64),
            keys,
        )

    def replan(self, indices: IntArray) -> RequestChunk:
        self.replanned.append(indices.tolist())
        groups = [self.groups[index] for index in indices]
        pairs = [
            self.now.get(
                group,
                (
                    self.templates[index],
                    (self.rows or self.groups)[index] if self.rows else 0,
                ),
            )
            for group, index in zip(groups, indices.tolist(), strict=True)
        ]
        chosen = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return RequestChunk(
            chosen[:, 0], chosen[:, 1], np.array(groups, dtype=np.int64)
        )


def directed(
    templates: Sequence[Template],
    resources: list[tuple[int, int]],
    streams: list[Source],
    director: Script,
    rows: list[list[int]] | None = None,
    **more: Any,
) -> Program:
    groups = 1 + max(
        (group for stream in streams for group in stream.groups), default=0
    )
    return program(
        templates, resources, streams, rows, groups=groups, director=director, **more
    )


def retries(result: EngineRun, stream: int = 0) -> list[int]:
    return result.streams[stream].retries.tolist()


# ------------------------------------------------------------------ resources stop and start


@both
def test_a_stopped_server_loses_its_service_and_accepts_no_work(run: Run) -> None:
    source = Source(0, [0] * 3, [0] * 3, arrivals_ns=[0, 1, 60])
    result = run(
        directed(
            [single(100)],
            [(FIFO, 1)],
            [source],
            Script({50: [Stop((0,))]}),
            until_ns=1000,
        )
    )
    assert completed(result) == [PENDING] * 3
    # One request is lost, and two stay queued.
    assert result.waited_ns.tolist() == [59 + 0]
    assert result.uses == 0
    assert result.end_ns == 60


@both
def test_a_restarted_server_continues_with_its_queue(run: Run) -> None:
    source = Source(0, [0] * 3, [0] * 3, arrivals_ns=[0, 1, 60])
    director = Script({50: [Stop((0,))], 200: [Start((0,))]})
    result = run(directed([single(100)], [(FIFO, 1)], [source], director))
    # The first was in service when the server stopped, and it is lost.
    assert completed(result) == [PENDING, 300, 400]
    assert result.waited_ns.tolist() == [199 + 240]


@both
def test_a_starting_batch_server_serves_all_waiting_work_together(run: Run) -> None:
    source = Source(0, [0] * 4, [0] * 4, arrivals_ns=[0, 1, 60, 70])
    director = Script({50: [Stop((0,))], 200: [Start((0,))]})
    result = run(directed([single(100)], [(BATCH, 1)], [source], director))
    assert completed(result) == [PENDING, 300, 300, 300]


@both
def test_services_that_begin_on_a_slow_server_take_longer(run: Run) -> None:
    source = Source(0, [0] * 5, [0] * 5, arrivals_ns=[0, 10, 20, 1000, 2000])
    director = Script({50: [Slow((0,), 2500)], 1500: [Slow((0,), 1000)]})
    result = run(directed([single(101)], [(FIFO, 1)], [source], director))
    # The first is in service when the server slows down. The others take 252 ns, 101 ns * 2.5 rounded
    # down, until the server is back at its speed.
    assert completed(result) == [101, 353, 605, 1252, 2101]
    assert result.busy_ns.tolist() == [101 + 3 * 252 + 101]
    assert result.waited_ns.tolist() == [(101 - 10) + (353 - 20)]


@both
def test_a_slow_batch_server_slows_the_whole_batch(run: Run) -> None:
    templates = [single(100), single(70)]
    source = Source(0, [0] * 3, [0, 1, 0], arrivals_ns=[0, 1, 2])
    director = Script({0: [Slow((0,), 3000)]})
    result = run(directed(templates, [(BATCH, 1)], [source], director))
    # A batch of one, then one of two, for the larger of their demands.
    assert completed(result) == [300, 600, 600]


@both
def test_a_server_that_restarts_is_still_slow(run: Run) -> None:
    source = Source(0, [0] * 2, [0] * 2, arrivals_ns=[0, 300])
    actions: dict[int, list[Action]] = {
        0: [Slow((0,), 4000)],
        50: [Stop((0,))],
        200: [Start((0,))],
    }
    result = run(directed([single(100)], [(FIFO, 1)], [source], Script(actions)))
    assert completed(result) == [PENDING, 700]


@both
def test_only_servers_can_be_slow(run: Run) -> None:
    director = Script({5: [Slow((1,), 2000)]})
    with pytest.raises(ProblemsError, match="got 'r1' to slow down, a pool"):
        run(
            directed(
                [single(10)], [(FIFO, 1), (POOL, 1)], [Source(1, [0], [0])], director
            )
        )


@both
def test_a_stopped_pool_gives_no_units_and_a_stopped_gate_no_turns(run: Run) -> None:
    pooled, gated = GraphBuilder("pooled"), GraphBuilder("gated")
    step = pooled.acquire(0, after=[0], label="lock")
    pooled.release(
        0, after=[pooled.use(2, 10, after=[step], label="work")], label="unlock"
    )
    ticket = gated.enter(1, after=[0], label="enter")
    step = gated.turn(
        ticket, after=[gated.use(2, 10, after=[ticket], label="work")], label="turn"
    )
    templates = [pooled.finish(reply=len(pooled.words) - 1)]
    templates.append(
        gated.finish(reply=gated.leave(ticket, after=[step], label="leave"))
    )
    source = Source(0, [0] * 4, [0, 0, 1, 1], arrivals_ns=[0, 1, 1, 2])
    director = Script({5: [Stop((0, 1))], 50: [Start((0, 1))]})
    result = run(
        directed(templates, [(POOL, 1), (GATE, 1), (FIFO, 9)], [source], director)
    )
    assert completed(result) == [10, 60, 50, 50]
    assert result.held_ns.tolist()[:2] == [10 + 10, 49 + 48]


# ------------------------------------------------------------------------ requests cut off


@both
def test_an_interrupted_request_is_issued_again_on_the_path_of_now(run: Run) -> None:
    source = Source(1, [0, 0, 0], [0, 0, 0])
    director = Script({30: [SetGroup(0, held=False, interrupt=True)]})
    source.now = {0: (1, 0)}
    result = run(
        directed(
            [single(100), single(10, role=1)],
            [(FIFO, 1), (FIFO, 1)],
            [source],
            director,
        )
    )
    # Planned requests that were not issued are replanned with it.
    assert completed(result) == [40, 50, 60]
    assert result.streams[0].issued_ns.tolist() == [0, 40, 50]
    assert result.streams[0].templates.tolist() == [1, 1, 1]
    assert retries(result) == [1, 0, 0]
    assert source.replanned == [[0, 1, 2]]


@both
def test_a_live_server_stays_occupied_by_interrupted_work(run: Run) -> None:
    source = Source(1, [0, 0], [0, 0])
    director = Script({30: [SetGroup(0, held=False, interrupt=True)]})
    result = run(
        directed([single(100, messages=1)], [(FIFO, 1)], [source], director, bin_ns=50)
    )
    assert completed(result) == [200, 300]
    assert result.busy_ns.tolist() == [300]
    assert (result.uses, result.streams[0].taken_uses) == (2, 2)
    assert result.streams[0].taken[COUNTER_INDEX["messages"]] == 2
    assert result.bins[:, COUNTER_INDEX["messages"]].sum() == 2


@both
def test_a_dead_server_is_noticed_late_and_the_request_goes_elsewhere(run: Run) -> None:
    """Die, hang until detection, wait while the group peers, continue on the remaining OSDs."""
    source = Source(2, [0, 1, 0], [0, 1, 0])
    source.now = {0: (1, 0)}
    director = Script(
        {
            50: [Stop((0,))],
            500: [SetGroup(0, held=True, interrupt=True)],
            700: [SetGroup(0, held=False, interrupt=False)],
        }
    )
    result = run(
        directed(
            [single(100), single(10, role=1)],
            [(FIFO, 1), (FIFO, 1)],
            [source],
            director,
        )
    )
    # The second passed immediately. The third queued at the dead server from 10 ns.
    assert completed(result) == [710, 10, 720]
    assert result.streams[0].issued_ns.tolist() == [0, 0, 10]
    assert retries(result) == [1, 0, 1]
    assert result.waited_ns.tolist() == [490, 10]


@both
def test_requests_to_a_held_group_wait_in_order_and_count_as_outstanding(
    run: Run,
) -> None:
    source = Source(2, [0, 1, 0, 1], [0] * 4)
    director = Script(
        {0: [SetGroup(0, held=True, interrupt=False)], 70: [SetGroup(0, False, False)]}
    )
    result = run(directed([single(10)], [(FIFO, 9)], [source], director))
    # The loop of two: 0 waits, 1 completes, 2 waits, and both continue at 70.
    assert completed(result) == [80, 10, 80, 90]
    assert result.streams[0].issued_ns.tolist() == [0, 0, 10, 80]
    assert retries(result) == [0, 0, 0, 0]


@both
def test_resources_of_a_cut_request_go_to_waiting_ones(run: Run) -> None:
    graph = GraphBuilder("locked")
    lock = graph.acquire(0, after=[0], label="lock")
    step = graph.use(1, 100, after=[lock], label="work")
    graph.release(0, after=[step], label="unlock")
    source = Source(0, [0, 1], [0, 0], arrivals_ns=[0, 10])
    director = Script({30: [SetGroup(0, held=True, interrupt=True)]})
    asked = directed(
        [graph.finish(reply=step)],
        [(POOL, 1), (FIFO, 9)],
        [source],
        director,
        until_ns=500,
    )
    result = run(asked)
    assert completed(result) == [PENDING, 130]
    assert result.held_ns.tolist() == [130, 0]
    assert result.waited_ns.tolist() == [20, 0]


@both
def test_a_cut_ticket_blocks_no_other_request(run: Run) -> None:
    graph = GraphBuilder("pipelined")
    ticket = graph.enter(0, after=[0], label="enter")
    step = graph.use(1, 100, after=[ticket], label="work")
    step = graph.turn(ticket, after=[step], label="turn")
    slow = graph.finish(reply=graph.leave(ticket, after=[step], label="leave"))
    graph = GraphBuilder("fast")
    ticket = graph.enter(0, after=[0], label="enter")
    step = graph.turn(ticket, after=[ticket], label="turn")
    fast = graph.finish(reply=graph.leave(ticket, after=[step], label="leave"))
    source = Source(0, [0, 1], [0, 1], arrivals_ns=[0, 10])
    director = Script({30: [SetGroup(0, held=True, interrupt=True)]})
    result = run(
        directed([slow, fast], [(GATE, 1), (FIFO, 9)], [source], director, until_ns=500)
    )
    assert completed(result) == [PENDING, 30]
    assert result.held_ns.tolist() == [30 + 20, 0]


@both
def test_a_cut_request_releases_its_pins(run: Run) -> None:
    graph = GraphBuilder("pin")
    pin = graph.pin(0, after=[0], label="pin")
    step = graph.use(0, 100, after=[pin], label="work")
    pinning = graph.finish(reply=graph.unpin(pin, after=[step], label="unpin"))
    graph = GraphBuilder("ask")
    yes, no = graph.branch(conditions.pinned(0), after=[0], label="pinned?")
    asking = graph.finish(
        reply=graph.merge([graph.use(0, 7, after=[yes], label="yes"), no])
    )
    source = Source(0, [0, 1, 1], [0, 1, 1], arrivals_ns=[0, 10, 40], keys=[(5, 8)] * 3)
    director = Script({30: [SetGroup(0, held=True, interrupt=True)]})
    result = run(
        directed([pinning, asking], [(FIFO, 9)], [source], director, until_ns=500)
    )
    assert completed(result) == [PENDING, 17, 40]


@both
def test_the_next_member_leads_a_batch_whose_leader_is_cut(run: Run) -> None:
    source = Source(0, [1, 0, 1, 2], [0, 1, 1, 1], arrivals_ns=[0, 1, 2, 3])
    director = Script({150: [SetGroup(0, held=True, interrupt=True)]})
    asked = directed(
        [single(100), single(90)], [(BATCH, 1)], [source], director, until_ns=500
    )
    result = run(asked)
    # Three share the service from 100 to 190; the first of them leaves it.
    assert completed(result) == [100, PENDING, 190, 190]
    assert result.uses == 3


@both
def test_the_reply_is_out_and_the_tail_is_cut_without_a_retry(run: Run) -> None:
    graph = GraphBuilder("tail")
    lock = graph.acquire(0, after=[0], label="lock")
    reply = graph.use(1, 10, after=[lock], label="reply")
    graph.release(
        0, after=[graph.use(1, 100, after=[reply], label="tail")], label="unlock"
    )
    source = Source(0, [0, 1], [0, 0], arrivals_ns=[0, 1])
    director = Script({30: [SetGroup(0, held=False, interrupt=True)]})
    result = run(
        directed(
            [graph.finish(reply=reply)], [(POOL, 1), (FIFO, 9)], [source], director
        )
    )
    assert completed(result) == [10, 40]
    assert retries(result) == [0, 0]


@both
def test_spawned_requests_are_cut_for_good(run: Run) -> None:
    child = single(100, messages=5)
    graph = GraphBuilder("parent")
    parent = graph.finish(reply=graph.spawn(child, after=[0], label="spawn"))
    source = Source(0, [0, 1], [0, 0], arrivals_ns=[0, 0])
    director = Script({30: [SetGroup(1, held=False, interrupt=True)]})
    result = run(directed([parent, child], [(FIFO, 9)], [source], director))
    assert completed(result) == [0, 0]
    assert result.spawned[0].completed_ns.tolist() == [100, CUT]
    assert result.spawned[0].taken[COUNTER_INDEX["messages"]] == 5
    assert result.streams[0].counted and result.spawned[0].counted


@both
def test_a_retry_draws_new_factors_and_a_first_attempt_the_usual_ones(run: Run) -> None:
    graph = GraphBuilder("random")
    template = graph.finish(reply=graph.use(0, 1000, after=[0], label="use", spread=1))
    tables = np.full((2, FACTOR_POINTS), FACTOR_ONE, dtype=np.int64)
    tables[1] = np.arange(FACTOR_POINTS) * (2 * FACTOR_ONE // FACTOR_POINTS)

    def times(director: Script) -> list[int]:
        source = Source(0, [0] * 20, [0] * 20, arrivals_ns=[0] * 20)
        return completed(
            run(
                directed(
                    [template], [(FIFO, 99)], [source], director, factor_tables=tables
                )
            )
        )

    first = times(Script())
    again = times(
        Script({0: [SetGroup(0, True, False)], 50_000: [SetGroup(0, False, False)]})
    )
    assert [time - 50_000 for time in again] == first
    cut = times(Script({1: [SetGroup(0, False, True)]}))
    assert sum(one == other + 1 for one, other in zip(cut, first, strict=True)) < 5


# --------------------------------------------------------------------------------- timeouts


@both
def test_a_timed_out_request_fails_and_the_loop_continues(run: Run) -> None:
    source = Source(1, [0, 1, 0], [0, 1, 0], timeout_ns=200)
    director = Script({50: [Stop((0,))]})
    result = run(
        directed(
            [single(100), single(10, role=1)],
            [(FIFO, 1), (FIFO, 1)],
            [source],
            director,
        )
    )
    assert completed(result) == [FAILED, 210, FAILED]
    assert result.streams[0].issued_ns.tolist() == [0, 200, 210]
    assert result.end_ns == 410


@both
def test_time_runs_on_over_retries_and_while_a_request_waits(run: Run) -> None:
    source = Source(0, [0, 1], [0, 0], arrivals_ns=[0, 0], timeout_ns=120)
    director = Script(
        {
            30: [SetGroup(0, False, True)],
            60: [SetGroup(1, True, True)],
            130: [SetGroup(1, False, False)],
        }
    )
    result = run(directed([single(100)], [(FIFO, 9)], [source], director))
    assert completed(result) == [FAILED, FAILED]
    assert retries(result) == [1, 1]


@both
def test_an_unused_timeout_does_not_advance_the_clock(run: Run) -> None:
    source = Source(1, [0, 0], [0, 0], timeout_ns=5000)
    result = run(directed([single(100)], [(FIFO, 1)], [source], Script()))
    assert completed(result) == [100, 200]
    assert result.end_ns == 200


# --------------------------------------------------------------------------- feeds, reports


class Feed(Source):
    """A feed that returns its given requests."""

    def give(self, groups: list[int], template: int) -> None:
        self.groups += groups
        self.templates += [template] * len(groups)


@both
def test_a_feed_is_asked_again_after_a_wake_and_its_completions_are_reported(
    run: Run,
) -> None:
    feed = Feed(2, [], [], feed=True, reports=True)
    client = Source(1, [0] * 3, [0] * 3)
    director = Script({})

    def first(now_ns: int, reports: Sequence[Report]) -> list[Action]:
        if now_ns < 100:
            feed.give([0], 1)
            return [Wake(1)]
        return []

    director.answer = first
    feed.give([0, 0, 0], 1)
    result = run(
        directed(
            [single(10), single(30, role=1)],
            [(FIFO, 9), (FIFO, 9)],
            [client, feed],
            director,
        )
    )
    # Two at a time, and every report below 100 ns adds one.
    assert director.heard[:3] == [(30, [(1, 0)]), (30, [(1, 1)]), (60, [(1, 2)])]
    assert completed(result, 1) == [30, 30, 60, 60, 90, 90, 120, 120, 150]
    assert completed(result, 0) == [10, 20, 30]


@both
def test_cut_requests_of_a_feed_are_not_reissued(run: Run) -> None:
    feed = Feed(9, [0, 1, 0], [0, 0, 0], feed=True, reports=True)
    director = Script({5: [SetGroup(0, True, True)], 50: [SetGroup(0, False, False)]})
    result = run(directed([single(10)], [(FIFO, 9)], [feed], director))
    assert completed(result) == [CUT, 10, CUT]
    assert director.heard == [(10, [(0, 1)])]
    assert retries(result) == [0, 0, 0]


@both
def test_reports_come_immediately_and_before_later_entries_of_the_same_time(
    run: Run,
) -> None:
    feed = Feed(9, [0, 1], [0, 0], feed=True, reports=True)
    director = Script()
    director.answer = lambda now_ns, reports: [SetGroup(1, False, True)]
    result = run(directed([single(10)], [(FIFO, 9)], [feed], director))
    assert completed(result) == [10, CUT]


@both
@pytest.mark.parametrize(("until_ns", "end_ns"), [(None, 20), (500, 20), (15, 15)])
def test_a_director_ends_a_run_before_its_bound(
    run: Run, until_ns: int | None, end_ns: int
) -> None:
    # Requests of 10 ns, one after another. The one that completes at the moment of the end still counts.
    director = Script({20: [End()]})
    source = Source(1, [0] * 9, [0] * 9)
    result = run(
        directed([single(10)], [(FIFO, 1)], [source], director, until_ns=until_ns)
    )
    assert result.end_ns == end_ns
    assert completed(result)[: end_ns // 10] == [10, 20][: end_ns // 10]
    assert PENDING in completed(result)


# ------------------------------------------------------------------------ refused input


@both
@pytest.mark.parametrize(
    ("action", "message"),
    [
        (SetGroup(4, True, False), r"got group 4.*0.*0\b"),
        (Stop((0, 7)), r"got resource 7.*0.*0\b"),
        (Start((-1,)), "got resource -1"),
        (Wake(3), "got stream 3"),
        (Wake(0), "wanted"),
        (Slow((0, 7), 2000), r"got resource 7.*0.*0\b"),
        (Slow((0,), 999), "got slowdown 999, wanted 1000 to 1000000"),
        (Slow((0,), 1_000_001), "got slowdown 1000001"),
    ],
)
def test_an_action_that_cannot_be_is_refused(
    run: Run, action: Action, message: str
) -> None:
    with pytest.raises(ProblemsError, match=message):
        run(
            directed(
                [single(10)], [(FIFO, 9)], [Source(1, [0], [0])], Script({5: [action]})
            )
        )


@both
def test_a_moment_in_the_past_is_refused(run: Run) -> None:
    director = Script({5: [], 1: []})
    director.next_ns = lambda: 5 if 5 in director.moments else 1  # type: ignore[method-assign]
    with pytest.raises(ProblemsError, match=r"got 1 ns.*5\b"):
        run(directed([single(10)], [(FIFO, 9)], [Source(1, [0], [0])], director))


@both
def test_an_impossible_replan_is_refused(run: Run) -> None:
    source = Source(1, [0, 0], [0, 0])
    source.now = {0: (3, 0)}
    with pytest.raises(
        ProblemsError, match=r"planned again: got template 3 to 3.*0.*0\b"
    ):
        run(
            directed(
                [single(10)],
                [(FIFO, 9)],
                [source],
                Script({5: [SetGroup(0, False, True)]}),
            )
        )


@both
def test_streams_that_cannot_replan_are_refused_with_a_director(
    run: Run,
) -> None:
    class Plain:
        queue_depth = 1

    asked = directed(
        [single(10)], [(FIFO, 9)], [Source(0, [], [], feed=True)], Script()
    )
    with pytest.raises(ProblemsError, match="wanted"):
        run(asked)
    streams: Any = [Plain()]
    with pytest.raises(ProblemsError, match="without replan"):
        run(replace(asked, streams=streams))
