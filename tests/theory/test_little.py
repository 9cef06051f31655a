"""Closed loops obey Little's law: rate times mean latency is the number of requests in flight."""

from __future__ import annotations

import numpy as np
import pytest

from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.run import Run

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


def run_of(load: Load) -> Run:
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


# Drives that serve one read at a time, each in exactly 1 ms.
DEEP = """generation = "reef"
schemes = ["rep:3"]
[cluster]
hosts = 10
osds_per_host = 10
pg_num = 256
[cluster.drive_numbers]
channels = 1
read_base_ns = 1000000
read_ns_per_byte = 0
read_sigma = 0
[workload]
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = [4096]
clients = 128
queue_depth = 24
requests = 24576
"""


def test_a_deep_loop_has_the_rate_of_its_busiest_osd() -> None:
    # Given 128 × 24 = 3,072 requests in flight, nearly all at the OSD with most primaries, which serves
    # 1,000 reads a second. Its part of the reads is that of the primaries: 7 of 256.
    scenario = parse_scenario(DEEP)
    [cell] = cells(scenario)
    pool = build_cell(scenario, cell).pool
    groups = pool.cluster.groups
    primaries = pool.cluster.acting[np.arange(groups), pool.primaries]
    of_busiest = int(np.bincount(primaries).max())
    assert of_busiest == 7

    result = run_cell(scenario, cell, "compiled")

    # Then the rate is 1,000 × 256 / 7 = 36,571/s. The stated 24,576 requests are 8 rounds of those in flight,
    # too few: other queues still drain, which makes them 16 % faster.
    assert result.row.iops == pytest.approx(1000 * groups / of_busiest, rel=0.05)
    assert result.length > 1
