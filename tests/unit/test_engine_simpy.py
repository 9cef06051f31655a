"""The words and rules of sim/engine/ENGINE.md, one at a time and checked by hand, on both engines.

Tests of SimPy processes, which only the SimPy engine has, are at the end.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from stripesim.models.problems import ProblemsError
from stripesim.sim.engine.distributions import exponential, service_times
from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS
from stripesim.sim.engine.graph import COUNTER_INDEX, Template
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import (
    BATCH,
    FIFO,
    PENDING,
    POOL,
    UNBOUND,
    EngineRun,
    RequestChunk,
    Resources,
)
from stripesim.sim.engine.simpy.engine import SimpyEngine
from support.engines import Run, both, completed, program, single


@dataclass
class Source:
    """Requests given as templates, bindings and groups."""

    queue_depth: int
    templates: list[int]
    bindings: list[int]
    groups: list[int]
    arrivals_ns: list[int] | None = None
    chunk: int = 4096
    at: int = field(default=0)

    def take(self, count: int) -> RequestChunk:
        part = slice(self.at, self.at + min(count, self.chunk))
        self.at = part.stop
        return RequestChunk(
            np.array(self.templates[part], dtype=np.int64),
            np.array(self.bindings[part], dtype=np.int64),
            np.array(self.groups[part], dtype=np.int64),
            None
            if self.arrivals_ns is None
            else np.array(self.arrivals_ns[part], dtype=np.int64),
        )


def closed(
    queue_depth: int, templates: list[int], bindings: list[int] | None = None
) -> Source:
    rows = bindings or [0] * len(templates)
    return Source(queue_depth, templates, rows, [0] * len(templates))


def opened(arrivals_ns: list[int], templates: list[int]) -> Source:
    source = closed(0, templates)
    source.arrivals_ns = arrivals_ns
    return source


@both
def test_a_program_without_streams_ends_immediately(run: Run) -> None:
    result = run(program([single(1)], [(FIFO, 1)], []))
    assert (result.end_ns, len(result.streams)) == (0, 0)


@both
def test_a_station_serves_in_the_order_of_arrival(run: Run) -> None:
    asked = program(
        [single(100), single(10)], [(FIFO, 1)], [opened([0, 5, 6], [0, 1, 1])]
    )
    result = run(asked)
    assert completed(result) == [100, 110, 120]
    assert result.waited_ns.tolist() == [95 + 104]
    assert (result.busy_ns[0], result.uses, result.end_ns) == (120, 3, 120)


@both
def test_concurrent_services_equal_the_number_of_servers(run: Run) -> None:
    result = run(program([single(100)], [(FIFO, 2)], [closed(5, [0] * 5)]))
    assert completed(result) == [100, 100, 200, 200, 300]


@both
def test_a_batch_takes_all_waiting_work_and_costs_its_largest_item(run: Run) -> None:
    templates = [single(100), single(30), single(70), single(5)]
    result = run(
        program(templates, [(BATCH, 1)], [opened([0, 1, 2, 150], [0, 1, 2, 3])])
    )
    # The first goes alone; the next two wait for it and share 70 ns; the last waits for those.
    assert completed(result) == [100, 170, 170, 175]
    assert result.busy_ns.tolist() == [100 + 70 + 5]
    assert result.waited_ns.tolist() == [99 + 98 + 20]
    assert result.uses == 4


@both
def test_a_second_batch_server_takes_later_work(run: Run) -> None:
    result = run(
        program([single(100)], [(BATCH, 2)], [opened([0, 10, 20, 30], [0] * 4)])
    )
    assert completed(result) == [100, 110, 200, 200]


@both
def test_a_lock_is_held_by_one_at_a_time_and_passes_in_order(run: Run) -> None:
    graph = GraphBuilder("locked")
    step = graph.acquire(0, after=[0], label="lock")
    step = graph.use(1, 50, after=[step], label="work")
    graph.release(0, after=[step], label="unlock")
    result = run(
        program(
            [graph.finish(reply=step)], [(POOL, 1), (FIFO, 100)], [closed(4, [0] * 4)]
        )
    )
    assert completed(result) == [50, 100, 150, 200]
    assert result.held_ns.tolist() == [200, 0]
    assert result.waited_ns.tolist() == [50 + 100 + 150, 0]


@both
def test_a_pool_of_two_lets_two_in(run: Run) -> None:
    graph = GraphBuilder("pooled")
    step = graph.acquire(0, after=[0], label="enter")
    step = graph.use(1, 50, after=[step], label="work")
    step = graph.release(0, after=[step], label="leave")
    result = run(
        program(
            [graph.finish(reply=step)], [(POOL, 2), (FIFO, 100)], [closed(4, [0] * 4)]
        )
    )
    assert completed(result) == [50, 50, 100, 100]
    assert result.held_ns.tolist() == [200, 0]


@both
def test_a_delay_has_no_queue_and_is_skipped_where_its_role_is_unbound(
    run: Run,
) -> None:
    graph = GraphBuilder("delays")
    step = graph.delay(0, 40, after=[0], label="wire")
    step = graph.delay(-1, 2, after=[step], label="sleep")
    template = graph.finish(reply=step)
    result = run(
        program(
            [template], [(FIFO, 1)], [closed(3, [0] * 3, [0, 0, 1])], [[0], [UNBOUND]]
        )
    )
    assert completed(result) == [42, 42, 2]
    assert result.uses == 0
    assert not result.busy_ns.any()


@both
def test_an_unbound_use_takes_no_time_and_accounts_nothing(run: Run) -> None:
    asked = program(
        [single(100, messages=1)],
        [(FIFO, 1)],
        [closed(1, [0, 0], [1, 0])],
        [[0], [UNBOUND]],
        bin_ns=1000,
    )
    result = run(asked)
    assert completed(result) == [0, 100]
    assert result.uses == 1
    assert result.bins[:, COUNTER_INDEX["messages"]].tolist() == [1]


@both
def test_a_join_waits_for_its_last_branch_and_the_reply_need_not(run: Run) -> None:
    graph = GraphBuilder("fork")
    fast = graph.use(0, 10, after=[0], label="fast")
    slow = graph.use(1, 90, after=[0], label="slow")
    graph.use(0, 5, after=[fast, slow], label="after")
    result = run(
        program([graph.finish(reply=fast)], [(FIFO, 1), (FIFO, 1)], [closed(1, [0, 0])])
    )
    assert completed(result) == [10, 20]
    # The slow branch of the second request queues behind that of the first: 90, 180, then its last step.
    assert result.end_ns == 185


@both
def test_a_freed_server_is_passed_on_before_its_step_continues(run: Run) -> None:
    graph = GraphBuilder("twice")
    first = graph.use(0, 10, after=[0], label="first")
    second = graph.use(0, 10, after=[first], label="second")
    result = run(
        program([graph.finish(reply=second)], [(FIFO, 1)], [closed(2, [0, 0])])
    )
    # 0 first, 1 first, 0 second, 1 second; a server kept by its holder would give 20 and 40.
    assert completed(result) == [30, 40]


@both
def test_at_one_time_the_smaller_request_comes_first(run: Run) -> None:
    graph = GraphBuilder("apart, then together")
    apart = graph.use(0, 10, after=[0], label="apart")
    together = graph.use(1, 10, after=[apart], label="together")
    asked = program(
        [graph.finish(reply=together)],
        [(FIFO, 9), (FIFO, 1)],
        [closed(2, [0] * 2), closed(1, [0])],
    )
    result = run(asked)
    # Request numbers interleave the streams: 0 and 2 in the first stream, 1 in the second.
    assert completed(result, 0) == [20, 40]
    assert completed(result, 1) == [30]


@both
@pytest.mark.parametrize(
    ("until_ns", "expected", "end_ns"),
    [(99, [PENDING], 99), (100, [100, PENDING], 100), (1000, [100, 200, 300], 300)],
)
def test_the_time_bound_is_inclusive(
    run: Run, until_ns: int, expected: list[int], end_ns: int
) -> None:
    result = run(
        program([single(100)], [(FIFO, 1)], [closed(1, [0] * 3)], until_ns=until_ns)
    )
    assert completed(result) == expected
    assert result.end_ns == end_ns
    assert result.streams[0].issued_ns.tolist() == [0, 100, 200][: len(expected)]


@both
def test_waits_and_holds_are_counted_up_to_the_bound(run: Run) -> None:
    graph = GraphBuilder("locked")
    step = graph.acquire(0, after=[0], label="lock")
    step = graph.use(1, 1000, after=[step], label="work")
    graph.release(0, after=[step], label="unlock")
    asked = program(
        [graph.finish(reply=step)],
        [(POOL, 1), (FIFO, 1)],
        [closed(3, [0] * 3)],
        until_ns=70,
    )
    result = run(asked)
    assert result.held_ns.tolist() == [70, 0]
    assert result.waited_ns.tolist() == [140, 0]


@both
def test_bins_hold_the_steps_completed_in_them(run: Run) -> None:
    asked = program(
        [single(40, messages=2)], [(FIFO, 1)], [closed(1, [0] * 5)], bin_ns=100
    )
    # Completions at 40, 80, 120, 160, 200.
    assert run(asked).bins[:, COUNTER_INDEX["messages"]].tolist() == [4, 4, 2]


@both
def test_two_streams_share_a_station(run: Run) -> None:
    background = closed(1, [1, 1])
    result = run(
        program(
            [single(10), single(30)],
            [(FIFO, 1)],
            [opened([0, 5, 50], [0] * 3), background],
        )
    )
    # At time 0 the closed loop is there before the first arrival.
    assert completed(result, 1) == [30, 80]
    assert completed(result, 0) == [40, 50, 90]


@both
def test_chunks_make_no_difference(run: Run) -> None:
    runs = []
    for chunk in (1, 7, 4096):
        source = closed(3, [0, 1, 0] * 20)
        source.chunk = chunk
        runs.append(
            completed(run(program([single(10), single(25)], [(FIFO, 2)], [source])))
        )
    assert runs[0] == runs[1] == runs[2]


@both
def test_many_more_requests_than_a_chunk_can_be_in_flight(run: Run) -> None:
    count = 10_000
    asked = program([single(3)], [(FIFO, 1)], [opened([0] * count, [0] * count)])
    assert completed(run(asked)) == list(range(3, 3 * count + 1, 3))


@both
@pytest.mark.parametrize(
    ("source", "message"),
    [
        (closed(1, [1]), r"got template 1 to 1.*0.*0\b"),
        (closed(1, [0], [3]), r"got binding 3 to 3.*0.*0\b"),
        (closed(1, [0], [-1]), r"got binding -1 to -1.*0.*0\b"),
        (Source(1, [0], [0], [2]), "got group 2 to 2"),
        (closed(0, [0]), "got no arrival times"),
        (opened([5, 4], [0, 0]), "decreasing arrival times"),
        (opened([-5], [0]), "decreasing arrival times"),
        (Source(-1, [0], [0], [0]), "got queue_depth -1, wanted a whole number"),
        (Source(1.5, [0], [0], [0]), "got queue_depth 1.5, wanted a whole number"),  # type: ignore[arg-type]
    ],
)
def test_a_chunk_that_cannot_be_is_refused(
    run: Run, source: Source, message: str
) -> None:
    with pytest.raises(ProblemsError, match=message):
        run(program([single(1)], [(FIFO, 1)], [replace(source)]))


class Unsuited:
    """A stream of one request, whose columns are given."""

    queue_depth = 1

    def __init__(self, **columns: Any) -> None:
        zeros = np.zeros(1, dtype=np.int64)
        self.columns = {"templates": zeros, "bindings": zeros, "groups": zeros}
        self.columns |= columns

    def take(self, count: int) -> RequestChunk:
        return RequestChunk(**self.columns)


@both
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"templates": np.zeros(1)}, "got templates of type float64, wanted an array"),
        ({"bindings": [0]}, "got bindings of type list, wanted an array of integers"),
        ({"arrivals_ns": np.zeros(1)}, "got arrivals_ns of type float64"),
    ],
)
def test_columns_of_other_types_are_refused(
    run: Run, columns: dict[str, Any], message: str
) -> None:
    machine = program([single(1)], [(FIFO, 1)], [closed(1, [0])])
    with pytest.raises(ProblemsError, match=message):
        run(replace(machine, streams=[Unsuited(**columns)]))


@both
@pytest.mark.parametrize("seed", [1.5, float("nan"), "1", None])
def test_a_seed_is_a_whole_number(run: Run, seed: Any) -> None:
    machine = program([single(1)], [(FIFO, 1)], [closed(1, [0])])
    with pytest.raises(ProblemsError, match=r"seed: got .* wanted a whole number"):
        run(replace(machine, seed=seed))


@both
@pytest.mark.parametrize("role", [2, 40, 5000])
def test_a_role_needs_a_column_in_its_binding_row(run: Run, role: int) -> None:
    # Two resources make rows of two columns.
    machine = program([single(9, role)], [(FIFO, 1)] * 2, [closed(1, [0])])
    message = rf"'use {role} for 9 ns': got role {role}, wanted below 2\b.*columns"
    with pytest.raises(ProblemsError, match=message):
        run(machine)


@both
def test_the_roles_of_a_spawned_template_need_columns(run: Run) -> None:
    behind = single(9, 7)
    graph = GraphBuilder("spawning")
    step = graph.use(0, 5, after=[graph.issue], label="use")
    graph.spawn(behind, after=[step], label="spawn")
    machine = program([graph.finish(reply=step), behind], [(FIFO, 1)], [closed(1, [0])])
    with pytest.raises(ProblemsError, match=r"'use 7 for 9 ns': got role 7.*below 1\b"):
        run(machine)


@both
@pytest.mark.parametrize(
    ("bindings", "message"),
    [
        ([0, 1], r"shape \(2,\)"),
        ([[0.0, 1.0]], "float64"),
        ([[0, 99]], "resources 0 to 99, wanted 0 to 1"),
        ([[-7, 1]], "resources -7 to 1"),
    ],
)
def test_bindings_that_cannot_be_are_refused(
    run: Run, bindings: Any, message: str
) -> None:
    machine = program([single(1)], [(FIFO, 1)] * 2, [closed(1, [0])])
    book = replace(machine.book, bindings=np.array(bindings))
    with pytest.raises(ProblemsError, match=message):
        run(replace(machine, book=book))


@pytest.mark.parametrize("role", [-1, -3])
def test_a_use_names_a_role(role: int) -> None:
    graph = GraphBuilder("read")
    with pytest.raises(ValueError, match=f"read: use: got role {role}, wanted 0"):
        graph.use(role, 1, after=[graph.issue], label="use")


@both
@pytest.mark.parametrize("word", ["use", "acquire and release"])
def test_a_word_needs_its_discipline_without_gates_or_branches(
    run: Run, word: str
) -> None:
    # A plain system: pools are acquired and released, other resources are used.
    if word == "use":
        machine = program([single(1)], [(POOL, 1)], [closed(1, [0])])
        message = "role 0 is 'r0', a pool, wanted fifo or batch"
    else:
        graph = GraphBuilder("held")
        step = graph.acquire(0, after=[graph.issue], label="acquire")
        held = graph.finish(reply=graph.release(0, after=[step], label="release"))
        machine = program([held], [(FIFO, 1)], [closed(1, [0])])
        message = "role 0 is 'r0', a fifo, wanted pool"
    with pytest.raises(ProblemsError, match=message):
        run(machine)


@both
@pytest.mark.parametrize("spawned", [False, True])
def test_a_spread_needs_a_factor_table(run: Run, spawned: bool) -> None:
    graph = GraphBuilder("random")
    step = graph.use(0, 9, after=[graph.issue], label="use", spread=2)
    templates = [graph.finish(reply=step)]
    if spawned:
        graph = GraphBuilder("spawning")
        step = graph.use(0, 5, after=[graph.issue], label="use")
        graph.spawn(templates[0], after=[step], label="spawn")
        templates.insert(0, graph.finish(reply=step))
    # Rows 0 (no spread) and 1.
    machine = program(
        templates,
        [(FIFO, 1)],
        [closed(1, [0])],
        factor_tables=service_times(exponential()),
    )
    with pytest.raises(ProblemsError, match=r"got spread 2, wanted below 2\b"):
        run(machine)


@both
@pytest.mark.parametrize(
    ("tables", "got"),
    [
        (exponential(), r"int64 values of shape \(256,\)"),
        (service_times(exponential()).astype(float), "float64 values"),
        ([exponential()], "list"),
    ],
)
def test_factor_tables_that_cannot_be_are_refused(
    run: Run, tables: Any, got: str
) -> None:
    machine = program([single(1)], [(FIFO, 1)], [closed(1, [0])])
    with pytest.raises(ProblemsError, match=f"factor tables: got {got}"):
        run(replace(machine, factor_tables=tables))


def sorted_read(demand_ns: int, position_ns: int) -> Template:
    """A use of which a part is shorter the more steps wait, with a distribution of a single value."""
    graph = GraphBuilder("read")
    read = graph.use(0, demand_ns, after=[graph.issue], label="use", spread=1)
    graph.sort(read, position_ns)
    return graph.finish(reply=read)


@both
def test_a_sorted_use_is_shorter_the_more_steps_wait(run: Run) -> None:
    # Given four uses of 1,000 ns, of which 600 ns halve with another step in the queue, and again with two
    halves = np.array([4, 2, 1], dtype=np.int64) * (FACTOR_ONE // 4)
    one_value = np.full((2, FACTOR_POINTS), FACTOR_ONE)

    def run_on(servers: int) -> EngineRun:
        machine = program(
            [sorted_read(1_000, 600)],
            [(FIFO, servers)],
            [closed(4, [0] * 4)],
            factor_tables=one_value,
            position_factors=halves,
            followed=np.arange(4),
        )
        return run(machine)

    done = run_on(servers=1)
    # Then the first finds an empty queue, the second leaves two, the third one, and the last none.
    assert done.streams[0].completed_ns.tolist() == [1_000, 1_550, 2_250, 3_250]
    assert done.followed_saved_ns[:, 1].tolist() == [0, 450, 300, 0]
    assert done.busy_ns.tolist() == [3_250]
    # Two servers share the queue, so the third leaves half a step for each of them.
    two = run_on(servers=2)
    assert two.streams[0].completed_ns.tolist() == [1_000, 1_000, 2_000, 2_000]


@both
@pytest.mark.parametrize("factors", [[], [1], [FACTOR_ONE, 2 * FACTOR_ONE], [0.5]])
def test_position_factors_that_cannot_be_are_refused(
    run: Run, factors: list[Any]
) -> None:
    machine = program([single(1)], [(FIFO, 1)], [closed(1, [0])])
    with pytest.raises(ProblemsError, match="position factors: got"):
        run(replace(machine, position_factors=np.array(factors)))


@pytest.mark.parametrize(
    ("spread", "position_ns", "message"),
    [
        (0, 5, "read: use: got no distribution"),
        (1, 11, "read: use: got 11 ns to position, wanted 1 to 10 ns"),
        (1, 0, "got 0 ns to position"),
    ],
)
def test_a_part_of_a_random_demand_is_sorted(
    spread: int, position_ns: int, message: str
) -> None:
    graph = GraphBuilder("read")
    read = graph.use(0, 10, after=[graph.issue], label="use", spread=spread)
    with pytest.raises(ValueError, match=message):
        graph.sort(read, position_ns)
    with pytest.raises(ValueError, match="wanted a use to sort"):
        graph.sort(graph.issue, 1)


def test_a_spread_is_a_row_of_the_factor_tables() -> None:
    graph = GraphBuilder("read")
    with pytest.raises(ValueError, match="read: use: got spread -1, wanted 0"):
        graph.use(0, 1, after=[graph.issue], label="use", spread=-1)


@pytest.mark.parametrize(
    ("capacities", "disciplines", "message"),
    [
        ([1, 0], [FIFO, FIFO], "'two': got capacity 0, wanted at least 1"),
        ([1, -3], [FIFO, FIFO], "'two': got capacity -3"),
        ([1, 1], [FIFO, 7], "'two': got discipline 7, wanted FIFO, BATCH"),
        ([1, 1.5], [FIFO, FIFO], "got capacities of type float64, wanted integers"),
        ([1], [FIFO, FIFO], "got 1 capacities, wanted 2"),
        ([1, 1], [FIFO], "got 1 disciplines, wanted 2"),
    ],
)
def test_resources_that_cannot_be_are_refused(
    capacities: list[int], disciplines: list[int], message: str
) -> None:
    names = ("one", "two")
    with pytest.raises(ProblemsError, match=message):
        Resources(names, names, np.array(capacities), np.array(disciplines))


def test_simpy_processes_run_after_arrivals_and_before_steps() -> None:
    engine = SimpyEngine(
        program([single(100)], [(FIFO, 1)], [opened([0, 150, 200], [0] * 3)])
    )
    seen = []

    def watch() -> Generator[Any, Any, str]:
        for _ in range(4):
            # Waiting requests, and completions so far.
            seen.append((engine.now, len(engine.resources[0].queue), engine.uses))
            yield engine.timeout(50)
        return "done"

    process = engine.process(watch())
    result = engine.execute()
    # At 100 ns the request that ends then has not ended for the process.
    assert seen == [(0, 0, 0), (50, 0, 0), (100, 0, 0), (150, 0, 1)]
    assert process.value == "done"
    assert completed(result) == [100, 250, 350]


def test_a_simpy_process_that_fails_stops_the_run() -> None:
    engine = SimpyEngine(program([single(100)], [(FIFO, 1)], [closed(1, [0])]))

    def fail() -> Generator[Any, Any, None]:
        yield engine.timeout(10)
        raise RuntimeError("the process failed")

    engine.process(fail())
    with pytest.raises(RuntimeError, match="the process failed"):
        engine.execute()


def test_importing_the_compiled_engine_does_not_import_numba() -> None:
    code = "import sys, stripesim.sim.engine.compiled.engine; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
