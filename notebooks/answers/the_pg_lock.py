"""Lesson 3: the PG lock."""

from typing import Any

import stripesim
from stripesim.notebooks.teach import Given, Question, Questions, row_of

TITLE = "The PG lock"
NUMBERS = {
    "k": range(4, 11),
    "m": (2, 3, 4),
    "queue": range(160, 257, 8),
    "middle_kib": range(8, 33, 4),
    "compared": ("middle", "large"),
    "size_kib": (64, 96, 128, 192, 256),
    "depth": range(72, 257, 8),
    "hold_us": range(1100, 4000, 100),
    "waiting": range(50, 300, 10),
    "object_mib": (1, 2, 8, 16),
}
RUBRIC = (
    ("P and the resulting throughput predicted before the run", 3),
    ("the change simulated and compared with the prediction in numbers", 3),
    ("the difference explained by an effect that the estimate omits", 4),
)

OBJECT_BYTES = 4 << 20
#: P is an approximation: counting both objects at the ends of a window gives one more.
_P_TOLERANCE = 0.1


def throughput(rows: Any, scheme: str, pattern: str, size_bytes: int) -> float:
    """Return the throughput of one cell [MB/s]."""
    cell = row_of(rows, scheme=scheme, pattern=pattern, block_size_bytes=size_bytes)
    return float(cell["throughput_bytes_per_s"]) / 1e6


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `rows`, `serial_s` and `freed`."""
    scheme = f"rs:{d.k},{d.m}"
    code = f"RS({d.k},{d.m})"
    middle_bytes = d.middle_kib * 1024
    compared_bytes = middle_bytes if d.compared == "middle" else 65536
    compared = stripesim.format_size(compared_bytes)
    middle = stripesim.format_size(middle_bytes)
    hold_ms = d.hold_us / 1e3
    groups_large = d.queue * 65536 / OBJECT_BYTES

    def gain(scheme: str) -> float:
        freed, locked = (
            throughput(rows, scheme, "seq", middle_bytes) for rows in (d.freed, d.rows)
        )
        return freed - locked

    def random_gain() -> float:
        random, sequential = (
            throughput(d.rows, scheme, pattern, middle_bytes)
            for pattern in ("rand", "seq")
        )
        return random / sequential

    yield Question(
        "groups at work",
        f"With {d.depth} sequential writes of {d.size_kib} KiB in flight, about how many placement groups "
        "work at once, by the formula for P?",
        lambda: d.depth * d.size_kib * 1024 / OBJECT_BYTES,
        tolerance=_P_TOLERANCE,
        hint="Compute the bytes in flight and the number of 4 MiB objects that they fill.",
        why="This is an approximation for a client that waits for its newest write. With less than 4 MiB "
        "in flight, its writes share about one lock in the whole cluster.",
    )
    yield Question(
        "latency under the lock",
        f"One write holds the lock for {hold_ms:g} ms, and {d.waiting} writes are in flight on "
        "it. What is their "
        "mean latency?",
        lambda: d.waiting * hold_ms,
        unit="ms",
        tolerance=0.02,
        hint="In a closed loop, every write waits until each of the others has held the lock once.",
        why=f"Little's law: latency = writes in flight / throughput, and throughput is 1 / {hold_ms:g} ms.",
    )
    yield Question(
        "the envelope",
        f"Estimate the throughput of sequential 4 KiB writes under {code}: P·b/s.",
        lambda: 4096 / d.serial_s / 1e6,
        unit="MB/s",
        tolerance=0.02,
        hint=f"{d.queue} writes of 4 KiB are at most 1 MiB, so P = 1. The serial time s is printed above.",
        why=lambda x: (
            f"The simulation gives {throughput(d.rows, scheme, 'seq', 4096):.2f} MB/s, "
            f"{throughput(d.rows, scheme, 'seq', 4096) / x:.2f} times as much."
        ),
    )
    yield Question(
        "the envelope at 64 KiB",
        f"At 64 KiB, {d.queue} writes are in flight. With the same s, by what factor does the "
        "estimate exceed the simulation? (below 1: it falls short)",
        lambda: (
            groups_large
            * 65536
            / d.serial_s
            / 1e6
            / throughput(d.rows, scheme, "seq", 65536)
        ),
        tolerance=0.03,
        hint=f"P = {d.queue}/64. Compute P·b/s with b = 65,536 bytes, and divide it by the cell of the "
        "table above.",
        why="A write of 64 KiB covers several chunks or stripes and holds the lock longer than s, and two "
        "objects may hash to the same placement group. Both make P·b/s too high. Writes in flight that do "
        "not end with an object are at work on one object more than P counts. That makes it too low.",
    )
    yield Question(
        "random over sequential",
        f"Under {code} at {compared}, by what factor are random writes faster than sequential ones?",
        lambda: (
            throughput(d.rows, scheme, "rand", compared_bytes)
            / throughput(d.rows, scheme, "seq", compared_bytes)
        ),
        tolerance=0.01,
        hint="Divide two cells of the table above.",
        why="Random writes spread over hundreds of placement groups.",
    )
    yield Question(
        "without the lock",
        f"How much throughput do sequential {middle} writes under {code} gain without the lock?",
        lambda: gain(scheme),
        unit="MB/s",
        tolerance=0.03,
        hint="Subtract the same cell of both tables.",
        why=lambda x: (
            f"That is {1 + x / throughput(d.rows, scheme, 'seq', middle_bytes):.1f} times as fast, and "
            f"random writes are {random_gain():.1f} times as fast. The lock explains the first factor. "
            "The rest remains, because the writes still meet at one primary, where one "
            "worker thread serves their group."
        ),
    )
    yield Question(
        "copies without the lock",
        "And how much does 3-replication gain?",
        lambda: gain("rep:3"),
        unit="MB/s",
        tolerance=0.03,
        hint="Subtract the same cell of both tables.",
        why=lambda x: (
            f"That is {1 + x / throughput(d.rows, 'rep:3', 'seq', middle_bytes):.1f} times as fast. "
            "A replicated write holds its lock for a much shorter time."
        ),
    )
    yield Question(
        "other objects",
        f"Now objects hold {d.object_mib} MiB instead of 4 MiB, and {d.depth} writes of 256 KiB "
        "are in flight. "
        "About how many groups work at once?",
        lambda: d.depth * 0.25 / d.object_mib,
        tolerance=_P_TOLERANCE,
        hint="Use the same formula with another object size.",
        why="Smaller objects put more groups to work, at the price of more objects.",
    )
