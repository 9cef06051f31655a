"""Both engines against queueing theory: exact where a recursion is known, else within stated errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapreplace
from math import factorial

import numpy as np
import numpy.typing as npt
import pytest

from stripesim.sim.engine.draws import (
    FACTOR_ONE,
    FACTOR_POINTS,
    draw_key,
    drawn_factor,
    factor_cells,
    factor_table,
    scaled_ns,
    seed_state,
)
from stripesim.sim.engine.graph import IntArray, Template
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import FIFO, POOL, Program, RequestChunk
from support.engines import Run, both, engine_compiled
from support.engines import program as program_of

MEAN_NS = 10_000
MANY = 1 << 20
SPREAD = 1


def exponential_quantiles() -> npt.NDArray[np.float64]:
    """Mean of each of 256 equally likely slices of the exponential distribution of mean 1.

    The integral of −ln(u) from 0 to u is u − u·ln(u); slices of it, times 256.
    """
    edges = np.arange(FACTOR_POINTS + 1) / FACTOR_POINTS
    integral = np.append(0.0, edges[1:] * (1 - np.log(edges[1:])))
    return np.sort(np.diff(integral) * FACTOR_POINTS)


def simulated_quantiles() -> npt.NDArray[np.float64]:
    """Quantile function of those slices at 1,024 positions in each.

    Slices meet halfway between their means. A slice of mean m from m − a to m + b passes m at b / (a + b),
    which keeps its mean: −a·b/(a + b) + b·a/(a + b) = 0. The last one reaches up to m + 3·a.
    """
    means = exponential_quantiles()
    edges = (means[1:] + means[:-1]) / 2
    last = 3 * (means[-1] - edges[-1])
    edges = np.concatenate(([2 * means[0] - edges[0]], edges, [means[-1] + last]))
    below, above = means - edges[:-1], edges[1:] - means
    knots = np.arange(FACTOR_POINTS) + above / (above + below)
    at = np.concatenate((np.arange(FACTOR_POINTS + 1), knots))
    order = np.argsort(at, kind="stable")
    values = np.concatenate((edges, means))
    wanted = (np.arange(FACTOR_POINTS * 1024) + 0.5) / 1024
    return np.interp(wanted, at[order], values[order])


@dataclass
class Source:
    queue_depth: int
    count: int
    arrivals_ns: IntArray | None = None
    at: int = field(default=0)

    def take(self, count: int) -> RequestChunk:
        count = min(count, self.count - self.at)
        zeros = np.zeros(count, dtype=np.int64)
        arrivals_ns = (
            None
            if self.arrivals_ns is None
            else self.arrivals_ns[self.at : self.at + count]
        )
        self.at += count
        return RequestChunk(zeros, zeros, zeros, arrivals_ns)


def program(
    template: Template,
    capacities: list[int],
    source: Source,
    *,
    disciplines: list[int] | None = None,
) -> Program:
    """One template, role i bound to resource i, one stream."""
    pairs = list(zip(disciplines or [FIFO] * len(capacities), capacities, strict=True))
    tables = [
        np.full(FACTOR_POINTS, FACTOR_ONE),
        factor_table(exponential_quantiles().tolist()),
    ]
    return program_of(
        [template], pairs, [source], seed=7, factor_tables=np.stack(tables)
    )


def station(servers: int, load: float, count: int) -> Program:
    """Poisson arrivals at one station of exponential service."""
    gaps = np.random.default_rng(servers).exponential(MEAN_NS / (servers * load), count)
    graph = GraphBuilder("station")
    step = graph.use(0, MEAN_NS, after=[0], label="serve", spread=SPREAD)
    arrivals_ns = np.rint(np.cumsum(gaps)).astype(np.int64)
    return program(graph.finish(reply=step), [servers], Source(0, count, arrivals_ns))


def draws_of(asked: Program) -> Callable[[int, int], int]:
    """Return the service time that sim/engine/ENGINE.md gives a step of a request, from its key alone."""
    cells = factor_cells(asked.factor_tables)[SPREAD].tolist()
    state = seed_state(asked.seed)

    def drawn_ns(request: int, step: int) -> int:
        key = draw_key(request, step)
        return scaled_ns(MEAN_NS, drawn_factor(cells, state, key))

    return drawn_ns


def erlang_c_wait(servers: int, load: float) -> float:
    """Mean wait of M/M/c in units of the mean service time (Erlang C)."""
    offered = servers * load
    waiting = offered**servers / factorial(servers) / (1 - load)
    probability = waiting / (
        sum(offered**n / factorial(n) for n in range(servers)) + waiting
    )
    return probability / (servers * (1 - load))


@both
@pytest.mark.parametrize("servers", [1, 4])
def test_each_departure_is_that_of_the_recursion_of_lindley_or_of_kiefer_and_wolfowitz(
    run: Run, servers: int
) -> None:
    count = 20_000
    asked = station(servers, 0.8, count)
    result = run(asked)
    got = result.streams[0]
    # The calendar of a FIFO station by hand: a request begins when it is there and a server is.
    drawn_ns = draws_of(asked)
    free_at = [0] * servers
    expected = []
    for request, arrival_ns in enumerate(got.issued_ns.tolist()):
        end_ns = max(arrival_ns, free_at[0]) + drawn_ns(request, 1)
        heapreplace(free_at, end_ns)
        expected.append(end_ns)
    assert got.completed_ns.tolist() == expected
    spent_ns = int((got.completed_ns - got.issued_ns).sum())
    assert spent_ns == result.waited_ns[0] + result.busy_ns[0]


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (1, 0.7), (4, 0.7)])
def test_mean_waits_are_those_of_erlang(servers: int, load: float) -> None:
    # On one engine: each departure of the other is that of the recursion above.
    count = 250_000
    result = engine_compiled.run(station(servers, load, count))
    stream = result.streams[0]
    waits = (stream.completed_ns - stream.issued_ns).astype(np.float64)
    assert int(waits.sum()) == result.waited_ns[0] + result.busy_ns[0]
    mean = result.waited_ns[0] / count / MEAN_NS
    # Error 1, sample size: waits are correlated, so the standard error comes from 50 batch means.
    batches = waits.reshape(50, -1).mean(axis=1) / MEAN_NS
    sampling = 4 * batches.std(ddof=1) / np.sqrt(50)
    # Error 2, the table: its tail ends, so its second moment is below 2, and with it the wait
    # (exactly so for one server by Pollaczek and Khinchine, nearly so for more).
    second_moment = float((simulated_quantiles() ** 2).mean())
    assert 1.99 < second_moment < 2
    expected = erlang_c_wait(servers, load) * second_moment / 2
    assert abs(mean - expected) < sampling
    assert sampling < 0.15 * expected, "the sample is too small to say anything"


@both
@pytest.mark.parametrize(
    ("branches", "harmonic"), [(3, 1.833333), (9, 2.828968), (14, 3.251562)]
)
def test_a_join_waits_for_the_slowest_branch(
    run: Run, branches: int, harmonic: float
) -> None:
    count = 10_000
    graph = GraphBuilder("fork and join")
    steps = [
        graph.use(role, MEAN_NS, after=[0], label="branch", spread=SPREAD)
        for role in range(branches)
    ]
    asked = program(
        graph.finish(reply=graph.join(steps)), [MANY] * branches, Source(1, count)
    )
    stream = run(asked).streams[0]
    times_ns = stream.completed_ns - stream.issued_ns
    drawn_ns = draws_of(asked)
    exact = [max(drawn_ns(request, step) for step in steps) for request in range(count)]
    assert times_ns.tolist() == exact
    # Expectation of the largest of n draws: the i-th smallest of N equally likely points is
    # the largest with probability (i/N)^n − ((i−1)/N)^n.
    points = simulated_quantiles()
    share = np.arange(len(points) + 1) / len(points)
    expected = float((points * np.diff(share**branches)).sum())
    error = 4 * (times_ns / MEAN_NS).std() / np.sqrt(count)
    assert abs((times_ns / MEAN_NS).mean() - expected) < error
    # Exponential service has the harmonic number; straight lines within the slices cost little.
    assert harmonic == pytest.approx(
        sum(1 / n for n in range(1, branches + 1)), abs=1e-6
    )
    assert 0.999 * harmonic < expected < 1.001 * harmonic


@both
def test_littles_law_holds_exactly_at_every_resource_of_a_drained_run(run: Run) -> None:
    graph = GraphBuilder("two stations in a lock")
    lock = graph.acquire(2, after=[0], label="lock")
    first = graph.use(0, MEAN_NS, after=[lock], label="first", spread=SPREAD)
    second = graph.use(1, MEAN_NS, after=[first], label="second", spread=SPREAD)
    last = graph.release(2, after=[second], label="unlock")
    source = Source(12, 5_000)
    result = run(
        program(
            graph.finish(reply=last), [1, 2, 6], source, disciplines=[FIFO, FIFO, POOL]
        )
    )
    stream = result.streams[0]
    in_system = int((stream.completed_ns - stream.issued_ns).sum())
    # Mean number × time = sum of times: who is in the system waits for the lock or holds it, and
    # who holds it waits at a station or is served there.
    assert in_system == result.waited_ns[2] + result.held_ns[2]
    assert result.held_ns[2] == result.waited_ns[:2].sum() + result.busy_ns[:2].sum()
    assert result.waited_ns.min() > 0


@both
def test_work_is_conserved(run: Run) -> None:
    count = 3_000
    graph = GraphBuilder("chain")
    steps = [graph.use(0, MEAN_NS, after=[0], label="a", spread=SPREAD)]
    steps += [graph.use(0, MEAN_NS, after=steps, label="b", spread=SPREAD)]
    asked = program(graph.finish(reply=steps[-1]), [3], Source(16, count))
    result = run(asked)
    drawn_ns = draws_of(asked)
    demands = sum(drawn_ns(request, step) for request in range(count) for step in steps)
    assert result.busy_ns.tolist() == [demands]
    assert result.uses == 2 * count


@both
def test_requests_of_many_steps_are_independent(run: Run) -> None:
    # Given requests of 6,000 exponential services one after another, alone
    steps, count = 6_000, 2
    graph = GraphBuilder("long")
    step = graph.issue
    for _ in range(steps):
        step = graph.use(0, MEAN_NS, after=[step], label="serve", spread=SPREAD)
    arrivals_ns = np.arange(count) * 2 * steps * MEAN_NS
    asked = program(graph.finish(reply=step), [1], Source(0, count, arrivals_ns))
    # When they run
    stream = run(asked).streams[0]
    # Then each is as long as its own draws say,
    drawn_ns = draws_of(asked)
    times_ns = (stream.completed_ns - stream.issued_ns).tolist()
    for request in (0, 1):
        drawn = [drawn_ns(request, step) for step in range(1, steps + 1)]
        assert times_ns[request] == sum(drawn)
    # and late steps do not repeat the first steps of a neighbour.
    late = range(4_096, steps + 1)
    repeated = [drawn_ns(0, step) == drawn_ns(1, step - 4_096) for step in late]
    assert sum(repeated) < 0.01 * len(repeated)


@both
def test_a_saturated_closed_loop_keeps_its_bottleneck_busy(run: Run) -> None:
    graph = GraphBuilder("slow and fast")
    slow = graph.use(0, MEAN_NS, after=[0], label="slow", spread=SPREAD)
    fast = graph.use(1, MEAN_NS // 10, after=[slow], label="fast")
    result = run(program(graph.finish(reply=fast), [1, 1], Source(64, 5_000)))
    # The bottleneck is never idle until the last request has left it.
    assert result.end_ns == result.busy_ns[0] + MEAN_NS // 10


def random_graph(seed: int) -> tuple[Template, list[tuple[int, ...]], list[int]]:
    """Draw a random graph of up to 30 steps. Step i accounts 2**i."""
    random = np.random.default_rng(seed)
    graph = GraphBuilder(f"random {seed}")
    for step in range(1, int(random.integers(2, 30))):
        after = random.integers(0, step, size=random.integers(1, 4)).tolist()
        graph.use(
            0,
            int(random.integers(0, 50)),
            after=after,
            label="step",
            encode_bytes=1 << step,
        )
    return graph.finish(reply=len(graph.words) - 1), graph.after, graph.demands_ns


@both
@pytest.mark.parametrize("seed", range(20))
def test_without_queues_each_step_ends_its_demand_after_its_last_predecessor(
    run: Run, seed: int
) -> None:
    template, after, demands_ns = random_graph(seed)
    asked = program(template, [MANY], Source(1, 1))
    # Bins of 1 ns tell when each step completed: the sum of powers of two in a bin is the set of them.
    result = run(Program(**{**vars(asked), "bin_ns": 1}))
    sets = result.bins[:, 9]
    times_ns = [0]
    for step in range(1, template.steps):
        assert ((sets >> step) & 1).sum() == 1
        times_ns.append(int(np.flatnonzero((sets >> step) & 1)[0]))
        assert (
            times_ns[step]
            == max(times_ns[index] for index in after[step]) + demands_ns[step]
        )
