"""Lesson 3: the PG lock."""

from typing import Any

import stripesim
from stripesim.notebooks.teach import Given, Question, Questions, row_of

TITLE = "The PG lock"
NUMBERS = {"size_bytes": (4096, 16384, 65536), "depth": (64, 128, 256)}
RUBRIC = (
    ("P and the resulting throughput predicted before the run", 3),
    ("the change simulated and compared with the prediction in numbers", 3),
    ("the difference explained by an effect that the estimate omits", 4),
)

OBJECT_BYTES = 4 << 20


def throughput(rows: Any, scheme: str, pattern: str, size_bytes: int) -> float:
    """Return the throughput of one cell [MB/s]."""
    cell = row_of(rows, scheme=scheme, pattern=pattern, block_size_bytes=size_bytes)
    return float(cell["throughput_bytes_per_s"]) / 1e6


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `rows`, `serial_s` and `freed`."""
    size = stripesim.format_size(d.size_bytes)

    def gain(scheme: str) -> float:
        freed, locked = (
            throughput(rows, scheme, "seq", 4096) for rows in (d.freed, d.rows)
        )
        return freed / locked

    yield Question(
        "groups at work",
        f"With {d.depth} sequential writes of {size} in flight, how many placement groups work at once?",
        lambda: max(1.0, d.depth * d.size_bytes / OBJECT_BYTES),
        hint="Compute the bytes in flight and the number of 4 MiB objects that they touch (at least one).",
        why="Small writes share a single lock in the whole cluster, whatever their size.",
    )
    yield Question(
        "latency under the lock",
        f"One write holds the lock for 2 ms, and {d.depth} writes queue for it. What is their mean latency?",
        lambda: float(d.depth * 2),
        unit="ms",
        hint="In a closed loop, every write waits until each of the others has held the lock once.",
        why="Little's law: latency = writes in flight / throughput, and throughput is 1 / 2 ms.",
    )
    yield Question(
        "the envelope",
        "Estimate the throughput of sequential 4 KiB writes under RS(6,3): P·b/s.",
        lambda: 4096 / d.serial_s / 1e6,
        unit="MB/s",
        hint="256 writes of 4 KiB are 1 MiB, so P = 1. The serial time s is printed above.",
        why=lambda x: (
            f"The simulation gives {throughput(d.rows, 'rs:6,3', 'seq', 4096):.2f} MB/s, "
            f"{throughput(d.rows, 'rs:6,3', 'seq', 4096) / x:.2f} times as much."
        ),
    )
    yield Question(
        "the envelope at 64 KiB",
        "At 64 KiB, P = 4. With the same s, by what factor does the estimate exceed the simulation?",
        lambda: (
            4 * 65536 / d.serial_s / 1e6 / throughput(d.rows, "rs:6,3", "seq", 65536)
        ),
        hint="Compute P·b/s with P = 4 and b = 65,536 bytes, and divide it by the cell of the table above.",
        why="A write of 64 KiB covers three stripes and holds the lock longer than s, and two "
        "objects may hash to the same placement group. Both make P·b/s too high.",
    )
    yield Question(
        "random over sequential",
        f"Under RS(6,3) at {size}, by what factor are random writes faster than sequential ones?",
        lambda: (
            throughput(d.rows, "rs:6,3", "rand", d.size_bytes)
            / throughput(d.rows, "rs:6,3", "seq", d.size_bytes)
        ),
        hint="Divide two cells of the table above.",
        why="Random writes spread over hundreds of placement groups.",
    )
    yield Question(
        "without the lock",
        "By what factor do sequential 4 KiB writes under RS(6,3) speed up without the lock?",
        lambda: gain("rs:6,3"),
        hint="The same cell in both tables.",
        why="The lock explains the collapse. Another resource now limits the throughput.",
    )
    yield Question(
        "copies without the lock",
        "And by what factor does 3-replication speed up?",
        lambda: gain("rep:3"),
        hint="The same cell in both tables.",
        why="A replicated write holds its lock for a much shorter time, so it loses less to it.",
    )
    yield Question(
        "smaller objects",
        f"Now objects hold 1 MiB instead of 4 MiB, and {d.depth} writes of 64 KiB are in flight. How "
        "many groups "
        "work at once?",
        lambda: max(1.0, d.depth * 65536 / (1 << 20)),
        hint="Use the same formula with another object size.",
        why="Four times as many groups as before, at the price of four times as many objects.",
    )
