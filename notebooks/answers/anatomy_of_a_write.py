"""Lesson 2: anatomy of a write."""

import stripesim
from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Anatomy of a write"
NUMBERS = {"size_bytes": (1024, 4096, 8192), "k": (4, 8, 10)}
RUBRIC = (
    ("all steps of the chosen path named in order, with the reason for each", 4),
    ("the latency split by category compared with lesson 2's write", 3),
    ("one change proposed, predicted and simulated", 3),
)


def questions(d: Given) -> Questions:
    """Questions; the lesson hands over `copies`, `coded`, `fresh` and `stripe`."""
    size = stripesim.format_size(d.size_bytes)
    yield Question(
        "bytes read",
        f"How many bytes do the devices read before RS(6,3) can overwrite {size}?",
        lambda: int(d.coded.totals()["device_read_bytes"]),
        unit="B",
        tolerance=0.01,
        hint="Parity is computed over all data chunks of the stripe; a chunk is 4 KiB.",
        why=lambda x: (
            f"A whole stripe, {x // 4096} chunks of 4 KiB: parity is computed over all of it."
        ),
    )
    yield Question(
        "bytes read by another code",
        f"And before RS({d.k},2) could, with the same chunks?",
        lambda: d.k * 4096,
        unit="B",
        tolerance=0.01,
        hint="The same rule with another k.",
        why=lambda _: f"{d.k} chunks of 4 KiB. Wider codes store less and read more.",
    )
    yield Question(
        "messages",
        "How many messages does RS(6,3) send for one write?",
        lambda: int(d.coded.totals()["messages"]),
        unit="messages",
        tolerance=0.01,
        hint="Count the pairs: with the client; with each other shard for the read, the write, the "
        "roll-forward.",
        why=lambda x: (
            "Two with the client; with each other shard a sub-read, a sub-write and a roll-forward, each "
            f"with its reply. Together {x}; 3-replication needs {int(d.copies.totals()['messages'])}."
        ),
    )
    yield Question(
        "where the time goes",
        "On what does the RS(6,3) write spend most of its latency? (client, network, cpu, coding, ssd, "
        "pause, wait)",
        lambda: max(
            d.coded.latency_by_category_ns(),
            key=lambda name: d.coded.latency_by_category_ns()[name],
        ),
        hint="`coded.latency_by_category_ns()` has the numbers.",
        why=lambda x: (
            f"{x}: {d.coded.latency_by_category_ns()[x] / 1e3:,.0f} µs of {d.coded.latency_ns / 1e3:,.0f} µs."
        ),
    )
    yield Question(
        "the arithmetic",
        "Which share of the RS(6,3) latency is the arithmetic of the code itself?",
        lambda: 100 * d.coded.latency_by_category_ns()["coding"] / d.coded.latency_ns,
        unit="%",
        tolerance=0.3,
        hint="The category coding over the whole latency.",
        why="The code is cheap; what it does to the path is not.",
    )
    yield Question(
        "assumed",
        "How many of the parameters in this timeline are assumed, because no source was found?",
        lambda: sum(
            number["provenance"] == "assumed" for number in d.coded.parameters.values()
        ),
        tolerance=0.0,
        hint="Each entry of `coded.parameters` has a provenance.",
        why=lambda x: (
            f"{x} of {len(d.coded.parameters)}. A model is honest if it says so."
        ),
    )
    yield Question(
        "first write",
        "By which factor is the first write into a new object faster than the overwrite?",
        lambda: d.coded.latency_ns / d.fresh.latency_ns,
        hint="Two of the latencies just printed.",
        why="No old stripe has to be read, nor kept for a roll-back.",
    )
    yield Question(
        "bytes per byte",
        "A full stripe of 24 KiB: how many bytes do the devices write for each byte of the client?",
        lambda: d.stripe.totals()["device_write_bytes"] / (6 * 4096),
        unit="B/B",
        hint="device_write_bytes of the full stripe, over its size.",
        why="1.5 for data and parities, the rest is metadata and logs.",
    )
