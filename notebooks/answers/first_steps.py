"""Lesson 1: first steps."""

from typing import Any

import stripesim
from stripesim.notebooks.teach import Given, Question, Questions, row_of

TITLE = "First steps"
NUMBERS = {
    "hosts": range(6, 13),
    "queue": range(40, 97, 2),
    "deep": range(12, 41),
    "large_kib": range(16, 129, 8),
    "depth": range(8, 65),
    "latency_us": range(210, 900, 10),
    "load_mb": range(110, 400, 25),
}
RUBRIC = (
    ("a scenario of a real or purchasable cluster, with its source", 3),
    ("a bottleneck predicted with a reason before the run", 3),
    ("one changed key, with its effect in numbers and the reason", 4),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `rows` and `at_depth`."""
    large = stripesim.format_size(d.large_kib << 10)

    def cell(scheme: str, op: str, size_bytes: int) -> dict[str, Any]:
        return row_of(d.rows, scheme=scheme, op=op, block_size_bytes=size_bytes)

    def amplification(scheme: str) -> float:
        return float(cell(scheme, "write", 4096)["device_write_bytes_per_client_byte"])

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
        "For 4 KiB writes, how many more requests per second does 3-replication complete than RS(4,2)?",
        lambda: (
            cell("rep:3", "write", 4096)["iops"] - cell("rs:4,2", "write", 4096)["iops"]
        ),
        unit="requests/s",
        tolerance=0.02,
        hint="Subtract two cells of the rate column.",
        why="Lesson 2 takes such a write apart.",
    )
    yield Question(
        "Little's law",
        f"Use the rate and the mean latency of {large} reads under 3-replication: how many requests "
        "are in flight?",
        lambda: (
            cell("rep:3", "read", d.large_kib << 10)["iops"]
            * cell("rep:3", "read", d.large_kib << 10)["latency_mean_ns"]
            / 1e9
        ),
        unit="requests",
        tolerance=0.02,
        hint="Rate × latency, with the latency in seconds: 1 ms is 0.001 s.",
        why=f"The scenario asks for a queue depth of {d.queue}. The difference comes from the start "
        "and the end of the run.",
    )
    yield Question(
        "amplification",
        f"Under 3-replication, clients write {d.load_mb} MB/s in blocks of 4 KiB. How many MB/s do "
        "the devices write?",
        lambda: d.load_mb * amplification("rep:3"),
        unit="MB/s",
        tolerance=0.02,
        hint="The table has a column for the bytes written to drives per client byte.",
        why=lambda x: (
            f"Each client byte becomes {x / d.load_mb:.2f}. The three replicas account for 3 of them. "
            "The others are the metadata and the log of each store."
        ),
    )
    yield Question(
        "amplification of a code",
        "And under RS(4,2), with the same load?",
        lambda: d.load_mb * amplification("rs:4,2"),
        unit="MB/s",
        tolerance=0.02,
        hint="The same column.",
        why=lambda x: (
            f"Each client byte becomes {x / d.load_mb:.2f}. The storage overhead of the code is only "
            "1.5. But a small write changes a stripe of six chunks, and each of the six stores writes "
            "its log."
        ),
    )
    yield Question(
        "depth",
        f"By what factor does the read rate grow from depth 1 to depth {d.deep}?",
        lambda: d.at_depth[d.deep]["iops"] / d.at_depth[1]["iops"],
        tolerance=0.02,
        hint="Divide two of the numbers just printed.",
        why=lambda x: (
            f"It grows {x:.1f}-fold, not {d.deep}-fold: beyond some depth, requests only wait for "
            "each other."
        ),
    )
    yield Question(
        "what depth costs",
        "And by what factor does the mean latency grow?",
        lambda: (
            d.at_depth[d.deep]["latency_mean_ns"] / d.at_depth[1]["latency_mean_ns"]
        ),
        tolerance=0.02,
        hint=f"Little's law connects both factors: {d.deep} = rate factor × latency factor.",
        why=f"The product of both factors is about {d.deep}, whatever the cluster.",
    )
