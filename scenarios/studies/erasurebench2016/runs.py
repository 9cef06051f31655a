"""What the claims need: one function for each table or figure of the source, each giving result rows."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.studies.base import Setting
from stripesim.scenarios.studies.erasurebench2016 import codes as coding
from stripesim.scenarios.studies.erasurebench2016 import (
    fit,
    kernels,
    parameters,
    sequences,
)
from stripesim.scenarios.studies.erasurebench2016.codes import K, codes, explanations
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.systems.kv_proxy.plan import Writes, even_owners, keys_of
from stripesim.sim.systems.kv_proxy.proxy import SET, SequenceRun

CODES = ("NC", "RS", "LRC")
NODES = fit.STORE_NODES
NS_PER_S = 1e9
BIN_S = {"6": 5, "7": 20}
"""Sampling interval of the traffic in Figures 6 and 7 [s]."""
FIGURE_4_KILLED = tuple(range(81))
REPEATS = 60
DEGRADED_KILLED = 5
SMALL_FILE_BYTES = 3 << 10
SMALL_FILES = 21


def seed_of(setting: Setting) -> int:
    """Seed of placements, kills and leaving nodes."""
    return int(setting.options.get("seed", 1))


def data_folder(setting: Setting) -> Path | None:
    """Folder of the project's data: the one given, else ../shared/data if it has the failure trace."""
    from stripesim.scenarios.studies.erasurebench2016.replay import TRACE

    if (given := setting.options.get("data")) is not None:
        return Path(given)
    folder = Path("../shared/data")
    return folder if (folder / TRACE).is_file() else None


def storage_rows(_setting: Setting) -> Iterator[Row]:
    """Table I: keys and bytes of the three archives."""
    model = parameters.aggregation()
    for name in sequences.ARCHIVES:
        file_bytes = sequences.archive(name)
        writes = sequences.archive_writes(name)
        for code in CODES:
            keys = keys_of(writes, model, width=codes()[code].width)
            yield {
                **_cell("storage", code, "write", int(file_bytes.sum())),
                "archive": name,
                "files": len(file_bytes),
                "keys": keys.count,
                "binary_bytes": keys.binary_bytes(model),
                "stored_bytes": keys.stored_bytes(model),
                "storage_overhead": codes()[code].width / K,
            }


def encoder_rows(setting: Setting) -> Iterator[Row]:
    """Table II: the source's encoders as fitted, and kernels measured on a machine of today."""
    theirs = {"backend": "the source's, in Java"}
    for code in CODES:
        for size in fit.FILE_MB:
            rate = (
                size
                * sequences.MEGABYTE
                / fit.encode_seconds(parameters.proxy(), code, size)
            )
            cell = _cell("encoders", code, "encode", size * sequences.MEGABYTE)
            yield {**cell, "throughput_bytes_per_s": rate, **theirs}
    for code in fit.DECODE:
        rate = NS_PER_S / parameters.proxy().read_ns_per_byte(code)
        yield {
            **_cell("encoders", code, "decode", None),
            "throughput_bytes_per_s": rate,
            **theirs,
        }
    for row in kernels.rows(bool(setting.options.get("measure"))):
        yield {
            **_cell(
                "kernels", kernels.SCHEMES[row["scheme"]], row["op"], row["size_bytes"]
            ),
            "throughput_bytes_per_s": row["bytes_per_s"],
            "backend": row["backend"],
            "erasures": row["erasures"],
            "copy_seconds": row["copy_seconds_median"],
        }


def latency_rows(setting: Setting) -> Iterator[Row]:
    """Figure 3: writing 16 MiB into stores of 20 to 100 nodes, and a file of 3 KiB."""
    for code in CODES:
        for nodes in fit.LATENCY_NODES:
            seconds = fit.file_seconds(
                None,
                code,
                fit.LATENCY_BYTES,
                op="write",
                fuse=True,
                nodes=nodes,
                engine=setting.engine,
            )
            yield {
                **_cell("latency", code, "write", fit.LATENCY_BYTES),
                "nodes": nodes,
                "simulated_s": seconds,
                "latency_p50_ns": seconds * NS_PER_S,
            }
    each = np.arange(SMALL_FILES, dtype=np.int64)
    size = np.full_like(each, SMALL_FILE_BYTES)
    stripes = np.full_like(each, -(-SMALL_FILE_BYTES // K))
    files = sequences.stored(
        Writes(each, size, stripes, 0 * each), "LRC", nodes=NODES, seed=seed_of(setting)
    )
    run = sequences.run_write(files, engine=setting.engine)
    # A file takes one row of keys; the last key's answer ends it.
    ends = run.completed_ns[run.operations.kinds == SET].reshape(SMALL_FILES, -1)[:, -1]
    yield {
        **_cell("small files", "LRC", "write", SMALL_FILE_BYTES),
        "nodes": NODES,
        "simulated_s": run.elapsed_ns / NS_PER_S,
        "latency_p50_ns": float(np.median(np.diff(ends))),
    }


def availability_rows(setting: Setting) -> Iterator[Row]:
    """Figure 4: files readable against nodes killed, by simulation and exactly, with other decoders too."""
    where: dict[str, Any] = {"nodes": NODES, "killed": FIGURE_4_KILLED}
    for name in sequences.ARCHIVES:
        writes = sequences.archive_writes(name)
        for code in (*codes().values(), *explanations().values()):
            files = keys_of(writes, parameters.aggregation(), width=code.width).files
            shares = coding.simulated(
                code, files, repeats=REPEATS, seed=seed_of(setting), **where
            )
            exact = coding.expected(code, np.bincount(files), **where)
            low, high = np.quantile(shares, (0.05, 0.95), axis=0)
            for index, killed in enumerate(FIGURE_4_KILLED):
                yield {
                    **_cell("availability", code.name, "read", None),
                    "scheme": code.scheme,
                    "archive": name,
                    "killed_fraction": killed / NODES,
                    "available": float(shares[:, index].mean()),
                    "available_exact": float(exact[index]),
                    "available_p05": float(low[index]),
                    "available_p95": float(high[index]),
                }


def throughput_rows(setting: Setting) -> Iterator[Row]:
    """Figure 5: rate of writing and reading a lone file, through the file system and directly."""
    for way in ("FUSE", "Direct"):
        for op in ("write", "read"):
            for code in CODES:
                for size in (
                    megabytes * sequences.MEGABYTE for megabytes in fit.FILE_MB
                ):
                    seconds = fit.file_seconds(
                        None,
                        code,
                        size,
                        op=op,
                        fuse=way == "FUSE",
                        engine=setting.engine,
                    )
                    yield {
                        **_cell("throughput", code, op, size),
                        "way": way,
                        "simulated_s": seconds,
                        "throughput_bytes_per_s": size / seconds,
                    }


def traffic_rows(setting: Setting) -> Iterator[Row]:
    """Figure 6: httpd written, read, and read with 5 % of the nodes killed; traffic in bins of 5 s."""
    rng = np.random.default_rng([seed_of(setting), DEGRADED_KILLED])
    killed = rng.permutation(NODES)[:DEGRADED_KILLED]
    for code in ("RS", "LRC"):
        files = sequences.stored_archive(
            "httpd", code, nodes=NODES, seed=seed_of(setting)
        )
        sources = degraded_sources(files, killed)
        degraded = redirected(files, killed, rng)
        for op, run in (
            ("write", sequences.run_write(files, engine=setting.engine)),
            ("read", sequences.run_read(files, engine=setting.engine)),
            (
                "degraded read",
                sequences.run_read(degraded, sources=sources, engine=setting.engine),
            ),
        ):
            unreadable = (
                sum(not chosen for chosen in sources) if op == "degraded read" else 0
            )
            yield from _traffic(run, code, op, unreadable)


def _traffic(run: SequenceRun, code: str, op: str, unreadable: int) -> Iterator[Row]:
    bins = run.binned(int(BIN_S["6"] * NS_PER_S))
    seconds = run.elapsed_ns / NS_PER_S
    base = {
        **_cell("traffic", code, op, None),
        "simulated_s": seconds,
        "requests": len(run.operations),
    }
    yield {
        **base,
        "throughput_bytes_per_s": float(bins.sum()) / seconds,
        "peak_bin_bytes": int(bins.max()),
        "mean_bin_bytes": float(bins.mean()),
        "unreadable_rows": unreadable,
    }
    for index, size_bytes in enumerate(bins.tolist()):
        at_s = float(index * BIN_S["6"])
        yield {
            **base,
            "experiment": "traffic series",
            "at_s": at_s,
            "bin_bytes": size_bytes,
        }


def degraded_sources(
    files: sequences.Stored, killed: IntArray
) -> list[tuple[int, ...]]:
    """Positions read for each row of keys when some nodes are dead; empty where a row is lost."""
    dead = np.isin(files.nodes_of_keys, killed)
    scheme = codes()[files.code].scheme
    return [
        read_positions(scheme, frozenset(np.flatnonzero(row).tolist())) for row in dead
    ]


@lru_cache(maxsize=1 << 14)
def read_positions(scheme: str, lost: frozenset[int]) -> tuple[int, ...]:
    """Positions from which a stripe is read without the lost ones; empty if it cannot be."""
    code = parse_scheme(scheme)
    whole: dict[str, Any] = {
        "offset_bytes": 0,
        "length_bytes": code.k,
        "object_size_bytes": code.k,
    }
    return coding.positions_read(
        lambda: code.plan_read(**whole, geometry=code.geometry(1), missing=lost)
    )


def redirected(
    files: sequences.Stored, killed: IntArray, rng: np.random.Generator
) -> sequences.Stored:
    """The same keys where the dead nodes' slots have been given to others: who is asked for what is lost."""
    dead = np.isin(files.nodes_of_keys, killed)
    alive = np.setdiff1d(np.arange(files.nodes), killed)
    slots = files.slots.copy()
    # Any slot of the node that took over will do: only the node matters to a request.
    first_slot = np.searchsorted(even_owners(files.nodes), alive)
    slots[dead] = first_slot[rng.integers(0, len(alive), size=int(dead.sum()))]
    return replace(files, slots=slots)


def replay_rows(setting: Setting) -> Iterator[Row]:
    """Figure 7: the websites02 trace, from the trace itself or from the plotted points."""
    from stripesim.scenarios.studies.erasurebench2016 import replay

    data = data_folder(setting)
    if data is None:
        events = replay.plotted_events()
        source = "the points that the source plots"
    else:
        events = replay.traced_events(data)
        source = str(replay.TRACE)
    yield from replay.rows(
        events, source, bin_s=BIN_S["7"], seed=seed_of(setting), engine=setting.engine
    )


EXPERIMENTS: Mapping[str, Callable[[Setting], Iterator[Row]]] = {
    "storage": storage_rows,
    "encoders": encoder_rows,
    "availability": availability_rows,
    "latency": latency_rows,
    "throughput": throughput_rows,
    "traffic": traffic_rows,
    "replay": replay_rows,
}
NEEDED = tuple(name for name in EXPERIMENTS if name != "replay")
"""What the ledger is computed from."""


def _cell(experiment: str, code: str, op: str, size_bytes: int | None) -> Row:
    return {
        "experiment": experiment,
        "code": code,
        "scheme": codes()[code].scheme if code in codes() else code,
        "op": op,
        "pattern": "seq",
        "block_size_bytes": size_bytes,
    }
