"""Reads of the fastest shards against the order statistics of exponential service times, at low load."""

from math import log, sqrt

import numpy as np
import pytest

from stripesim import blocks
from support.engines import Run, both

MEAN_NS = 1_000_000
REQUESTS = 20_000


class Arrivals:
    """One request at a time, so late that no service of the one before it is left."""

    queue_depth = 0

    def __init__(self) -> None:
        self.left = REQUESTS

    def take(self, count: int) -> blocks.RequestChunk:
        count = min(count, self.left)
        first = REQUESTS - self.left
        self.left -= count
        zeros = np.zeros(count, dtype=np.int64)
        arrivals_ns = 200 * MEAN_NS * np.arange(first, first + count)
        return blocks.RequestChunk(zeros, zeros, zeros, arrivals_ns)


class Book:
    def __init__(self, template: blocks.Template, asked: int) -> None:
        self.templates = [template]
        self.bindings = np.arange(asked)[None, :]


def latencies(run: Run, used: int, asked: int) -> np.ndarray:
    """Return latencies of reads that use the first few of the shards that they ask for [mean services]."""
    graph = blocks.GraphBuilder("read")
    reads = [
        graph.use(role, MEAN_NS, after=[graph.issue], label="read", spread=1)
        for role in range(asked)
    ]
    template = graph.finish(reply=graph.join(reads, first=used))
    names = tuple(f"drive {number}" for number in range(asked))
    ones = np.ones(asked, dtype=np.int64)
    program = blocks.Program(
        resources=blocks.Resources(names, names, ones, ones * blocks.FIFO),
        book=Book(template, asked),
        streams=[Arrivals()],
        factor_tables=blocks.service_times(blocks.exponential()),
    )
    stream = run(program).streams[0]
    return (stream.completed_ns - stream.issued_ns) / MEAN_NS


@both
@pytest.mark.parametrize(("used", "asked"), [(1, 1), (1, 3), (4, 4), (4, 5), (4, 6)])
def test_the_first_k_of_n_take_the_kth_order_statistic(
    run: Run, used: int, asked: int
) -> None:
    found = latencies(run, used, asked)
    # The gaps between the order statistics of n exponentials are exponentials of means 1/n, 1/(n - 1), …
    gaps = [1 / (asked - number) for number in range(used)]
    error = sqrt(sum(gap * gap for gap in gaps) / REQUESTS)
    assert found.mean() == pytest.approx(sum(gaps), abs=4 * error)


@both
@pytest.mark.parametrize("asked", [1, 2, 4])
def test_the_99th_percentile_of_the_fastest_copy_falls_as_one_over_their_number(
    run: Run, asked: int
) -> None:
    found = latencies(run, 1, asked)
    # P(all later than t) = exp(-n t) = 0.01. The standard error is sqrt(0.99 / 0.01 / requests) / n.
    error = sqrt(99 / REQUESTS) / asked
    wanted = log(100) / asked
    assert np.quantile(found, 0.99) == pytest.approx(wanted, abs=4 * error)
