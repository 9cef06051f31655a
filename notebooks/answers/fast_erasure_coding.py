"""Lesson 10: fast erasure coding."""

import stripesim
from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Fast erasure coding"
NUMBERS = {"k": (4, 6, 8), "m": (2, 3), "size_bytes": (4096, 8192, 16384)}
RUBRIC = (
    ("a workload with its sizes, and the paths that its writes take by release", 4),
    ("the crossover size, predicted and simulated", 4),
    ("what the new release does not help, and why", 2),
)
CHUNK = 4096


def questions(d: Given) -> Questions:
    """Questions; the lesson hands over `read`, `write` and `sizes`: timelines by release."""
    size = stripesim.format_size(d.size_bytes)
    yield Question(
        "classic read",
        f"A classic read of 4 KiB under RS({d.k},{d.m}) with chunks of 4 KiB: how many shards are read?",
        lambda: d.k,
        tolerance=0.0,
        hint="Classic reads fetch the whole stripe.",
        why="All k data chunks, though one would do.",
    )
    yield Question(
        "partial read",
        "RS(6,3): by which factor is the read of 4 KiB faster with partial reads?",
        lambda: d.read["squid"].latency_ns / d.read["tentacle"].latency_ns,
        hint="Two of the latencies printed above.",
        why="One message pair instead of five, one drive instead of six, and no waiting for the slowest.",
    )
    yield Question(
        "delta by hand",
        f"Parity delta: one data chunk of RS({d.k},{d.m}) changes. How many shards are read, and how many "
        "written, together?",
        lambda: 2 * (1 + d.m),
        tolerance=0.0,
        hint="Old data chunk and old parities in, new ones out.",
        why="The old chunk and m old parities are read, the new ones written: k does not matter.",
    )
    yield Question(
        "bytes saved",
        "RS(6,3), overwrite of 4 KiB: by which factor do the devices read fewer bytes with the delta?",
        lambda: (
            d.write["squid"].totals()["device_read_bytes"]
            / d.write["tentacle"].totals()["device_read_bytes"]
        ),
        hint="device_read_bytes of both timelines.",
    )
    yield Question(
        "messages saved",
        "And by which factor are there fewer messages?",
        lambda: (
            d.write["squid"].totals()["messages"]
            / d.write["tentacle"].totals()["messages"]
        ),
        hint="messages of both timelines.",
        why="Shards that do not change are not asked and get no transaction.",
    )
    yield Question(
        "which method",
        f"Which method does `tentacle` choose for an overwrite of {size} under RS(6,3)? (full stripe, "
        "read-modify-write, reconstruct, parity delta)",
        lambda: d.sizes[d.size_bytes].method,
        hint="Count the shards that each method reads: delta 1 per chunk written and all parities, "
        "reconstruct the data chunks that are not written.",
        why=lambda _: (
            f"It reads {d.sizes[d.size_bytes].shard_reads} shards and writes "
            f"{d.sizes[d.size_bytes].shard_writes}."
        ),
    )
    yield Question(
        "the crossover",
        f"RS({d.k},{d.m}): from how many changed chunks on does reconstruct read fewer shards than the "
        "delta?",
        lambda: next(
            changed for changed in range(1, d.k + 1) if d.k - changed < changed + d.m
        ),
        tolerance=0.0,
        hint="Delta reads changed + m shards, reconstruct k − changed.",
        why=lambda x: f"k − c < c + m holds from c = {x} on.",
    )
    yield Question(
        "what remains",
        "RS(6,3), overwrite of 4 KiB under `tentacle`: how many times as long as 3-replication's does it "
        "take?",
        lambda: d.write["tentacle"].latency_ns / d.copies.latency_ns,
        hint="Two of the latencies printed last.",
        why="The read before the write remains, and one more shard to commit.",
    )
