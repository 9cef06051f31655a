"""Lesson 2: anatomy of a write."""

import stripesim
from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Anatomy of a write"
NUMBERS = {"size_bytes": (1024, 4096, 8192), "k": (4, 8, 10)}
RUBRIC = (
    ("all steps of the chosen path named in order, with the reason for each", 4),
    ("the latency by category, compared with the write of lesson 2", 3),
    ("one change proposed, predicted and simulated", 3),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `copies`, `coded`, `fresh` and `stripe`."""
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
        f"And before RS({d.k},2) can overwrite as much, with the same chunk size?",
        lambda: d.k * 4096,
        unit="B",
        tolerance=0.01,
        hint="Apply the same rule with another k.",
        why=lambda _: (
            f"It reads {d.k} chunks of 4 KiB. Wider codes store less and read more."
        ),
    )
    yield Question(
        "messages",
        "How many messages does RS(6,3) send for one write?",
        lambda: int(d.coded.totals()["messages"]),
        unit="messages",
        tolerance=0.01,
        hint="Count request–reply pairs: one with the client, and three with each other shard (read, write, "
        "roll-forward).",
        why=lambda x: (
            "The client exchanges two. Each other shard gets a sub-read, a sub-write and a "
            "roll-forward, each "
            f"with a reply. The total is {x}. 3-replication needs {int(d.copies.totals()['messages'])}."
        ),
    )
    yield Question(
        "where the time goes",
        "Which category takes most of the latency of the RS(6,3) write? (client, network, cpu, coding, ssd, "
        "pause, wait)",
        lambda: max(
            d.coded.latency_by_category_ns(),
            key=lambda name: d.coded.latency_by_category_ns()[name],
        ),
        hint="`coded.latency_by_category_ns()` returns the numbers.",
        why=lambda x: (
            f"{x}: {d.coded.latency_by_category_ns()[x] / 1e3:,.0f} µs of {d.coded.latency_ns / 1e3:,.0f} µs."
        ),
    )
    yield Question(
        "the arithmetic",
        "What share of the RS(6,3) latency does the arithmetic of the code take?",
        lambda: 100 * d.coded.latency_by_category_ns()["coding"] / d.coded.latency_ns,
        unit="%",
        tolerance=0.3,
        hint="Divide the category `coding` by the latency.",
        why="The arithmetic is cheap. The extra steps that the code adds to the path are not.",
    )
    yield Question(
        "assumed",
        "How many parameters of this timeline are assumed, for lack of a source?",
        lambda: sum(
            number["provenance"] == "assumed" for number in d.coded.parameters.values()
        ),
        tolerance=0.0,
        hint="Each entry of `coded.parameters` has a provenance.",
        why=lambda x: f"{x} of {len(d.coded.parameters)}. An honest model lists them.",
    )
    yield Question(
        "first write",
        "By what factor is the first write into a new object faster than the overwrite, on an image "
        "without an object map?",
        lambda: d.coded.latency_ns / d.fresh.latency_ns,
        hint="Divide two of the latencies just printed.",
        why="There is no old stripe to read, and none to keep for a rollback.",
    )
    yield Question(
        "bytes per byte",
        "When the client writes a full stripe of 24 KiB, how many bytes do the devices write per "
        "client byte?",
        lambda: d.stripe.totals()["device_write_bytes"] / (6 * 4096),
        unit="B/B",
        hint="Divide `device_write_bytes` of the full stripe by its size.",
        why="Data and parities account for 1.5. The rest is metadata and logs.",
    )
