"""Closed loops obey Little's law: rate times mean latency is the number of requests in flight."""

from __future__ import annotations

import pytest

from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.loader import parse_scenario
from stripesim.sim.run import RunResult

SCENARIO = """schemes = ["{0}"]
[cluster]
hosts = 12
osds_per_host = 4
pg_num = 1024
[workload]
ops = ["{1}"]
patterns = ["rand"]
block_sizes_bytes = ["{2}"]
queue_depth = {3}
clients = {4}
requests = {5}
"""

Load = tuple[str, str, str, int, int, int]


def run_of(load: Load) -> RunResult:
    scenario = parse_scenario(SCENARIO.format(*load))
    [cell] = cells(scenario)
    return run_cell(scenario, cell, "compiled")


@pytest.mark.parametrize(
    "load",
    [
        # Requests of several objects, which the depth counts once.
        ("rep:3", "read", "8MiB", 8, 1, 200),
        ("rep:3", "write", "12MiB", 2, 1, 100),
        ("rs:4,2", "write", "8MiB", 4, 2, 150),
        # Fewer requests than are in flight.
        ("rep:3", "read", "4k", 512, 24, 100),
        # Most requests wait for one OSD.
        ("rs:4,2", "read", "64k", 200, 16, 6000),
        ("rs:6,3", "read", "2MiB", 64, 8, 1500),
    ],
    ids=str,
)
def test_rate_times_mean_latency_is_the_number_in_flight(load: Load) -> None:
    row = run_of(load).row

    in_flight = load[3] * load[4]
    assert row.refused is None
    assert row.requests_in_flight == pytest.approx(in_flight, rel=0.001)
    assert row.iops * row.latency_mean_ns / 1e9 == pytest.approx(in_flight, rel=0.05)


def test_the_parts_of_a_request_are_read_in_parallel() -> None:
    one_object = run_of(("rep:3", "read", "4MiB", 1, 1, 200)).row.latency_mean_ns
    four_objects = run_of(("rep:3", "read", "16MiB", 1, 1, 200)).row.latency_mean_ns

    # One after another, four objects take four times as long. In parallel, they share only the client's
    # network and thread: 12 MiB more at 12.5 GB/s are 1.0 ms, and copying them takes some milliseconds.
    assert one_object < four_objects < 2 * one_object


def test_the_answer_does_not_depend_on_the_requests_that_a_user_states() -> None:
    few, some, many = (
        run_of(("rs:4,2", "read", "64k", 200, 16, requests)).row
        for requests in (100, 6000, 60_000)
    )

    # Batches of some 10,000 requests vary by a few per cent.
    for row in (few, some):
        assert row.iops == pytest.approx(many.iops, rel=0.05)
        assert row.latency_mean_ns == pytest.approx(many.latency_mean_ns, rel=0.07)
