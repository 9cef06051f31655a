"""Queues that classes share against closed forms: what mClock guarantees, what weights divide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import (
    FIFO,
    POOL,
    ListedRequests,
    Program,
    RequestChunk,
    Resources,
)
from stripesim.sim.engine.shares import (
    MCLOCK,
    QUOTA,
    WPQ,
    Share,
    ShareClass,
    quota_offset_ns,
)
from support.engines import FixedTemplates, Run, both, resources

SERVER, THREADS = range(2)
SECOND_NS = 1_000_000_000


@dataclass
class Loop:
    """A closed loop on one template, without an end."""

    queue_depth: int
    template: int

    def take(self, count: int) -> RequestChunk:
        nothing = np.zeros(count, dtype=np.int64)
        return RequestChunk(nothing + self.template, nothing, nothing)


def served(
    share: Share,
    costs: Sequence[int],
    *,
    demand_ns: int,
    run: Run,
    queue_depth: int = 8,
) -> list[int]:
    """Return how many items of each class are served in a second by one server of a fixed demand."""
    templates = []
    for number, cost in enumerate(costs):
        graph = GraphBuilder(f"class {number}")
        use = graph.use(SERVER, demand_ns, after=[graph.issue], label="use")
        graph.in_class(use, number, cost)
        templates.append(graph.finish(reply=use))
    program = Program(
        resources=resources([(FIFO, 1)], shares=(share,), share_indices=np.array([0])),
        book=FixedTemplates(templates, np.array([[SERVER]])),
        streams=[Loop(queue_depth, number) for number in range(len(costs))],
        until_ns=SECOND_NS,
    )
    return [int((stream.completed_ns >= 0).sum()) for stream in run(program).streams]


@both
def test_a_reservation_binds_exactly_however_small_the_weight(run: Run) -> None:
    # 1,000 items a second in all. Class 0 is promised 300 of them and has hardly any weight.
    classes = (ShareClass(weight=1, reservation=300), ShareClass(weight=1_000_000))
    few, many = served(Share(MCLOCK, classes), [1, 1], demand_ns=1_000_000, run=run)
    # One item may be in service at either end of the second.
    assert few == pytest.approx(300, abs=1)
    assert few + many == 1000


@both
def test_a_limit_binds_exactly_while_the_server_is_idle(run: Run) -> None:
    # A limit of 200 of 1,000 items/s: there is no other demand, and the server idles.
    (count,) = served(
        Share(MCLOCK, (ShareClass(limit=200),)), [1], demand_ns=1_000_000, run=run
    )
    assert count == 200


@both
def test_weights_divide_the_capacity_left_by_reservations_and_limits(
    run: Run,
) -> None:
    # Of 1,000: class 2 is limited to 100; the other 900 go 2 to 1, each above its reservation.
    classes = (
        ShareClass(weight=2, reservation=100),
        ShareClass(weight=1, reservation=100),
        ShareClass(weight=50, limit=100),
    )
    counts = served(Share(MCLOCK, classes), [1, 1, 1], demand_ns=1_000_000, run=run)
    # A limited class may be in service at the end, so the division is off by one item at either end.
    assert counts == [
        pytest.approx(600, abs=2),
        pytest.approx(300, abs=2),
        pytest.approx(100, abs=1),
    ]


@both
def test_costs_count_and_not_items(run: Run) -> None:
    # With equal weights, a class whose items cost four times as much gets a quarter of the items.
    counts = served(
        Share(MCLOCK, (ShareClass(), ShareClass())),
        [4, 1],
        demand_ns=1_000_000,
        run=run,
    )
    assert counts == [pytest.approx(200, abs=1), pytest.approx(800, abs=1)]


@both
def test_weights_of_wpq_divide_a_saturated_server(run: Run) -> None:
    # Ceph's defaults: clients at 63, recovery at 3 (5 in later releases), equal costs.
    classes = (ShareClass(weight=63), ShareClass(weight=3))
    many, few = served(Share(WPQ, classes), [1, 1], demand_ns=50_000, run=run)
    # 20,000 draws: four standard deviations of the binomial's share are 0.006.
    assert few / (many + few) == pytest.approx(3 / 66, abs=0.006)


@both
def test_wpq_redraws_expensive_items(run: Run) -> None:
    # Equal weights. An item of the highest cost goes on with 1 - 0.9 = 0.1 (0.11 with the coin's own
    # rounding on a cost of 100), one of cost 1 always: 0.11 to 1.
    classes = (ShareClass(weight=10), ShareClass(weight=10))
    heavy, light = served(Share(WPQ, classes), [100, 1], demand_ns=50_000, run=run)
    assert heavy / light == pytest.approx(0.11, abs=0.012)


@both
def test_strict_items_precede_all_others(run: Run) -> None:
    classes = (ShareClass(weight=1000), ShareClass(strict=196), ShareClass(strict=255))
    counts = served(Share(WPQ, classes), [1, 1, 1], demand_ns=1_000_000, run=run)
    # The first item of class 0 found the server idle.
    assert counts == [1, 0, 999]


@both
def test_threads_of_a_pool_are_shared_like_servers(run: Run) -> None:
    # Two threads at 1 ms per item serve 2,000 items/s. The class with little weight has 500 reserved.
    templates = []
    for number in range(2):
        graph = GraphBuilder(f"class {number}")
        thread = graph.acquire(THREADS, after=[graph.issue], label="thread")
        graph.in_class(thread, number, 1)
        work = graph.delay(-1, 1_000_000, after=[thread], label="work")
        templates.append(
            graph.finish(reply=graph.release(THREADS, after=[work], label="back"))
        )
    share = Share(
        MCLOCK, (ShareClass(weight=1, reservation=500), ShareClass(weight=1_000_000))
    )
    program = Program(
        resources=Resources(
            ("none", "threads"),
            ("none", "threads"),
            np.array([1, 2]),
            np.array([FIFO, POOL]),
            shares=(share,),
            share_indices=np.array([-1, 0]),
        ),
        book=FixedTemplates(templates, np.array([[0, 1]])),
        streams=[Loop(8, 0), Loop(8, 1)],
        until_ns=SECOND_NS,
    )
    few, many = (
        int((stream.completed_ns >= 0).sum()) for stream in run(program).streams
    )
    assert few == pytest.approx(500, abs=2)
    assert few + many == 2000


@both
def test_a_quota_bounds_the_mean_rate_and_leaves_bursts_alone(run: Run) -> None:
    # Four servers, 2 ms each, with 1.5 processors' worth of time: 150 ms in each 100 ms.
    quota_ns, period_ns = 150_000_000, 100_000_000
    share = Share(QUOTA, quota_ns=quota_ns, period_ns=period_ns)
    graph = GraphBuilder("work")
    use = graph.use(SERVER, 2_000_000, after=[graph.issue], label="use")
    program = Program(
        resources=resources([(FIFO, 4)], shares=(share,), share_indices=np.array([0])),
        book=FixedTemplates([graph.finish(reply=use)], np.array([[SERVER]])),
        streams=[Loop(8, 0)],
        until_ns=1_000_000_000,
    )
    done_ns = run(program).streams[0].completed_ns
    done_ns = done_ns[done_ns >= 0]
    # A period admits the services that begin before 150 ms are used up: 75 of 2 ms, in a burst of
    # ceil(75 / 4) rounds, so it ends after 38 ms. Resource 0 begins its first period at time 0.
    assert quota_offset_ns(0, period_ns) == 0
    in_period = np.bincount((done_ns - 1) // period_ns, minlength=10)
    assert np.abs(in_period - 75).max() <= 1
    assert in_period.sum() == 750
    assert ((done_ns - 1) % period_ns).max() < 40_000_000


@both
def test_a_quota_is_not_saved_up_and_excess_is_paid_back(run: Run) -> None:
    # 10 ns in each 100 ns. A use of 35 ns begins with any quota left and owes 25 ns afterwards, so the
    # next may begin in the third period after (−25 + 3 × 10 = 5). Periods without work save nothing.
    share = Share(QUOTA, quota_ns=10, period_ns=100)
    graph = GraphBuilder("work")
    use = graph.use(SERVER, 35, after=[graph.issue], label="use")
    arrivals = np.array([0, 1, 1000, 1001])
    program = Program(
        resources=resources([(FIFO, 2)], shares=(share,), share_indices=np.array([0])),
        book=FixedTemplates([graph.finish(reply=use)], np.array([[SERVER]])),
        streams=[
            ListedRequests(
                np.zeros(4, dtype=np.int64),
                np.zeros(4, dtype=np.int64),
                queue_depth=0,
                arrivals_ns=arrivals,
            )
        ],
    )
    assert run(program).streams[0].completed_ns.tolist() == [35, 335, 1035, 1335]
