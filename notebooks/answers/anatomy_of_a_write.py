"""Lesson 2: anatomy of a write."""

from collections.abc import Callable
from typing import Any

import stripesim
from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Anatomy of a write"
NUMBERS = {
    "size_bytes": (1024, 2048, 3072, 4096),
    "k": range(4, 11),
    "m": (2, 3, 4),
    "unit_kib": (4, 8, 12, 16),
    "other_k": range(5, 14),
    "other_unit_kib": (4, 8, 16, 32),
    "rate": range(210, 1000, 10),
    "hidden_k": range(4, 15),
    "hidden_m": (2, 3, 4),
    "hidden_copies_writes": range(30, 100),
    "hidden_coded_writes": range(10, 60),
}
RUBRIC = (
    ("all steps of the chosen path named in order, with the reason for each", 4),
    ("the latency by category, compared with the write of lesson 2", 3),
    ("one change proposed, predicted and simulated", 3),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `copies`, `coded`, `fresh` and `stripe`."""
    size = stripesim.format_size(d.size_bytes)
    code = f"RS({d.k},{d.m})"
    stripe_kib = d.k * d.unit_kib

    def spent_ns() -> dict[str, int]:
        spent: dict[str, int] = d.coded.latency_by_category_ns()
        return spent

    yield Question(
        "bytes read",
        f"How many bytes do the devices read before {code} can overwrite {size}? A chunk is "
        f"{d.unit_kib} KiB.",
        lambda: int(d.coded.totals()["device_read_bytes"]),
        unit="B",
        tolerance=0.01,
        hint="Parity is computed over all data chunks of the stripe.",
        why=lambda _: (
            f"A whole stripe, {d.k} chunks of {d.unit_kib} KiB: parity is computed over all of it."
        ),
    )
    yield Question(
        "bytes read by another code",
        f"And before RS({d.other_k},2) with chunks of {d.other_unit_kib} KiB can overwrite as much?",
        lambda: d.other_k * d.other_unit_kib * 1024,
        unit="B",
        tolerance=0.01,
        hint="Apply the same rule with another k.",
        why=f"It reads {d.other_k} chunks of {d.other_unit_kib} KiB. Wider codes store less and read more.",
    )
    yield Question(
        "messages",
        f"Clients send {d.rate} such writes per second to the {code} pool. How many messages per second "
        "does that cause, replies and roll-forwards included?",
        lambda: d.rate * int(d.coded.totals()["messages"]),
        unit="messages/s",
        tolerance=0.01,
        hint="Count request–reply pairs of one write: one with the client, one with each other shard for the "
        "write and one for the roll-forward, and one with each other data shard for the read.",
        why=lambda x: (
            "The client exchanges two. Each other shard gets a sub-write and a roll-forward, and each "
            "other data shard a sub-read, each with a reply. One write takes "
            f"{x // d.rate}, and with 3-replication {int(d.copies.totals()['messages'])}."
        ),
    )
    yield Question(
        "where the time goes",
        f"What share of the latency of the {code} write does its largest category take?",
        lambda: 100 * max(spent_ns().values()) / d.coded.latency_ns,
        unit="%",
        tolerance=0.01,
        hint="`coded.latency_by_category_ns()` returns the numbers.",
        why=lambda _: (
            f"It is {max(spent_ns(), key=spent_ns().__getitem__)}: "
            f"{max(spent_ns().values()) / 1e3:,.0f} µs of "
            f"{d.coded.latency_ns / 1e3:,.0f} µs."
        ),
    )
    yield Question(
        "the arithmetic",
        f"What share of the {code} latency does encoding take, with the copies and checksums around it?",
        lambda: 100 * spent_ns()["coding"] / d.coded.latency_ns,
        unit="%",
        tolerance=0.05,
        hint="Divide the category `coding` by the latency.",
        why=lambda _: (
            f"The arithmetic itself takes {kernel_ns(d.coded) / 1e3:.1f} µs, "
            f"{100 * kernel_ns(d.coded) / d.coded.latency_ns:.2g} % of the latency. The rest of "
            f"{spent_ns()['coding'] / 1e3:,.0f} µs are copies and checksums of the whole stripe."
        ),
    )
    yield Question(
        "assumed",
        "Some parameters are assumed, for lack of a source. By how much would doubling all of them "
        "lengthen the steps on the critical path, in per cent of the latency? (Add up the "
        "contributions. Negative: it shortens them.)",
        lambda: 100 * assumed_ns(d.coded) / d.coded.latency_ns,
        unit="%",
        tolerance=0.02,
        hint="Add up the numbers just printed, and divide by the latency.",
        why="An honest model lists its assumptions and their weight. Here the largest is the size of a "
        "network frame: larger frames need fewer headers.",
    )
    yield Question(
        "name the scheme",
        f"A log of shard operations shows one small overwrite: data is read from shards 0 to "
        f"{d.hidden_k - 1}, and then each of shards 0 to {d.hidden_k + d.hidden_m - 1} commits a "
        "transaction. Which scheme is it? (such as rep:3 or rs:6,3)",
        lambda: f"rs:{d.hidden_k},{d.hidden_m}",
        hint="Shards are counted from 0, data shards first.",
        why=f"The primary reads the {d.hidden_k} data shards of the stripe, and writes these and "
        f"{d.hidden_m} parities.",
    )
    yield Question(
        "name the requests",
        "A host serves a pool with 3 replicas and a pool with RS(6,3), and clients overwrite 4 KiB at a "
        f"time, in chunks of 4 KiB. The OSDs read {6 * d.hidden_coded_writes} chunks and commit "
        f"{9 * d.hidden_coded_writes + 3 * d.hidden_copies_writes} transactions with data. How many of the "
        "client writes went to the replicated pool?",
        lambda: d.hidden_copies_writes,
        unit="writes",
        tolerance=0.0,
        hint="Only one of the pools reads before it writes.",
        why=f"{d.hidden_coded_writes} writes under RS(6,3) explain all reads and nine commits each. "
        "The other commits are three per write.",
    )
    yield Question(
        "first write",
        "By how many microseconds is the first write into a new object faster than the overwrite, on an "
        "image without an object map?",
        lambda: (d.coded.latency_ns - d.fresh.latency_ns) / 1e3,
        unit="µs",
        tolerance=0.02,
        hint="Subtract two of the latencies just printed.",
        why="There is no old stripe to read, and none to keep for a rollback.",
    )
    yield Question(
        "bytes per byte",
        f"When the client writes a full stripe of {stripe_kib} KiB, how many bytes do the devices write per "
        "client byte?",
        lambda: d.stripe.totals()["device_write_bytes"] / (stripe_kib * 1024),
        unit="B/B",
        tolerance=0.01,
        hint="Divide `device_write_bytes` of the full stripe by its size.",
        why=f"Data and parities account for {(d.k + d.m) / d.k:.2f}. The rest is metadata and logs.",
    )


def kernel_ns(timeline: Any) -> float:
    """Return the time of the code's arithmetic on the critical path [ns]."""
    return _share_ns(timeline, lambda parameter: parameter == "kernel")


def assumed_ns(timeline: Any) -> float:
    """Sum what doubling each assumed parameter adds to the steps on the critical path [ns]."""
    return _share_ns(
        timeline,
        lambda parameter: timeline.parameters[parameter]["provenance"] == "assumed",
    )


def _share_ns(timeline: Any, is_counted: Callable[[str], bool]) -> float:
    """Sum the shares of some parameters in the steps on the critical path [ns]."""
    return float(
        sum(
            share.change_ns
            for index in timeline.path
            for share in timeline.steps[index].shares
            if is_counted(share.parameter)
        )
    )
