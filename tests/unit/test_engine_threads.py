"""Threads that sleep and are woken: sleeps counted and wake-ups charged by hand, on both engines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from stripesim.sim.engine import conditions
from stripesim.sim.engine.graph import GraphBuilder, Template
from stripesim.sim.engine.program import (
    BATCH,
    FIFO,
    POOL,
    Program,
    RequestChunk,
)
from support.engines import FixedTemplates, Run, both, completed, resources, single

CPU, SYNC, WORKERS = range(3)
RESOURCES = [(FIFO, 2), (BATCH, 1), (POOL, 1)]


@dataclass
class Arrivals:
    """An open stream of requests on the book's first template."""

    times_ns: list[int]
    depth: int = 0

    def take(self, count: int) -> RequestChunk:
        times_ns, self.times_ns = np.array(self.times_ns, dtype=np.int64), []
        nothing = np.zeros_like(times_ns)
        return RequestChunk(nothing, nothing, nothing, times_ns)


def program(template: Template, times_ns: list[int], wake_ns: list[int], bin_ns: int = 0) -> Program:
    woken = np.array(wake_ns, dtype=np.int64)
    return Program(
        resources=resources(RESOURCES, kinds=("cpu", "thread", "thread"), wake_ns=woken),
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
    return graph.finish(reply=graph.release(WORKERS, after=[work], label="sleep or go on"))


@both
def test_a_server_sleeps_when_nothing_waits_and_only_then(run: Run) -> None:
    # Two cores, 10 ns each: the third waits for the first core, the fourth finds both asleep.
    result = run(program(single(10, CPU), [0, 0, 0, 100], [0, 0, 0], bin_ns=50))
    assert result.sleeps.tolist() == [3, 0, 0]
    assert result.sleep_bins.tolist() == [[2, 0], [0, 0], [1, 0]]


@both
def test_a_server_that_is_woken_takes_longer_and_one_that_finds_work_does_not(run: Run) -> None:
    result = run(program(single(10, CPU), [0, 0, 0, 100], [7, 0, 0]))
    assert completed(result) == [17, 17, 27, 117]
    assert result.busy_ns.tolist() == [4 * 10 + 3 * 7, 0, 0]


@both
def test_a_batch_thread_sleeps_once_for_all_that_it_took(run: Run) -> None:
    # The first is alone; the two that arrive meanwhile share the second service.
    result = run(program(single(10, SYNC), [0, 1, 2], [0, 5, 0]))
    assert completed(result) == [15, 25, 25]
    assert result.sleeps.tolist() == [0, 1, 0]


@both
def test_a_thread_of_a_pool_charges_its_waking_to_the_use_that_names_it(run: Run) -> None:
    # Woken at 0; the second item is found in the queue; asleep from 25 to 100.
    result = run(program(worked(10), [0, 1, 100], [0, 0, 5]))
    assert completed(result) == [15, 25, 115]
    assert result.sleeps.tolist() == [3, 0, 2]


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
    with pytest.raises(ValueError, match="late: beside: wanted it to run only after 'thread'"):
        graph.finish(reply=end)
    with pytest.raises(ValueError, match="wanted an acquire before it"):
        graph.on_thread(beside, 0)
