"""Requests of several parts are issued together, end with the last part, and count once, on both engines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from stripesim.models.problems import ProblemsError
from stripesim.sim.engine.program import FIFO, RequestChunk
from support.engines import Run, both, completed, program, single

# Durations of the parts [ns], each a template of its own. Servers are never busy.
TEMPLATES = [single(demand_ns) for demand_ns in (5, 10, 20, 30)]
SERVERS = [(FIFO, 100)]
SHORT, TEN, TWENTY, THIRTY = range(4)


@dataclass
class Parts:
    """A stream of requests, each a list of the templates of its parts."""

    requests: list[list[int]]
    queue_depth: int
    arrivals_ns: list[int] | None = None

    def take(self, count: int) -> RequestChunk:
        taken, self.requests = self.requests, []
        templates = np.array(
            [part for parts in taken for part in parts], dtype=np.int64
        )
        continues = [number > 0 for parts in taken for number in range(len(parts))]
        arrivals_ns = None
        if self.arrivals_ns is not None:
            arrivals_ns = np.array(self.arrivals_ns[: len(templates)], dtype=np.int64)
        nothing = np.zeros_like(templates)
        return RequestChunk(
            templates,
            nothing,
            nothing,
            arrivals_ns,
            continues=np.array(continues, dtype=bool),
        )


@both
def test_the_next_request_is_issued_when_the_last_part_ends(run: Run) -> None:
    stream = Parts([[TEN, THIRTY], [TEN, TEN]], queue_depth=1)

    result = run(program(TEMPLATES, SERVERS, [stream]))

    assert result.streams[0].issued_ns.tolist() == [0, 0, 30, 30]
    assert completed(result) == [10, 30, 40, 40]


@both
def test_the_depth_counts_requests(run: Run) -> None:
    stream = Parts([[TEN, TEN, TEN], [TWENTY, TWENTY], [SHORT]], queue_depth=2)

    result = run(program(TEMPLATES, SERVERS, [stream]))

    # The first request ends at 10 ns, and the third takes its place.
    assert result.streams[0].issued_ns.tolist() == [0, 0, 0, 0, 0, 10]


@both
def test_a_client_that_waits_for_its_newest_request_notices_whole_requests(
    run: Run,
) -> None:
    stream = Parts([[TEN, TWENTY], [TEN, THIRTY], [SHORT]], queue_depth=2)

    result = run(program(TEMPLATES, SERVERS, [stream], newest_only=frozenset([0])))

    # The newest request replies at 30 ns. Its first part and that of the other request have replied before.
    assert completed(result) == [10, 30, 10, 30, 35]
    assert result.streams[0].issued_ns.tolist() == [0, 0, 0, 0, 30]


@both
def test_the_parts_of_an_open_request_arrive_together(run: Run) -> None:
    stream = Parts([[TEN, TWENTY], [TEN]], queue_depth=0, arrivals_ns=[0, 0, 7])

    assert completed(run(program(TEMPLATES, SERVERS, [stream]))) == [10, 20, 17]


@both
def test_parts_that_arrive_at_several_times_are_refused(run: Run) -> None:
    stream = Parts([[TEN, TEN]], queue_depth=0, arrivals_ns=[0, 7])

    with pytest.raises(ProblemsError):
        run(program(TEMPLATES, SERVERS, [stream]))


def test_rows_left_counts_the_parts_to_the_end_of_each_request() -> None:
    chunk = Parts([[TEN, TEN, TEN], [TEN], [TEN, TEN]], queue_depth=1).take(6)

    assert chunk.rows_left.tolist() == [3, 2, 1, 1, 2, 1]
    assert chunk.at(slice(3, 6)).rows_left.tolist() == [1, 2, 1]
