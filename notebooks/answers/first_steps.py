"""Lesson 1: first steps."""

from typing import Any

import stripesim
from stripesim.notebooks.teach import Given, Question, Questions, row_of

TITLE = "First steps"
NUMBERS = {
    "size_bytes": (4096, 65536),
    "depth": (8, 16, 32),
    "latency_us": (250, 400, 800),
}
RUBRIC = (
    ("a scenario of a cluster that exists or could be bought, with its source", 3),
    ("a bottleneck predicted with a reason before the run", 3),
    ("one changed key, its effect in numbers, and why", 4),
)


def questions(d: Given) -> Questions:
    """Questions; the lesson hands over `rows` and `at_depth`."""
    size = stripesim.format_size(d.size_bytes)

    def cell(scheme: str, op: str, size_bytes: int = d.size_bytes) -> dict[str, Any]:
        return row_of(d.rows, scheme=scheme, op=op, block_size_bytes=size_bytes)

    yield Question(
        "Little's law on paper",
        f"A cluster completes {d.depth} requests at a time, each after {d.latency_us} µs on average. How "
        "many a second?",
        lambda: d.depth / d.latency_us * 1e6,
        unit="requests/s",
        tolerance=0.02,
        hint="In flight = rate × latency.",
        why=lambda x: f"{d.depth} / {d.latency_us} µs = {x:,.0f} requests/s.",
    )
    yield Question(
        "copies over code",
        f"How many times the rate of RS(4,2) does 3-replication reach with writes of {size}?",
        lambda: cell("rep:3", "write")["iops"] / cell("rs:4,2", "write")["iops"],
        hint="Divide two cells of the column rate.",
        why="Lesson 2 takes such a write apart.",
    )
    yield Question(
        "Little's law",
        f"From rate and mean latency of 3-replication's reads of {size}: how many requests are in flight?",
        lambda: (
            cell("rep:3", "read")["iops"]
            * cell("rep:3", "read")["latency_mean_ns"]
            / 1e9
        ),
        unit="requests",
        hint="Rate × latency; mind that 1 ms is 0.001 s.",
        why="The scenario asks for a queue depth of 64; what differs is the start and the end of the run.",
    )
    yield Question(
        "amplification",
        "How many bytes do the devices write for each byte that the client writes, 3-replication, 4 KiB?",
        lambda: float(
            cell("rep:3", "write", 4096)["device_write_bytes_per_client_byte"]
        ),
        unit="B/B",
        hint="It is a column of the table.",
        why=lambda x: (
            f"Three copies make 3; the other {x - 3:.2f} are metadata and the log of each store."
        ),
    )
    yield Question(
        "amplification of a code",
        "And for RS(4,2), writes of 4 KiB?",
        lambda: float(
            cell("rs:4,2", "write", 4096)["device_write_bytes_per_client_byte"]
        ),
        unit="B/B",
        hint="The same column.",
        why="The data sheet of the code says 1.5. A small write changes a stripe of six chunks, and "
        "each of the six stores writes its log.",
    )
    yield Question(
        "depth",
        "By which factor does the rate of reads grow from depth 1 to depth 64?",
        lambda: d.at_depth[64]["iops"] / d.at_depth[1]["iops"],
        hint="Two of the numbers just printed.",
        why=lambda x: (
            f"Not 64 but {x:.1f}: beyond some depth requests only wait for each other."
        ),
    )
    yield Question(
        "what depth costs",
        "And by which factor does the mean latency grow?",
        lambda: d.at_depth[64]["latency_mean_ns"] / d.at_depth[1]["latency_mean_ns"],
        hint="Little's law connects both factors: 64 = factor of the rate × factor of the latency.",
        why="The product of both factors is 64, whatever the cluster.",
    )
