"""Lesson 10: fast erasure coding."""

import stripesim
from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Fast erasure coding"
NUMBERS = {
    "k": range(5, 11),
    "m": (2, 3, 4),
    "changed": (1, 2, 3, 4),
    "rate": range(510, 3000, 10),
    "other_rate": range(110, 900, 10),
    "reads": range(110, 990, 10),
    "commits": range(210, 990, 10),
    "other_k": range(7, 17),
    "other_m": (2, 3, 4),
    "unit_kib": (4, 8, 12, 16, 20, 24, 32),
    "hidden_k": range(7, 17),
    "hidden_m": (2, 3, 4),
    "hidden_shard": range(1, 5),
    "degraded_k": range(4, 15),
    "degraded_m": (2, 3, 4),
}
RUBRIC = (
    ("a workload with its sizes, and the method of each write by release", 4),
    ("the crossover size, predicted and simulated", 4),
    ("requests that do not gain from the new release, and the reason", 2),
)
CHUNK = 4096


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on the timelines `read`, `write`, `sizes` and `copies`."""
    code = f"RS({d.k},{d.m})"
    size = stripesim.format_size(d.changed * CHUNK)
    hidden_parities = range(d.hidden_k, d.hidden_k + d.hidden_m)
    hidden_shards = ", ".join(map(str, (d.hidden_shard, *hidden_parities)))

    def read_bytes(release: str) -> int:
        return int(d.write[release].totals()["device_read_bytes"])

    def messages(release: str) -> int:
        return int(d.write[release].totals()["messages"])

    yield Question(
        "classic read",
        f"How many shard reads per second do {d.rate:,} classic 4 KiB reads per second cause under "
        f"RS({d.other_k},{d.other_m}) with chunks of 4 KiB?",
        lambda: d.rate * d.other_k,
        unit="shard reads/s",
        tolerance=0.01,
        hint="Classic reads fetch the whole stripe.",
        why="Each reads all k data chunks, although one would suffice.",
    )
    yield Question(
        "partial read",
        f"A job reads {d.reads} thousand blocks of 4 KiB under {code}, one after the other, none of them "
        "at its primary. How many seconds do partial reads (`tentacle`) save it, compared with classic "
        "reads (`squid`)?",
        lambda: (
            (d.read["squid"].latency_ns - d.read["tentacle"].latency_ns) / 1e6 * d.reads
        ),
        unit="s",
        tolerance=0.01,
        hint="Subtract two of the latencies printed above.",
        why=lambda _: (
            f"The read is {d.read['squid'].latency_ns / d.read['tentacle'].latency_ns:.1f} times "
            "as fast. It takes one "
            f"drive instead of {d.k}, and it does not wait for the slowest of {d.k}."
        ),
    )
    yield Question(
        "delta by hand",
        f"{d.other_rate} writes per second each change one data chunk of "
        f"RS({d.other_k},{d.other_m}) by parity delta. "
        "How many shard reads and shard writes per second is that in total?",
        lambda: d.other_rate * 2 * (1 + d.other_m),
        unit="shard operations/s",
        tolerance=0.01,
        hint="The old data chunk and parities are read, and the new ones written.",
        why="It reads the old chunk and m old parities and writes the new ones, so k does not matter.",
    )
    yield Question(
        "bytes saved",
        f"Clients overwrite {d.rate:,} times per second 4 KiB under {code}. How many MB/s less do "
        "the devices read "
        "with `tentacle` than with `squid`?",
        lambda: d.rate * (read_bytes("squid") - read_bytes("tentacle")) / 1e6,
        unit="MB/s",
        tolerance=0.01,
        hint="Compare `device_read_bytes` of both timelines. 1 KiB is 1,024 B.",
        why=lambda _: (
            f"A write reads {read_bytes('tentacle'):,} B instead of {read_bytes('squid'):,} B."
        ),
    )
    yield Question(
        "messages saved",
        "And how many messages per second does it save?",
        lambda: d.rate * (messages("squid") - messages("tentacle")),
        unit="messages/s",
        tolerance=0.01,
        hint="Compare `messages` of both timelines.",
        why=lambda _: (
            f"A write sends {messages('tentacle')} messages instead of {messages('squid')}. Shards at other "
            "OSDs that do not change receive no message and no transaction."
        ),
    )
    yield Question(
        "which method",
        f"Clients overwrite {d.other_rate} times per second {size}, aligned to chunks, under "
        f"{code} with `tentacle`. "
        "How many shard reads and shard writes per second does its choice of method cause in total?",
        lambda: (
            d.other_rate
            * (d.sizes[d.changed].shard_reads + d.sizes[d.changed].shard_writes)
        ),
        unit="shard operations/s",
        tolerance=0.01,
        hint="Count the shards that each method reads. A delta reads one per written chunk and all parities. "
        "Reconstruct reads the data chunks that are not written.",
        why=lambda _: (
            f"It chooses {d.sizes[d.changed].method}: it reads {d.sizes[d.changed].shard_reads} "
            "shards and writes "
            f"{d.sizes[d.changed].shard_writes}."
        ),
    )
    yield Question(
        "the crossover",
        f"Under RS({d.other_k},{d.other_m}) with chunks of {d.unit_kib} KiB, what is the smallest "
        "write of whole "
        "chunks for which reconstruct reads fewer shards than the delta?",
        lambda: d.unit_kib * crossover(d.other_k, d.other_m),
        unit="KiB",
        tolerance=0.0,
        hint="With c changed chunks, a delta reads c + m shards and reconstruct reads k − c.",
        why=lambda x: f"The smallest c with k − c < c + m is {x // d.unit_kib}.",
    )
    yield Question(
        "name the write",
        f"A write in a pool with fast erasure coding reads data from shards {hidden_shards} and "
        "then writes data to "
        "the same shards. Which scheme is it? (such as rs:6,3)",
        lambda: f"rs:{d.hidden_k},{d.hidden_m}",
        hint="Shards are counted from 0, data shards first. A delta reads and writes what changes.",
        why=f"One data chunk changed by parity delta, and all {d.hidden_m} parities with it. The "
        "first parity is "
        f"shard {d.hidden_k}.",
    )
    yield Question(
        "name the read",
        f"A pool has {d.degraded_k + d.degraded_m} shards per object. While shard 1 is down, a "
        "client reads 4 KiB of "
        f"its data, and the primary reads {d.degraded_k} other shards and decodes. Which scheme is it?",
        lambda: f"rs:{d.degraded_k},{d.degraded_m}",
        hint="How many shards does Reed–Solomon need to decode one that is missing?",
        why=f"Any k shards restore the others, so k = {d.degraded_k}.",
    )
    yield Question(
        "what remains",
        f"A database commits {d.commits} thousand 4 KiB overwrites, one after the other, under "
        "`tentacle`. How many "
        f"seconds longer does it take under {code} than under 3-replication?",
        lambda: (
            (d.write["tentacle"].latency_ns - d.copies.latency_ns) / 1e6 * d.commits
        ),
        unit="s",
        tolerance=0.01,
        hint="Subtract two of the latencies printed last.",
        why=f"The read before the write remains, and {2 + d.m} shards have to commit instead of 3: the "
        f"changed chunk, {d.m} parities, and shard 0, which keeps the object info.",
    )


def crossover(k: int, m: int) -> int:
    """Return the smallest number of changed chunks at which reconstruct reads fewer shards."""
    return next(changed for changed in range(1, k + 1) if k - changed < changed + m)
