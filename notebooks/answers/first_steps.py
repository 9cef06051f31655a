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
    ("a scenario of a real or purchasable cluster, with its source", 3),
    ("a bottleneck predicted with a reason before the run", 3),
    ("one changed key, with its effect in numbers and the reason", 4),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `rows` and `at_depth`."""
    size = stripesim.format_size(d.size_bytes)

    def cell(scheme: str, op: str, size_bytes: int = d.size_bytes) -> dict[str, Any]:
        return row_of(d.rows, scheme=scheme, op=op, block_size_bytes=size_bytes)

    yield Question(
        "Little's law on paper",
        f"A cluster has {d.depth} requests in flight, and each takes {d.latency_us} µs on average. How many "
        "does it complete per second?",
        lambda: d.depth / d.latency_us * 1e6,
        unit="requests/s",
        tolerance=0.02,
        hint="In flight = rate × latency.",
        why=lambda x: f"{d.depth} / {d.latency_us} µs = {x:,.0f} requests/s.",
    )
    yield Question(
        "copies over code",
        f"For {size} writes, what is the ratio of 3-replication's rate to that of RS(4,2)?",
        lambda: cell("rep:3", "write")["iops"] / cell("rs:4,2", "write")["iops"],
        hint="Divide two cells of the rate column.",
        why="Lesson 2 takes such a write apart.",
    )
    yield Question(
        "Little's law",
        f"Use the rate and the mean latency of {size} reads under 3-replication: how many requests "
        "are in flight?",
        lambda: (
            cell("rep:3", "read")["iops"]
            * cell("rep:3", "read")["latency_mean_ns"]
            / 1e9
        ),
        unit="requests",
        hint="Rate × latency, with the latency in seconds: 1 ms is 0.001 s.",
        why="The scenario asks for a queue depth of 64. The difference comes from the start and the "
        "end of the run.",
    )
    yield Question(
        "amplification",
        "Under 3-replication with 4 KiB writes, how many bytes do the devices write per client byte?",
        lambda: float(
            cell("rep:3", "write", 4096)["device_write_bytes_per_client_byte"]
        ),
        unit="B/B",
        hint="The table has a column for it.",
        why=lambda x: (
            f"The three replicas account for 3. The other {x - 3:.2f} are the metadata and the log of "
            "each store."
        ),
    )
    yield Question(
        "amplification of a code",
        "And under RS(4,2) with 4 KiB writes?",
        lambda: float(
            cell("rs:4,2", "write", 4096)["device_write_bytes_per_client_byte"]
        ),
        unit="B/B",
        hint="The same column.",
        why="The storage overhead of the code is only 1.5. But a small write changes a stripe of six "
        "chunks, and "
        "each of the six stores writes its log.",
    )
    yield Question(
        "depth",
        "By what factor does the read rate grow from depth 1 to depth 64?",
        lambda: d.at_depth[64]["iops"] / d.at_depth[1]["iops"],
        hint="Divide two of the numbers just printed.",
        why=lambda x: (
            f"It grows {x:.1f}-fold, not 64-fold: beyond some depth, requests only wait for each other."
        ),
    )
    yield Question(
        "what depth costs",
        "And by what factor does the mean latency grow?",
        lambda: d.at_depth[64]["latency_mean_ns"] / d.at_depth[1]["latency_mean_ns"],
        hint="Little's law connects both factors: 64 = rate factor × latency factor.",
        why="The product of both factors is 64, whatever the cluster.",
    )
