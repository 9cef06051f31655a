"""Gates, pins, branches, spawns and amounts per service, checked by hand on both engines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from stripesim.models.problems import ProblemsError
from stripesim.sim.engine import compiled, conditions
from stripesim.sim.engine import simpy as simpy_engine
from stripesim.sim.engine.compiled import kernel
from stripesim.sim.engine.conditions import Test
from stripesim.sim.engine.graph import COUNTER_INDEX, Template
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import (
    BATCH,
    FIFO,
    GATE,
    POOL,
    SPAWNED_FROM,
    UNBOUND,
    EngineRun,
    ListedRequests,
    Program,
    RequestChunk,
)
from support.engines import Run, both, completed, latencies
from support.engines import program as program_of
from support.messages import states

# Roles. Each role is bound to the resource with its number unless a test binds it differently.
FREE, ONE, GATES, OTHER_GATE, POOLS = range(5)
RESOURCES = [(FIFO, 100), (FIFO, 1), (GATE, 1), (GATE, 1), (POOL, 1)]


@dataclass
class Arrivals:
    """An open stream: (time, template, its key ranges)."""

    requests: list[tuple[int, int, list[tuple[int, int]]]]
    row: int = 0
    queue_depth: int = 0
    without_keys: bool = False

    def take(self, count: int) -> RequestChunk:
        taken, self.requests = self.requests, []
        templates = np.array([template for _, template, _ in taken], dtype=np.int64)
        keys = np.array([ranges for _, _, ranges in taken], dtype=np.int64).reshape(
            -1, 2, 2
        )
        return RequestChunk(
            templates,
            np.full_like(templates, self.row),
            np.zeros(len(taken), dtype=np.int64),
            np.array([time_ns for time_ns, _, _ in taken], dtype=np.int64),
            None if self.without_keys else keys,
        )


def arrivals(
    *requests: tuple[int, int] | tuple[int, int, list[tuple[int, int]]],
) -> Arrivals:
    nothing = [(0, 0), (0, 0)]
    return Arrivals(
        [
            (one[0], one[1], [*(one[2] if len(one) > 2 else []), *nothing][:2])
            for one in requests
        ]
    )


def program(
    templates: Sequence[Template],
    *streams: Arrivals,
    rows: list[list[int]] | None = None,
    resources: list[tuple[int, int]] | None = None,
    bin_ns: int = 0,
) -> Program:
    return program_of(templates, resources or RESOURCES, streams, rows, bin_ns=bin_ns)


def taken(result: EngineRun, counter: str, stream: int = 0) -> int:
    return int(result.streams[stream].taken[COUNTER_INDEX[counter]])


def pipelined(demand_ns: int, *, after_ns: int = 1, turns: bool = True) -> Template:
    """Enter, work, have its turn, work a little, leave."""
    graph = GraphBuilder(f"pipelined {demand_ns} ns")
    ticket = graph.enter(GATES, after=[0], label="enter")
    step = graph.use(FREE, demand_ns, after=[ticket], label="work")
    if turns:
        step = graph.turn(ticket, after=[step], label="turn")
    step = graph.use(FREE, after_ns, after=[step], label="behind")
    step = graph.leave(ticket, after=[step], label="leave")
    return graph.finish(reply=step)


def probe(test: Test) -> Template:
    """Take 100 ns if a test holds at issue, 1 ns if not."""
    graph = GraphBuilder("probe")
    yes, no = graph.branch(test, after=[0], label="branch")
    held = graph.use(FREE, 100, after=[yes], label="yes", cpu_ns=100, messages=1)
    not_held = graph.use(FREE, 1, after=[no], label="no", cpu_ns=1)
    return graph.finish(reply=graph.merge([held, not_held]))


def pinning(keys: int, hold_ns: int) -> Template:
    graph = GraphBuilder("pinning")
    pin = graph.pin(keys, after=[0], label="pin")
    step = graph.delay(-1, hold_ns, after=[pin], label="hold")
    return graph.finish(reply=graph.unpin(pin, after=[step], label="unpin"))


@both
def test_a_stream_that_returns_no_chunk_is_named(run: Run) -> None:
    stream = arrivals((0, 0))
    stream.take = lambda count: None
    with pytest.raises(ProblemsError, match="stream 0: take: got None, wanted a Req"):
        run(program([pinning(0, 1)], stream))


# -------------------------------------------------------------------------------------- gates


@both
def test_work_in_a_gate_overlaps_without_overtaking(run: Run) -> None:
    templates = [pipelined(100), pipelined(10), pipelined(30)]
    result = run(program(templates, arrivals((0, 0), (5, 1), (6, 2), (200, 1))))
    # The second is ready at 15 and the third at 36. Both get their turn after the first, at 100.
    assert completed(result) == [101, 101, 101, 211]
    assert result.waited_ns[GATES] == (100 - 15) + (100 - 36)
    assert result.held_ns[GATES] == 101 + 96 + 95 + 11


@both
def test_a_ticket_returned_without_a_turn_blocks_no_other_request(run: Run) -> None:
    templates = [pipelined(100), pipelined(10, turns=False), pipelined(10)]
    result = run(program(templates, arrivals((0, 0), (1, 1), (2, 2))))
    # The second leaves at 12, amid the gate's list; the third still waits for the first.
    assert completed(result) == [101, 12, 101]
    result = run(program(templates, arrivals((0, 1), (1, 2))))
    # Leaving the head of the list gives the next its turn.
    assert completed(result) == [11, 12]


@both
def test_simultaneous_turns_continue_in_ticket_order(run: Run) -> None:
    graph = GraphBuilder("turn, then queue")
    ticket = graph.enter(GATES, after=[0], label="enter")
    step = graph.delay(-1, 50, after=[ticket], label="work")
    step = graph.turn(ticket, after=[step], label="turn")
    step = graph.use(ONE, 10, after=[step], label="one by one")
    slow = graph.finish(reply=graph.leave(ticket, after=[step], label="leave"))
    fast = replace(slow, demands_ns=np.where(slow.demands_ns == 50, 1, slow.demands_ns))
    result = run(program([slow, fast], arrivals((0, 0), (0, 1), (0, 1), (0, 1))))
    assert completed(result) == [60, 70, 80, 90]


@both
def test_a_request_passes_several_gates(run: Run) -> None:
    graph = GraphBuilder("two stages")
    first = graph.enter(GATES, after=[0], label="first")
    second = graph.enter(OTHER_GATE, after=[first], label="second")
    step = graph.delay(-1, 10, after=[second], label="read")
    step = graph.turn(first, after=[step], label="read in order")
    step = graph.leave(first, after=[step], label="leave")
    step = graph.use(ONE, 20, after=[step], label="commit")
    step = graph.turn(second, after=[step], label="commit in order")
    template = graph.finish(reply=graph.leave(second, after=[step], label="leave"))
    result = run(program([template], arrivals((0, 0), (0, 0))))
    assert completed(result) == [30, 50]
    assert result.held_ns[[GATES, OTHER_GATE]].tolist() == [20, 80]


@both
def test_an_unbound_gate_lets_all_pass(run: Run) -> None:
    row = [FREE, ONE, UNBOUND, UNBOUND, POOLS]
    result = run(
        program([pipelined(100), pipelined(10)], arrivals((0, 0), (5, 1)), rows=[row])
    )
    assert completed(result) == [101, 16]


# ----------------------------------------------------------------------------------- branches


@both
def test_a_branch_takes_one_side_and_accounts_only_that(run: Run) -> None:
    templates = [pipelined(50), probe(conditions.idle(GATES))]
    result = run(program(templates, arrivals((0, 0)), arrivals((10, 1), (70, 1))))
    assert latencies(result, 1) == [1, 100]
    assert (taken(result, "cpu_ns", 1), taken(result, "messages", 1)) == (101, 1)
    assert result.streams[1].taken_uses == 2
    # The plan shows the requests of the first stream.
    assert result.streams[0].taken_uses == 0 and not result.streams[0].taken.any()


@both
def test_alone_ignores_only_the_own_ticket(run: Run) -> None:
    graph = GraphBuilder("last one")
    ticket = graph.enter(GATES, after=[0], label="enter")
    step = graph.delay(-1, 10, after=[ticket], label="work")
    yes, no = graph.branch(conditions.alone(ticket), after=[step], label="alone?")
    longer = graph.delay(-1, 100, after=[yes], label="alone")
    step = graph.leave(ticket, after=[graph.merge([longer, no])], label="leave")
    result = run(program([graph.finish(reply=step)], arrivals((0, 0), (5, 0), (8, 0))))
    # The third is also present at 10 and 15, and alone at 18.
    assert latencies(result) == [10, 10, 110]


@both
def test_a_merge_waits_for_the_chosen_side_and_for_unconditional_steps(
    run: Run,
) -> None:
    def template(outside_ns: int) -> Template:
        graph = GraphBuilder("merge")
        outside = graph.delay(-1, outside_ns, after=[0], label="outside")
        yes, no = graph.branch(conditions.idle(GATES), after=[0], label="branch")
        left = [graph.delay(-1, ns, after=[yes], label="yes") for ns in (20, 30)]
        right = graph.delay(-1, 500, after=[no], label="no")
        # It would run only after the steps outside, but the branch decides immediately that it does not.
        right = graph.join([right, graph.delay(-1, 900, after=[outside], label="late")])
        return graph.finish(reply=graph.merge([*left, right, outside]))

    result = run(program([template(7), template(70)], arrivals((0, 0), (0, 1))))
    assert latencies(result) == [30, 70]
    # The late step runs nonetheless: it lies on no side.
    assert result.end_ns == 970


@both
def test_nested_branches_are_skipped_as_a_whole(run: Run) -> None:
    def template(test: Test) -> Template:
        graph = GraphBuilder("nested")
        yes, no = graph.branch(test, after=[0], label="outer")
        inner_yes, inner_no = graph.branch(
            conditions.idle(ONE), after=[yes], label="inner"
        )
        ends = [
            graph.use(FREE, ns, after=[side], label="end", messages=1)
            for side, ns in ((inner_yes, 10), (inner_no, 20))
        ]
        inner = graph.merge(ends)
        return graph.finish(
            reply=graph.merge([inner, graph.use(FREE, 40, after=[no], label="no")])
        )

    always, never = conditions.always(), conditions.pinned(0)
    result = run(
        program([template(always), template(never)], arrivals((0, 0), (0, 1, [(0, 1)])))
    )
    assert latencies(result) == [10, 40]
    assert (taken(result, "messages"), result.streams[0].taken_uses) == (1, 2)


@both
def test_a_test_and_the_steps_behind_it_are_atomic(run: Run) -> None:
    graph = GraphBuilder("test and set")
    yes, no = graph.branch(conditions.idle(GATES), after=[0], label="free?")
    ticket = graph.enter(GATES, after=[yes], label="enter")
    held = graph.leave(
        ticket, after=[graph.delay(-1, 30, after=[ticket], label="hold")], label="leave"
    )
    result = run(
        program(
            [graph.finish(reply=graph.merge([held, no]))],
            arrivals((9, 0), (9, 0), (9, 0)),
        )
    )
    assert latencies(result) == [30, 0, 0]


@both
def test_idle_asks_for_a_free_server(run: Run) -> None:
    graph = GraphBuilder("busy")
    busy = graph.finish(reply=graph.use(ONE, 50, after=[0], label="use"))
    requests = arrivals((0, 0), (10, 1), (49, 1), (50, 1), (60, 1))
    result = run(program([busy, probe(conditions.idle(ONE))], requests))
    # Arrivals come before the end of a service of the same time.
    assert latencies(result)[1:] == [1, 1, 1, 100]
    rows = [[FREE, UNBOUND, GATES, OTHER_GATE, POOLS]]
    result = run(
        program(
            [busy, probe(conditions.idle(ONE))], arrivals((0, 0), (10, 1)), rows=rows
        )
    )
    assert latencies(result)[1] == 100


# --------------------------------------------------------------------------------------- pins


@both
def test_pinned_holds_while_others_have_every_key(run: Run) -> None:
    templates = [pinning(0, 50), probe(conditions.pinned(1))]

    def asked(
        time_ns: int, first: int, stop: int
    ) -> tuple[int, int, list[tuple[int, int]]]:
        return time_ns, 1, [(0, 0), (first, stop)]

    requests = arrivals(
        (0, 0, [(10, 14)]),
        (5, 0, [(13, 16)]),
        asked(6, 10, 16),
        asked(7, 9, 11),
        asked(8, 15, 17),
        asked(9, 7, 7),
        asked(51, 13, 16),
        asked(52, 10, 14),
        asked(56, 13, 14),
    )
    # Until 50 the keys 10 to 15 are pinned, until 55 still 13 to 15; a range without keys always is.
    assert latencies(run(program(templates, requests)))[2:] == [
        100,
        1,
        1,
        100,
        100,
        1,
        1,
    ]


@both
def test_own_pins_do_not_count_as_pinned(run: Run) -> None:
    graph = GraphBuilder("pins and asks")
    pins = [graph.pin(keys, after=[0], label="pin") for keys in (0, 1)]
    yes, no = graph.branch(conditions.pinned(0), after=pins, label="branch")
    step = graph.merge([graph.delay(-1, 100, after=[yes], label="yes"), no])
    for pin in pins:
        step = graph.unpin(pin, after=[step], label="unpin")
    templates = [graph.finish(reply=step), pinning(0, 200)]
    ranges = [(1, 4), (2, 6)]
    result = run(
        program(
            templates, arrivals((0, 0, ranges), (200, 1, [(1, 4)]), (201, 0, ranges))
        )
    )
    assert latencies(result) == [0, 200, 100]


@both
def test_thousands_of_pins_are_kept_apart(run: Run) -> None:
    requests = [(index, 0, [(100 * index, 100 * index + 90)]) for index in range(60)]
    asked = [
        (60 + index, 1, [(0, 0), (100 * index, 100 * index + 90)])
        for index in range(20)
    ]
    missed = [
        (80 + index, 1, [(0, 0), (100 * index, 100 * index + 91)])
        for index in range(20)
    ]
    templates = [pinning(0, 1000), probe(conditions.pinned(1))]
    result = run(program(templates, arrivals(*requests, *asked, *missed)))
    assert latencies(result)[60:] == [100] * 20 + [1] * 20


# ------------------------------------------------------------------------------------- spawns


def spawning(spawned: Template, test: Test | None = None) -> Template:
    graph = GraphBuilder("spawning")
    step = graph.use(ONE, 10, after=[0], label="work")
    step = graph.spawn(spawned, after=[step], label="spawn", test=test)
    return graph.finish(reply=step)


def background(demand_ns: int) -> Template:
    graph = GraphBuilder("background")
    return graph.finish(
        reply=graph.use(ONE, demand_ns, after=[0], label="apart", device_write_bytes=7)
    )


@both
def test_a_spawned_graph_runs_apart_from_the_request_that_spawned_it(run: Run) -> None:
    apart = background(100)
    result = run(program([spawning(apart), apart], arrivals((0, 0), (5, 0), (300, 0))))
    # The work of the second waits from 5 and is served from 10 to 20, followed by both spawned graphs.
    assert completed(result) == [10, 20, 310]
    assert result.spawned[0].issued_ns.tolist() == [10, 20, 310]
    assert result.spawned[0].completed_ns.tolist() == [120, 220, 410]
    assert result.spawned[0].templates.tolist() == [1, 1, 1]
    assert result.spawned[0].bindings.tolist() == [0, 0, 0]
    assert len(result.streams[0].issued_ns) == 3


@both
def test_a_spawn_asks_its_test_and_has_its_requests_keys(run: Run) -> None:
    graph = GraphBuilder("holds its keys")
    pin = graph.pin(0, after=[0], label="pin")
    step = graph.use(FREE, 50, after=[pin], label="apart")
    apart = graph.finish(reply=graph.unpin(pin, after=[step], label="unpin"))
    spawner, prober = (
        spawning(apart, conditions.idle(GATES)),
        probe(conditions.pinned(0)),
    )
    templates = [spawner, apart, prober, pipelined(30)]
    keys = [(4, 6)]
    result = run(
        program(
            templates,
            arrivals(
                (0, 3), (5, 0, keys), (40, 0, keys), (70, 2, keys), (101, 2, keys)
            ),
        )
    )
    # The gate is taken when the first comes to spawn, at 15, and empty at 50.
    assert result.spawned[0].issued_ns.tolist() == [50]
    assert latencies(result)[3:] == [100, 1]


@both
def test_spawned_graphs_spawn_and_each_stream_counts_separately(run: Run) -> None:
    apart = background(1)
    between = spawning(apart)
    templates = [spawning(between), between, apart]
    result = run(program(templates, arrivals((0, 0)), arrivals((100, 1), (200, 2))))
    assert result.spawned[0].templates.tolist() == [1, 2]
    assert result.spawned[0].issued_ns.tolist() == [10, 20]
    assert result.spawned[1].templates.tolist() == [2]
    assert result.spawned[1].completed_ns.tolist() == [111]


@both
def test_spawned_work_follows_client_requests_of_the_same_time(
    run: Run,
) -> None:
    graph = GraphBuilder("apart")
    step = graph.use(FREE, 10, after=[0], label="as long")
    apart = graph.finish(reply=graph.use(ONE, 5, after=[step], label="then one"))
    graph = GraphBuilder("spawns first")
    spawn = graph.spawn(apart, after=[0], label="spawn")
    step = graph.use(FREE, 10, after=[spawn], label="as long")
    spawner = graph.finish(reply=graph.use(ONE, 5, after=[step], label="then one"))
    result = run(program([spawner, apart], arrivals((0, 0))))
    assert completed(result) == [15]
    assert result.spawned[0].completed_ns.tolist() == [20]
    assert SPAWNED_FROM > 1 << 48


# --------------------------------------------------------------------------------- accounting


@both
def test_costs_per_service_are_accounted_once_per_batch(run: Run) -> None:
    graph = GraphBuilder("sync")
    step = graph.use(0, 100, after=[0], label="sync", cpu_ns=3)
    graph.per_service(step, device_write_bytes=4096)
    template = graph.finish(reply=step)
    requests = [(time_ns, 0) for time_ns in (0, 1, 2, 3, 250)]
    result = run(
        program([template], arrivals(*requests), resources=[(BATCH, 1)], bin_ns=100)
    )
    # Three services: the first alone, the next three together, the last alone.
    assert completed(result) == [100, 200, 200, 200, 350]
    assert taken(result, "device_write_bytes") == 3 * 4096
    assert taken(result, "cpu_ns") == 5 * 3
    assert result.streams[0].taken_uses == 5
    bins = result.bins[
        :, [COUNTER_INDEX["device_write_bytes"], COUNTER_INDEX["cpu_ns"]]
    ]
    assert bins.tolist() == [[0, 0], [4096, 3], [4096, 9], [4096, 3]]
    # Separate services are each accounted. Unbound roles are not accounted.
    alone = run(program([template], arrivals(*requests), resources=[(FIFO, 1)]))
    assert taken(alone, "device_write_bytes") == 5 * 4096
    unbound = run(
        program(
            [template], arrivals(*requests), resources=[(FIFO, 1)], rows=[[UNBOUND]]
        )
    )
    assert (taken(unbound, "device_write_bytes"), taken(unbound, "cpu_ns")) == (0, 0)


@both
def test_spawned_requests_are_accounted_separately(run: Run) -> None:
    apart = probe(conditions.always())
    result = run(program([spawning(apart), apart], arrivals((0, 0), (50, 1))))
    assert taken(result, "cpu_ns") == 100
    assert result.spawned[0].taken[COUNTER_INDEX["cpu_ns"]] == 100
    assert result.spawned[0].taken_uses == 1


def test_a_template_knows_if_its_plan_is_complete() -> None:
    assert pipelined(10).planned
    assert spawning(background(1)).planned
    assert not probe(conditions.always()).planned
    assert [
        one.keyed for one in (pipelined(1), pinning(0, 1), spawning(pinning(1, 1)))
    ] == [
        False,
        True,
        True,
    ]


# ----------------------------------------------------------------------------------- refusals


def gate_twice(graph: GraphBuilder) -> int:
    ticket = graph.enter(GATES, after=[0], label="enter")
    first = graph.turn(ticket, after=[ticket], label="once")
    second = graph.turn(ticket, after=[first], label="twice")
    return graph.leave(ticket, after=[second], label="leave")


def leave_beside_turn(graph: GraphBuilder) -> int:
    ticket = graph.enter(GATES, after=[0], label="enter")
    turn = graph.turn(ticket, after=[ticket], label="turn")
    return graph.join([turn, graph.leave(ticket, after=[ticket], label="leave")])


def leave_on_one_side(graph: GraphBuilder) -> int:
    ticket = graph.enter(GATES, after=[0], label="enter")
    yes, no = graph.branch(conditions.always(), after=[ticket], label="branch")
    return graph.merge([graph.leave(ticket, after=[yes], label="leave"), no])


def release_on_one_side(graph: GraphBuilder) -> int:
    held = graph.acquire(POOLS, after=[0], label="acquire")
    yes, no = graph.branch(conditions.always(), after=[held], label="branch")
    return graph.merge([graph.release(POOLS, after=[yes], label="release"), no])


def leave_before_enter(graph: GraphBuilder) -> int:
    ticket = graph.enter(GATES, after=[0], label="enter")
    return graph.leave(ticket, after=[0], label="leave")


def both_sides_at_once(graph: GraphBuilder) -> int:
    sides = graph.branch(conditions.always(), after=[0], label="branch")
    return graph.join(sides)


def reply_on_one_side(graph: GraphBuilder) -> int:
    yes, _ = graph.branch(conditions.always(), after=[0], label="branch")
    return graph.use(FREE, 1, after=[yes], label="use")


def inner_branch_left_open(graph: GraphBuilder) -> int:
    yes, no = graph.branch(conditions.always(), after=[0], label="outer")
    inner, _ = graph.branch(conditions.always(), after=[yes], label="inner")
    return graph.merge([inner, no])


REFUSED: list[tuple[Callable[[GraphBuilder], int], str]] = [
    (
        lambda graph: graph.enter(GATES, after=[0], label="in"),
        "^refused: in: ",
    ),
    (
        lambda graph: graph.pin(0, after=[0], label="pin"),
        "^refused: pin: ",
    ),
    (
        lambda graph: graph.pin(2, after=[0], label="pin"),
        r"got key range 2.*0.*1\b",
    ),
    (lambda graph: graph.pin(-1, after=[0], label="pin"), "got key range -1"),
    (
        lambda graph: graph.turn(0, after=[0], label="turn"),
        "turn: got step 0",
    ),
    (
        lambda graph: graph.leave(7, after=[0], label="leave"),
        "leave: got step 7",
    ),
    (
        lambda graph: graph.unpin(0, after=[0], label="unpin"),
        "unpin: got step 0",
    ),
    (
        lambda graph: graph.branch(Test(0), after=[0], label="branch")[0],
        "branch: got no test",
    ),
    (
        lambda graph: graph.branch(conditions.alone(0), after=[0], label="branch")[0],
        "got step 0",
    ),
    (lambda graph: graph.per_service(0, cpu_ns=1) or 0, "got step 0"),
    (gate_twice, "twice: got .*'enter'"),
    (leave_beside_turn, "leave:.*'turn'"),
    (leave_on_one_side, "^refused: enter: "),
    (release_on_one_side, "got acquire × 1 and release × 1, wanted"),
    (leave_before_enter, "leave:.*'enter'"),
    (both_sides_at_once, "join: got predecessors"),
    (reply_on_one_side, "wanted"),
    (inner_branch_left_open, "merge: got sides"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED)
def test_a_graph_that_cannot_be_is_refused(
    build: Callable[[GraphBuilder], int], message: str
) -> None:
    graph = GraphBuilder("refused")
    with pytest.raises(ValueError, match=message):
        graph.finish(reply=build(graph))


def test_releases_on_both_sides_of_a_branch_balance() -> None:
    graph = GraphBuilder("either side")
    ticket = graph.enter(GATES, after=[0], label="enter")
    sides = graph.branch(conditions.alone(ticket), after=[ticket], label="branch")
    ends = [
        graph.leave(
            ticket,
            after=[graph.turn(ticket, after=[side], label="turn")],
            label="leave",
        )
        for side in sides
    ]
    assert graph.finish(reply=graph.merge(ends)).steps == 8


@both
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (None, "got no keys, wanted them for template 'pinning'"),
        ([[3, 2], [0, 0]], "invalid key ranges"),
        ([[-1, 2], [0, 0]], "invalid key ranges"),
        ([[0, 1 << 60], [0, 0]], "invalid key ranges"),
    ],
)
def test_keys_that_cannot_be_are_refused(
    run: Run, keys: list[list[int]] | None, message: str
) -> None:
    stream = arrivals((0, 0, [(one[0], one[1]) for one in keys or []]))
    stream.without_keys = keys is None
    with pytest.raises(ProblemsError, match=message):
        run(program([pinning(0, 1)], stream))


@both
def test_a_spawned_template_has_to_be_in_the_book(run: Run) -> None:
    with pytest.raises(
        ProblemsError,
        match="'spawning' spawns 'background', wanted it in the book",
    ):
        run(program([spawning(background(1))], arrivals((0, 0))))


@both
def test_a_role_must_be_bound_to_the_resource_kind_of_its_word(run: Run) -> None:
    rows = [[FREE, ONE, POOLS, OTHER_GATE, POOLS]]
    with pytest.raises(ProblemsError, match="role 2 is 'r4', a pool"):
        run(program([pipelined(1)], arrivals((0, 0)), rows=rows))


# ----------------------------------------------------------------- a client that waits for its newest request


@dataclass
class Loop:
    """A closed loop over templates in turn."""

    order: list[int]
    queue_depth: int

    def take(self, count: int) -> RequestChunk:
        taken, self.order = self.order[:2], self.order[2:]
        templates = np.array(taken, dtype=np.int64)
        return RequestChunk(
            templates, np.zeros_like(templates), np.zeros_like(templates)
        )


def after(demand_ns: int) -> Template:
    graph = GraphBuilder(f"after {demand_ns} ns")
    return graph.finish(
        reply=graph.use(FREE, demand_ns, after=[graph.issue], label="use")
    )


@both
def test_a_client_that_waits_for_its_newest_request_looks_at_the_others_then(run):
    # Three in flight: 10, 10 and 50 ns. The newest is the third, so all three count as complete at 50.
    # Then 10, 50 and 10: the newest is back at 60 with the first, and two of 10 ns follow, back at 70.
    # The second, of 50 ns, is left and comes back at 100.
    stream = Loop([0, 0, 1, 0, 1, 0, 0, 0], 3)
    asked = program([after(10), after(50)], stream)
    done = run(replace(asked, newest_only=frozenset([0]))).streams[0]
    assert done.issued_ns.tolist() == [0, 0, 0, 50, 50, 50, 60, 60]
    assert done.completed_ns.tolist() == [50, 50, 50, 60, 100, 60, 70, 70]


@both
def test_a_client_notified_of_each_completion_continues_immediately(run):
    done = run(program([after(10), after(50)], Loop([0, 0, 1, 0], 3))).streams[0]
    assert done.issued_ns.tolist() == [0, 0, 0, 10]
    assert done.completed_ns.tolist() == [10, 10, 50, 20]


@both
def test_unseen_completions_are_pending_at_the_bound(run):
    changed = replace(
        program([after(10), after(50)], Loop([0, 1], 2)),
        until_ns=40,
        newest_only=frozenset([0]),
    )
    assert run(changed).streams[0].completed_ns.tolist() == [-1, -1]


@both
def test_a_stream_that_is_not_there_cannot_wait(run):
    changed = replace(program([after(10)], Loop([0], 1)), newest_only=frozenset([1]))
    with pytest.raises(ProblemsError, match=r"newest.*: got stream 1.*1\b"):
        run(changed)


def names_in(package: ModuleType) -> dict[str, Any]:
    """Return the functions that the modules of a package define, by name."""
    names: dict[str, Any] = {}
    for module in iter_modules(package.__path__):
        loaded = import_module(f"{package.__name__}.{module.name}")
        for name, value in vars(loaded).items():
            if getattr(value, "__module__", None) == loaded.__name__:
                names[name] = value
    return names


def test_the_table_of_functions_names_functions_of_both_engines() -> None:
    compiled_names, simpy_names = names_in(compiled), names_in(simpy_engine)
    table = (
        str(kernel.__doc__)
        .split("=\nthis engine ")[1]
        .split("\n\n")[0]
        .splitlines()[2:-1]
    )
    assert len(table) > 10
    for line in table:
        own, *others = re.findall(r"``([\w.]+)``", line)
        assert callable(compiled_names[own]), own
        assert others, line
        for name in others:
            owner, _, method = name.partition(".")
            assert callable(getattr(simpy_names[owner], method)), name


def locked(*pools: int) -> Template:
    """Return a request that takes a unit of each pool in turn, 100 ns apart, and returns them."""
    graph = GraphBuilder(f"lock {pools}")
    step = graph.issue
    for pool in pools:
        step = graph.acquire(pool, after=[step], label="lock")
        step = graph.delay(-1, 100, after=[step], label="hold")
    for pool in reversed(pools):
        step = graph.release(pool, after=[step], label="unlock")
    return graph.finish(reply=step)


@both
@pytest.mark.parametrize("until_ns", [None, 10_000])
@pytest.mark.parametrize(
    ("order", "stuck"),
    [((0, 1), "2 ... 'r0', 'r1'"), ((0, 0), "1 ... 'r0'")],
)
def test_requests_that_wait_for_each_other_are_an_error(
    run: Run, order: tuple[int, int], stuck: str, until_ns: int | None
) -> None:
    # Given two locks, and requests that take them in opposite orders, or one lock that a request takes twice.
    templates = [locked(*order), locked(*order[::-1])]
    count = len(set(order))
    numbers = np.arange(count)
    source = ListedRequests(
        numbers, np.zeros_like(numbers), queue_depth=0, arrivals_ns=50 * numbers
    )
    # When they run, then each waits for a unit that never comes back.
    asked = program_of(templates, [(POOL, 1)] * 2, [source], until_ns=until_ns)
    with pytest.raises(ProblemsError) as refused:
        run(asked)
    assert states(str(refused.value), stuck)
