"""The gallery: requests to predict and play, and an explorer of a recorded grid, on pages that run anywhere.

`python docs/record.py gallery` records the grid. The requests are simulated when the documentation is built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import stripesim
from stripesim.notebooks.page_lessons import page_lessons, write_pages
from stripesim.scenarios.answers.engine_page.page import engine_page
from stripesim.scenarios.answers.explain.play import Prediction, play_page
from stripesim.scenarios.answers.sweep.explorer import (
    METRICS,
    explorer_of,
    explorer_page,
)

MARKER = "<!-- gallery -->"
LESSONS = "<!-- lessons in pages -->"
FOLDER = Path(__file__).resolve().parents[1] / "gallery"
GRID = FOLDER / "grid.csv"
SCENARIO = FOLDER / "grid.toml"

# The grid: schemes and kinds of requests are in the scenario, the rest is swept.
OVER: dict[str, list[Any]] = {
    "workload.queue_depth": [1, 4, 16, 64],
    "workload.block_sizes_bytes": ["4k", "16k", "64k", "256k"],
    "cluster.osds_per_host": [2, 4, 6, 8],
    "generation": ["squid", "tentacle"],
}
REPLICATIONS = 3

KIB = 1024
MIB = 1024 * KIB

# What `predict` makes of the requests: the answer and the reason, both from the simulation.
Answer = tuple[float, str]


@dataclass(frozen=True)
class Picture:
    """A page of the gallery: requests to play, and a question to answer before."""

    name: str
    title: str
    lesson: int
    requests: Callable[[], Sequence[Any]]
    question: str
    unit: str
    predict: Callable[[Sequence[Any]], Answer]


def _microseconds(request: Any) -> str:
    return f"{request.latency_ns / 1e3:,.0f} µs"


def _mebibytes(request: Any, counter: str) -> float:
    return float(request.totals().get(counter, 0) / MIB)


def _small_write(requests: Sequence[Any]) -> Answer:
    copies, coded = requests
    spent = coded.latency_by_category_ns()
    coding = spent.get("coding", 0) / coded.latency_ns
    why = (
        f"With three copies it takes {_microseconds(copies)}, under RS(6,3) "
        f"{_microseconds(coded)}. RS(6,3) reads "
        f"{coded.shard_reads} shards before it writes {coded.shard_writes}, and each step costs "
        f"messages and "
        f"processor time. Encoding, with its copies, takes {100 * coding:.1f} % of the latency."
    )
    return coded.latency_ns / copies.latency_ns, why


def _large_write(requests: Sequence[Any]) -> Answer:
    copies, coded = requests
    sent = _mebibytes(coded, "private_net_bytes")
    why = (
        f"The primary keeps one shard of 4/6 MiB and sends eight: 8 × 4/6 = 5.33 MiB, and "
        f"headers. Three copies send "
        f"two whole objects, {_mebibytes(copies, 'private_net_bytes'):.2f} MiB. The write takes "
        f"{_microseconds(coded)} under RS(6,3) and {_microseconds(copies)} with copies."
    )
    return sent, why


def _parity_delta(requests: Sequence[Any]) -> Answer:
    squid, tentacle = requests
    why = (
        f"Tentacle writes the chunk that changes and the three parities. Squid rewrites the "
        f"stripe: it reads "
        f"{squid.shard_reads} shards and writes {squid.shard_writes}. That is "
        f"{_microseconds(tentacle)} against "
        f"{_microseconds(squid)}."
    )
    return float(tentacle.shard_writes), why


def _small_read(requests: Sequence[Any]) -> Answer:
    squid, tentacle = requests
    why = (
        f"Squid reads a chunk of every data shard of the stripe, although the client wants one. "
        f"Tentacle reads "
        f"{tentacle.shard_reads}: {_microseconds(tentacle)} instead of {_microseconds(squid)}."
    )
    return float(squid.shard_reads), why


def _degraded_read(requests: Sequence[Any]) -> Answer:
    healthy, degraded = requests
    why = (
        f"The missing chunk is decoded from six others. The read takes "
        f"{_microseconds(degraded)}, with all shards "
        f"up {_microseconds(healthy)}: shards answer in parallel, so the latency grows less "
        f"than the work."
    )
    return float(degraded.shard_reads), why


def _local_repair(requests: Sequence[Any]) -> Answer:
    plain, local = requests
    why = (
        f"A shard holds a tenth of the object, 0.4 MiB. RS(10,4) reads ten shards, "
        f"{_mebibytes(plain, 'device_read_bytes'):.2f} MiB. LRC(10,6,5) reads the five others "
        f"of the local group, "
        f"5 × 0.4 MiB. It pays with more parities: 1.6 instead of 1.4 bytes stored per byte."
    )
    return _mebibytes(local, "device_read_bytes"), why


def _clay_repair(requests: Sequence[Any]) -> Answer:
    plain, clay = requests
    why = (
        f"Ten helpers send the primary a third of their shard, and it sends the rebuilt shard "
        f"on: 10 × 4/27 + 4/9 = "
        f"1.93 MiB, and headers. Under RS(9,3) eight send a whole shard: "
        f"{_mebibytes(plain, 'private_net_bytes'):.2f} MiB. "
        f"But Clay's pieces are smaller than a block, so drives read "
        f"{_mebibytes(clay, 'device_read_bytes'):.2f} MiB all the "
        f"same, one piece after another. With its arithmetic, timed in NumPy, it takes {_microseconds(clay)} "
        f"instead of {_microseconds(plain)}. A vectorised kernel would save up to "
        f"{clay.latency_by_category_ns()['coding'] / 1e3:,.0f} µs of that."
    )
    return _mebibytes(clay, "private_net_bytes"), why


def _small_object(requests: Sequence[Any]) -> Answer:
    copies, coded = (_stored_kib(request) for request in requests)
    transactions = [_transactions(request) for request in requests]
    why = (
        f"A classic pool pads the object to a whole stripe: 8 + 3 chunks of 4 KiB. Three copies "
        f"take {copies:g} KiB. Beside the data, the PUT updates the bucket index twice on three "
        f"OSDs. All shards commit {transactions[1]} transactions, with three copies "
        f"{transactions[0]}. An optimised pool (Tentacle) stores one chunk of data and three "
        f"parities, 16 KiB."
    )
    return coded, why


def _transactions(request: Any) -> int:
    """Count the transactions of a request, without the waits for the thread that submits them."""
    labels = (step.step.label for step in request.steps)
    return sum(label.rpartition(": ")[2] == "kv submit" for label in labels)


def _stored_kib(request: Any) -> float:
    """Return the data that all devices store for a request, without their logs [KiB]."""
    totals = request.totals()
    return float(totals["device_write_bytes"] - totals["device_log_bytes"]) / KIB


def _deleted_object(requests: Sequence[Any]) -> Answer:
    copies, coded = (
        float(request.totals()["device_write_bytes"]) / KIB for request in requests
    )
    why = (
        f"No data is written, only logs. The gateway updates the bucket index twice on three OSDs, before "
        f"and after eleven shards note the removal, and each shard rolls it forward. With three copies it "
        f"is {copies:.0f} KiB. The space of the data is free at once, that of tails only hours later."
    )
    return coded, why


def _listed_bucket(requests: Sequence[Any]) -> Answer:
    head, listed = requests
    processors = listed.latency_by_category_ns()["cpu"] / listed.latency_ns
    why = (
        f"The gateway does not know which shard has the next keys, so it asks all eleven for as many as "
        f"they may have of the 1,000, decodes and merges them. The HEAD takes {_microseconds(head)}, the "
        f"LIST {_microseconds(listed)}, {100 * processors:.0f} % of it on processors. Keys are in memory, so "
        f"drives do nothing."
    )
    return listed.latency_ns / head.latency_ns, why


def _lock(requests: Sequence[Any]) -> Answer:
    (coded,) = requests
    held_ns = sum(
        min(hold.end_ns, coded.latency_ns) - hold.start_ns
        for hold in coded.holds
        if hold.role == "pg.lock" and hold.start_ns < coded.latency_ns
    )
    why = (
        f"The lock is held for {held_ns / 1e3:,.0f} of {coded.latency_ns / 1e3:,.0f} µs. "
        f"Meanwhile no other write to the "
        f"placement group proceeds, so sequential writes, which meet in one group, queue."
    )
    return 100 * held_ns / coded.latency_ns, why


# Where one shard has the data, it is not the primary's: so it is for most requests.
PICTURES = (
    Picture(
        "small-write",
        "A 4 KiB write: three copies and RS(6,3)",
        2,
        lambda: stripesim.explain(
            "write", ["rep:3", "rs:6,3"], 4 * KIB, generation="squid"
        ),
        "A 4 KiB write under RS(6,3) takes how many times as long as with three copies?",
        "times as long",
        _small_write,
    ),
    Picture(
        "large-write",
        "A 4 MiB write: three copies and RS(6,3)",
        2,
        lambda: stripesim.explain(
            "write", ["rep:3", "rs:6,3"], 4 * MIB, generation="squid"
        ),
        "A client writes 4 MiB under RS(6,3). How much crosses the private network between the "
        "OSDs?",
        "MiB",
        _large_write,
    ),
    Picture(
        "lock",
        "The PG lock during a write",
        3,
        lambda: stripesim.explain(
            "write", "rs:6,3", 4 * KIB, scenario="koh2017", sets=["workload.requests=1"]
        ),
        "For what share of its latency does a 4 KiB write under RS(6,3) hold the lock of its "
        "placement group?",
        "%",
        _lock,
    ),
    Picture(
        "degraded-read",
        "A 4 KiB read while a shard is down",
        6,
        lambda: [
            *stripesim.explain("read", "rs:6,3", 4 * KIB, generation="tentacle", offset_bytes=4 * KIB),
            *stripesim.explain(
                "read", "rs:6,3", 4 * KIB, generation="tentacle",
                offset_bytes=4 * KIB, state="degraded",
            ),
        ],
        "A 4 KiB read wants a chunk of a shard that is down. How many shards of RS(6,3) does it "
        "read?",
        "shards",
        _degraded_read,
    ),
    Picture(
        "local-repair",
        "Repair: RS(10,4) and LRC(10,6,5)",
        6,
        lambda: stripesim.explain("repair", ["rs:10,4", "lrc:10,6,5"], 4 * MIB),
        "One shard of a 4 MiB object is lost. How much does LRC(10,6,5) read from drives to "
        "rebuild it?",
        "MiB",
        _local_repair,
    ),
    Picture(
        "clay-repair",
        "Repair: RS(9,3) and Clay(9,3,11)",
        6,
        lambda: stripesim.explain("repair", ["rs:9,3", "clay:9,3,11"], 4 * MIB),
        "One shard of a 4 MiB object is lost. How much does Clay(9,3,11) send between OSDs to "
        "rebuild it?",
        "MiB",
        _clay_repair,
    ),
    Picture(
        "small-read",
        "A 4 KiB read: Squid and Tentacle",
        10,
        lambda: stripesim.explain(
            "read", "rs:6,3", 4 * KIB, generation=["squid", "tentacle"], offset_bytes=8 * KIB
        ),
        "A client reads 4 KiB from an RS(6,3) pool of Squid. How many shards are read?",
        "shards",
        _small_read,
    ),
    Picture(
        "parity-delta",
        "A 4 KiB write: Squid and Tentacle",
        10,
        lambda: stripesim.explain(
            "write", "rs:6,3", 4 * KIB, generation=["squid", "tentacle"], offset_bytes=8 * KIB
        ),
        "A client overwrites 4 KiB in an RS(6,3) pool of Tentacle. How many shards get new data?",
        "shards",
        _parity_delta,
    ),
    Picture(
        "small-object",
        "A PUT of 4 KiB through a gateway: three copies and RS(8,3)",
        14,
        lambda: stripesim.explain(
            "put", ["rep:3", "rs:8,3"], 4 * KIB, generation="squid"
        ),
        "An S3 client stores an object of 4 KiB in a pool of RS(8,3) of Squid. How much do all "
        "drives together store?",
        "KiB",
        _small_object,
    ),
    Picture(
        "delete-object",
        "A DELETE of 4 KiB through a gateway: three copies and RS(8,3)",
        14,
        lambda: stripesim.explain(
            "delete", ["rep:3", "rs:8,3"], 4 * KIB, generation="squid"
        ),
        "An S3 client deletes an object of 4 KiB in a pool of RS(8,3) of Squid. How much do all "
        "drives together write?",
        "KiB",
        _deleted_object,
    ),
    Picture(
        "list-bucket",
        "A HEAD of an object, and a LIST of its bucket",
        14,
        lambda: [
            *stripesim.explain("head", "rep:3", 4 * KIB, generation="squid"),
            *stripesim.explain("list", "rep:3", 4 * KIB, generation="squid"),
        ],
        "The index of a bucket has eleven shards. A client lists 1,000 keys. How many times as long "
        "as a HEAD of one object does that take?",
        "times as long",
        _listed_bucket,
    ),
)  # fmt: skip


def links() -> str:
    """Return the list of pages for the gallery's own page."""
    lines = [
        f'| <a href="gallery/{one.name}.html">{one.title}</a> | {one.question} | {one.lesson} |'
        for one in PICTURES
    ]
    return "\n".join(["| picture | guess first | lesson |", "|---|---|---|", *lines])


def lesson_links() -> str:
    """Return the list of lessons that run in a page."""
    lines = [
        f'| {one.number} | <a href="gallery/lesson-{one.name}.html">{one.title}</a> | '
        f"{', '.join(question['name'] for question in one.questions)} |"
        for one in page_lessons()
    ]
    return "\n".join(["| lesson | page | questions |", "|---|---|---|", *lines])


def picture_page(picture: Picture) -> str:
    """Simulate the requests of a picture and return its page."""
    requests = picture.requests()
    answer, why = picture.predict(requests)
    shown = float(f"{answer:.3g}")
    prediction = Prediction(picture.question, picture.unit, shown, why)
    return play_page(requests, prediction)


def grid_page() -> str:
    """Return the explorer of the recorded grid."""
    recorded = pl.read_csv(GRID, infer_schema_length=None)
    explorer = explorer_of(recorded, list(OVER))
    assert explorer is not None, "the grid varies"
    scenario = stripesim.load_scenario(SCENARIO)
    return explorer_page(
        explorer,
        kind="A recorded grid",
        title="Replication or erasure coding?",
        introduction=f"{scenario.description}. Each client keeps its own queue. "
        "The failure domain is the host: each shard is on another host, so every scheme "
        "keeps its data when any two hosts fail. "
        f"Every cell is the mean of {REPLICATIONS} simulations. "
        "Move one slider at a time: what changes, and for which scheme?",
    )


def kept(aggregated: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of a sweep's means that the explorer shows, with six digits."""
    names = [*OVER, "scheme", "op", "pattern", "block_size_bytes"]
    names += ["replications", "steady", "bottleneck"]
    for metric in METRICS:
        names += [metric, f"{metric}_ci_low", f"{metric}_ci_high"]
    shown = aggregated.select(name for name in names if name in aggregated.columns)
    return shown.with_columns(pl.col(pl.Float64).round_sig_figs(6))


def write(folder: Path) -> list[Path]:
    """Write every page of the gallery into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {picture.name: picture_page(picture) for picture in PICTURES}
    pages["explorer"] = grid_page()
    pages["engine"] = engine_page()
    written = []
    for name, page in pages.items():
        path = folder / f"{name}.html"
        path.write_text(page, encoding="utf-8")
        written.append(path)
    return [*written, *write_pages(folder)]
