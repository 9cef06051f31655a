"""Lesson 10: fast erasure coding."""

import stripesim
from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Fast erasure coding"
NUMBERS = {"k": (4, 6, 8), "m": (2, 3), "size_bytes": (4096, 8192, 16384)}
RUBRIC = (
    ("a workload with its sizes, and the method of each write by release", 4),
    ("the crossover size, predicted and simulated", 4),
    ("requests that do not gain from the new release, and the reason", 2),
)
CHUNK = 4096


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on the timelines `read`, `write`, `sizes` and `copies`."""
    size = stripesim.format_size(d.size_bytes)
    yield Question(
        "classic read",
        f"How many shards does a classic 4 KiB read access under RS({d.k},{d.m}) with chunks of 4 KiB?",
        lambda: d.k,
        tolerance=0.0,
        hint="Classic reads fetch the whole stripe.",
        why="It reads all k data chunks, although one would suffice.",
    )
    yield Question(
        "partial read",
        "Under RS(6,3), by what factor do partial reads speed up a 4 KiB read?",
        lambda: d.read["squid"].latency_ns / d.read["tentacle"].latency_ns,
        hint="Divide two of the latencies printed above.",
        why="It takes one message pair instead of five and one drive instead of six, and it does not "
        "wait for the "
        "slowest of six.",
    )
    yield Question(
        "delta by hand",
        f"One data chunk of RS({d.k},{d.m}) changes by parity delta. What is the sum of shard reads "
        "and shard "
        "writes?",
        lambda: 2 * (1 + d.m),
        tolerance=0.0,
        hint="The old data chunk and parities are read, and the new ones written.",
        why="It reads the old chunk and m old parities and writes the new ones, so k does not matter.",
    )
    yield Question(
        "bytes saved",
        "For a 4 KiB overwrite under RS(6,3), by what factor does the delta reduce the bytes read "
        "from devices?",
        lambda: (
            d.write["squid"].totals()["device_read_bytes"]
            / d.write["tentacle"].totals()["device_read_bytes"]
        ),
        hint="Compare `device_read_bytes` of both timelines.",
    )
    yield Question(
        "messages saved",
        "And by what factor does it reduce the messages?",
        lambda: (
            d.write["squid"].totals()["messages"]
            / d.write["tentacle"].totals()["messages"]
        ),
        hint="Compare `messages` of both timelines.",
        why="Unchanged shards receive no message and no transaction.",
    )
    yield Question(
        "which method",
        f"Which method does `tentacle` choose for an overwrite of {size} under RS(6,3)? (full stripe, "
        "read-modify-write, reconstruct, parity delta)",
        lambda: d.sizes[d.size_bytes].method,
        hint="Count the shards that each method reads. A delta reads one per written chunk and all parities. "
        "Reconstruct reads the data chunks that are not written.",
        why=lambda _: (
            f"It reads {d.sizes[d.size_bytes].shard_reads} shards and writes "
            f"{d.sizes[d.size_bytes].shard_writes}."
        ),
    )
    yield Question(
        "the crossover",
        f"Under RS({d.k},{d.m}), what is the smallest number of changed chunks at which reconstruct "
        "reads fewer "
        "shards than the delta?",
        lambda: next(
            changed for changed in range(1, d.k + 1) if d.k - changed < changed + d.m
        ),
        tolerance=0.0,
        hint="With c changed chunks, a delta reads c + m shards and reconstruct reads k − c.",
        why=lambda x: f"The smallest c with k − c < c + m is {x}.",
    )
    yield Question(
        "what remains",
        "For a 4 KiB overwrite under `tentacle`, how many times as long as 3-replication does RS(6,3) take?",
        lambda: d.write["tentacle"].latency_ns / d.copies.latency_ns,
        hint="Divide two of the latencies printed last.",
        why="The read before the write remains, and one more shard has to commit.",
    )
