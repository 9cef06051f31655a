"""Threads that sleep and are woken: sleeps counted and wake-ups charged by hand, on both engines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from stripesim.sim.engine import conditions
from stripesim.sim.engine.graph import Template
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import (
    BATCH,
    FIFO,
    POOL,
    Program,
    RequestChunk,
)
from stripesim.sim.engine.shares import FAIR, Share, ShareClass
from support.engines import FixedTemplates, Run, both, completed, resources, single

CPU, SYNC, WORKERS = range(3)
RESOURCES = [(FIFO, 2), (BATCH, 1), (POOL, 1)]


@dataclass
class Arrivals:
    """An open stream of requests on the book's first template."""

    times_ns: list[int]
    queue_depth: int = 0

    def take(self, count: int) -> RequestChunk:
        times_ns, self.times_ns = np.array(self.times_ns, dtype=np.int64), []
        nothing = np.zeros_like(times_ns)
        return RequestChunk(nothing, nothing, nothing, times_ns)


def program(
    template: Template, times_ns: list[int], wake_ns: list[int], bin_ns: int = 0
) -> Program:
    woken = np.array(wake_ns, dtype=np.int64)
    return Program(
        resources=resources(
            RESOURCES, kinds=("cpu", "thread", "thread"), wake_ns=woken
        ),
        book=FixedTemplates([template], np.array([[CPU, SYNC, WORKERS]])),
        streams=[Arrivals(times_ns)],
        bin_ns=bin_ns,
    )


def worked(demand_ns: int) -> Template:
    """A worker thread that needs a core for its work."""
    graph = GraphBuilder("work")
    thread = graph.acquire(WORKERS, after=[0], label="thread")
    work = graph.use(CPU, demand_ns, after=[thread], label="work")
    graph.on_thread(work, thread)
    return graph.finish(
        reply=graph.release(WORKERS, after=[work], label="sleep or go on")
    )


@both
def test_a_server_sleeps_only_when_its_queue_is_empty(run: Run) -> None:
    # Two cores, 10 ns each: the third waits for the first core, the fourth finds both asleep.
    result = run(program(single(10, CPU), [0, 0, 0, 100], [0, 0, 0], bin_ns=50))
    assert result.sleeps.tolist() == [3, 0, 0]
    assert result.sleep_bins.tolist() == [[2, 0], [0, 0], [1, 0]]


@both
def test_a_server_that_is_woken_takes_longer_and_one_that_finds_work_does_not(
    run: Run,
) -> None:
    result = run(program(single(10, CPU), [0, 0, 0, 100], [7, 0, 0]))
    assert completed(result) == [17, 17, 27, 117]
    assert result.busy_ns.tolist() == [4 * 10 + 3 * 7, 0, 0]


@both
def test_threads_that_share_cores_slow_down(run: Run) -> None:
    # Two cores of two threads, 50 % slower in pairs. Of four services of 100 ns the first two have a core
    # alone, the third begins as two of three share one, the fourth as all do; the fifth finds four at work.
    book = FixedTemplates([single(100, CPU)], np.array([[CPU, SYNC, WORKERS]]))
    paired = np.array([1, 0, 0])
    four = resources(
        [(FIFO, 4), (BATCH, 1), (POOL, 1)], paired=paired, paired_slowdown=512
    )
    result = run(
        Program(resources=four, book=book, streams=[Arrivals([0, 0, 0, 0, 1])])
    )
    assert completed(result) == [100, 100, 133, 150, 250]


@both
def test_a_batch_thread_sleeps_once_for_all_that_it_took(run: Run) -> None:
    # The first is alone; the two that arrive meanwhile share the second service.
    result = run(program(single(10, SYNC), [0, 1, 2], [0, 5, 0]))
    assert completed(result) == [15, 25, 25]
    assert result.sleeps.tolist() == [0, 1, 0]


@both
def test_a_thread_of_a_pool_charges_its_waking_to_the_use_that_names_it(
    run: Run,
) -> None:
    # Woken at 0, finds the second item in the queue, sleeps from 25 to 100.
    result = run(program(worked(10), [0, 1, 100], [0, 0, 5]))
    assert completed(result) == [15, 25, 115]
    assert result.sleeps.tolist() == [3, 0, 2]


def on_core(name: str, pool: int, demand_ns: int) -> Template:
    """Work of a thread of a pool on the one core, resource 0."""
    graph = GraphBuilder(name)
    thread = graph.acquire(pool, after=[0], label="thread")
    work = graph.use(0, demand_ns, after=[thread], label="work")
    graph.on_thread(work, thread)
    return graph.finish(reply=graph.release(pool, after=[work], label="sleep or go on"))


def one_core(templates: list[Template], order: list[int], slice_ns: int) -> Program:
    """One core, two threads, requests of two kinds that all arrive at time 0."""
    found = resources(
        [(FIFO, 1), (POOL, 1), (POOL, 1)], wake_ns=np.array([0, 5, 5], dtype=np.int64)
    )
    return Program(
        resources=replace(found, slice_ns=np.array([slice_ns, 0, 0], dtype=np.int64)),
        book=FixedTemplates(templates, np.array([[0, 1, 2]])),
        streams=[Chosen(order)],
    )


@dataclass
class Chosen:
    """A closed loop that issues all its requests together, on chosen templates."""

    order: list[int]
    queue_depth: int = 100

    def take(self, count: int) -> RequestChunk:
        chosen, self.order = np.array(self.order, dtype=np.int64), []
        nothing = np.zeros_like(chosen)
        return RequestChunk(chosen, nothing, nothing)


@both
def test_a_thread_keeps_its_core_while_it_finds_work(run: Run) -> None:
    templates = [on_core("a", 1, 10), on_core("b", 2, 10)]
    # The first thread works off its three, then the second its one.
    assert completed(run(one_core(templates, [0, 1, 0, 0], slice_ns=100))) == [
        15,
        50,
        25,
        35,
    ]
    # Its slice is used up after the second: the other one comes first.
    assert completed(run(one_core(templates, [0, 1, 0, 0], slice_ns=20))) == [
        15,
        40,
        25,
        50,
    ]
    # Without slices the core changes hands each time.
    assert completed(run(one_core(templates, [0, 1, 0, 0], slice_ns=0))) == [
        15,
        30,
        40,
        50,
    ]


@both
def test_a_fair_core_goes_to_the_process_with_least_service(run: Run) -> None:
    found = resources(
        [(FIFO, 1)] + 3 * [(POOL, 1)], shares=(Share(FAIR, (ShareClass(),)),)
    )
    cores = replace(
        found,
        share_indices=np.array([0, -1, -1, -1]),
        slice_ns=np.array([1, 0, 0, 0]),
        processes=np.array([-1, 0, 0, 1]),
    )
    templates = [
        on_core(name, pool, 10) for name, pool in zip("abc", (1, 2, 3), strict=True)
    ]
    book = FixedTemplates(templates, np.array([[0, 1, 2, 3]]))
    # Thread a of the first process runs first. b waits until c of the other process has had equal service.
    result = run(Program(resources=cores, book=book, streams=[Chosen([0, 1, 2, 2])]))
    assert completed(result) == [10, 30, 20, 40]
    # At 20 the third a, b and c wait: c's process has had nothing yet, and of the other b waits longest.
    result = run(
        Program(
            resources=cores, book=book, streams=[At([0, 0, 0, 1, 2], [0, 0, 0, 12, 13])]
        )
    )
    assert completed(result) == [10, 20, 50, 40, 30]


@both
def test_work_without_a_thread_does_not_wait_for_other_cores(
    run: Run,
) -> None:
    """Fair queues of two cores count the service of threads on either core."""
    found = resources(
        2 * [(FIFO, 1)] + 2 * [(POOL, 1)], shares=(Share(FAIR, (ShareClass(),)),)
    )
    cores = replace(
        found, share_indices=np.array([0, 0, -1, -1]), slice_ns=np.array([1, 1, 0, 0])
    )
    templates = [on_core("thread", 2, 10)]
    for name, demand_ns in (("long", 100), ("short", 10)):
        graph = GraphBuilder(name)
        templates.append(
            graph.finish(reply=graph.use(0, demand_ns, after=[0], label="alone"))
        )
    thread, long, short = range(3)
    # Roles are the core and the pool of a row: the first core's, then the second's.
    requests = [
        (thread, 0),
        (thread, 1),
        (long, 1),
        (thread, 0),
        (short, 0),
        (thread, 1),
        (short, 1),
    ]
    stream = At(
        [template for template, _ in requests],
        [0, 0, 15, 20, 25, 30, 31],
        [row for _, row in requests],
    )
    book = FixedTemplates(templates, np.array([[0, -1, 2], [1, -1, 3]]))
    result = run(Program(resources=cores, book=book, streams=[stream]))
    # The first core's clock is at 10 when the short one begins there; on the second all that wait stand
    # at 0 but the thread, which has had 10: it goes last, though it came before the short one.
    assert completed(result) == [10, 10, 115, 30, 40, 135, 125]


@both
def test_a_thread_of_a_process_that_has_just_run_is_cheaper_to_wake(run: Run) -> None:
    found = replace(
        one_core([], [], slice_ns=1000).resources,
        processes=np.array([-1, 0, 0]),
        warm_ns=4,
        cool_ns=20,
    )
    templates = [on_core("a", 1, 10), on_core("b", 2, 10)]
    later = Program(
        resources=found,
        book=FixedTemplates(templates, np.array([[0, 1, 2]])),
        streams=[At([0, 1, 0, 1], [0, 1, 40, 100])],
    )
    # The first wakes cold (5); the second right behind it (5 − 4); the third 14 ns later (5 − 4 × 6 ÷ 20);
    # the last when all is cold again.
    result = run(later)
    assert completed(result) == [15, 26, 54, 115]
    assert result.warm_ns.tolist() == [0, 1, 4]


@dataclass
class At:
    """An open stream of requests on chosen templates."""

    order: list[int]
    times_ns: list[int]
    rows: list[int] = field(default_factory=list)
    queue_depth: int = 0

    def take(self, count: int) -> RequestChunk:
        chosen, self.order = np.array(self.order, dtype=np.int64), []
        times_ns, self.times_ns = np.array(self.times_ns, dtype=np.int64), []
        nothing = np.zeros_like(chosen)
        rows = np.array(self.rows, dtype=np.int64) if self.rows else nothing
        return RequestChunk(chosen, rows, nothing, times_ns)


@both
def test_idle_threads_serve_their_batch(run: Run) -> None:
    graph = GraphBuilder("commit")
    thread = graph.acquire(WORKERS, after=[0], label="thread")
    work = graph.use(CPU, 10, after=[thread], label="submit")
    graph.on_thread(work, thread)
    synced = graph.use(SYNC, 100, after=[work], label="sync")
    graph.release(WORKERS, after=[work], label="sleep or go on")
    given = program(graph.finish(reply=synced), [0, 1, 50, 60], [0, 0, 5])
    served_by = np.array([-1, WORKERS, -1], dtype=np.int64)
    result = run(
        replace(given, resources=replace(given.resources, served_by=served_by))
    )
    # Woken at 0, both submitted by 25, synced by 125; the others: woken, by 150, synced by 250.
    assert completed(result) == [125, 125, 250, 250]
    assert result.sleeps.tolist()[1:] == [2, 2]


@both
def test_an_idle_pool_can_be_asked_for(run: Run) -> None:
    graph = GraphBuilder("asks")
    idle, busy = graph.branch(conditions.idle(WORKERS), after=[0], label="idle")
    short = graph.delay(-1, 1, after=[idle], label="idle")
    long = graph.delay(-1, 1000, after=[busy], label="busy")
    asked = graph.merge([short, long])
    later = graph.delay(-1, 1, after=[0], label="later")
    thread = graph.acquire(WORKERS, after=[later], label="thread")
    work = graph.use(CPU, 10, after=[thread], label="work")
    graph.release(WORKERS, after=[work], label="done")
    result = run(program(graph.finish(reply=asked), [0, 5, 100], [0, 0, 0]))
    assert completed(result) == [1, 1005, 101]


def test_a_thread_is_acquired_before_it_works() -> None:
    graph = GraphBuilder("late")
    thread = graph.acquire(WORKERS, after=[0], label="thread")
    beside = graph.use(CPU, 10, after=[0], label="beside")
    graph.on_thread(beside, thread)
    end = graph.release(WORKERS, after=[thread, beside], label="release")
    with pytest.raises(ValueError, match=r"late: beside:.*'thread'"):
        graph.finish(reply=end)
    with pytest.raises(ValueError, match="wanted"):
        graph.on_thread(beside, 0)
