"""What the claims need: one function for each table or figure of the source, each giving result rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stripesim.models.coding import DataLossError, parse_scheme
from stripesim.scenarios.studies.erasurebench2016 import fit, kernels, parameters
from stripesim.scenarios.studies.erasurebench2016.availability import expected, simulated
from stripesim.scenarios.studies.erasurebench2016.codes import K, StripeCode, codes, explanations
from stripesim.scenarios.studies.erasurebench2016.sequences import (
    ARCHIVES,
    MEGABYTE,
    Stored,
    archive,
    run_read,
    run_write,
    stored,
    stored_archive,
)
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.systems.kv_proxy.plan import Writes, even_owners, extraction, keys_of
from stripesim.sim.systems.kv_proxy.proxy import SET, SequenceRun

Row = dict[str, Any]
CODES = ("NC", "RS", "LRC")
NODES = 100
NS_PER_S = 1e9
BIN_S = {"6": 5, "7": 20}
"""Sampling interval of the traffic in Figures 6 and 7 [s]."""
FIGURE_4_KILLED = tuple(range(81))
REPEATS = 60
DEGRADED_KILLED = 5
SMALL_FILE_BYTES = 3 << 10
SMALL_FILES = 21


@dataclass(frozen=True)
class Setting:
    """How the experiments are run.

    Parameters
    ----------
    engine : str
        ``compiled`` or ``simpy``.
    seed : int
        Of all draws.
    kernels : polars.DataFrame, optional
        Rows of `kernels.measure_here`; None: those that ship.
    data : path, optional
        Folder of the project's data, for the failure trace; None: the points that the source plots.
    """

    engine: str = "compiled"
    seed: int = 1
    kernels: pl.DataFrame | None = None
    data: Path | None = None


Experiment = Callable[[Setting], Iterator[Row]]


def storage_rows(_setting: Setting) -> Iterator[Row]:
    """Table I: keys and bytes of the three archives."""
    model = parameters.aggregation()
    for name in ARCHIVES:
        packed = archive(name)
        file_bytes = packed.file_bytes
        writes = extraction(file_bytes, model, k=K)
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
    for code in CODES:
        for megabytes in fit.FILE_MB:
            seconds = fit.encode_seconds(parameters.proxy(), code, megabytes)
            yield {
                **_cell("encoders", code, "encode", megabytes * MEGABYTE),
                "throughput_bytes_per_s": megabytes * MEGABYTE / seconds,
                "backend": "the source's, in Java",
            }
    for code, per_byte in (("RS", "read_rs_ns_per_byte"), ("LRC", "read_lrc_ns_per_byte")):
        yield {
            **_cell("encoders", code, "decode", None),
            "throughput_bytes_per_s": NS_PER_S / getattr(parameters.proxy(), per_byte),
            "backend": "the source's, in Java",
        }
    measured = kernels.shipped() if setting.kernels is None else setting.kernels
    for row in measured.iter_rows(named=True):
        code = kernels.SCHEMES[row["scheme"]]
        yield {
            **_cell("kernels", code, row["op"], row["size_bytes"]),
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
                None, code, fit.LATENCY_BYTES, op="write", fuse=True, nodes=nodes, engine=setting.engine
            )
            yield {
                **_cell("latency", code, "write", fit.LATENCY_BYTES),
                "nodes": nodes,
                "simulated_s": seconds,
                "latency_p50_ns": seconds * NS_PER_S,
            }
    each = np.arange(SMALL_FILES, dtype=np.int64)
    writes = Writes(
        each, np.full_like(each, SMALL_FILE_BYTES), np.full_like(each, -(-SMALL_FILE_BYTES // K)), 0 * each
    )
    files = stored(writes, "LRC", nodes=NODES, seed=setting.seed)
    run = run_write(files, engine=setting.engine)
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
    model = parameters.aggregation()
    for name in ARCHIVES:
        writes = extraction(archive(name).file_bytes, model, k=K)
        for code in (*codes().values(), *explanations().values()):
            keys = keys_of(writes, model, width=code.width)
            shares = simulated(
                code, keys.files, nodes=NODES, killed=FIGURE_4_KILLED, repeats=REPEATS, seed=setting.seed
            )
            exact = expected(code, np.bincount(keys.files), nodes=NODES, killed=FIGURE_4_KILLED)
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
    for fuse in (True, False):
        for op in ("write", "read"):
            for code in CODES:
                for megabytes in fit.FILE_MB:
                    seconds = fit.file_seconds(
                        None, code, megabytes * MEGABYTE, op=op, fuse=fuse, engine=setting.engine
                    )
                    yield {
                        **_cell("throughput", code, op, megabytes * MEGABYTE),
                        "way": "FUSE" if fuse else "Direct",
                        "simulated_s": seconds,
                        "throughput_bytes_per_s": megabytes * MEGABYTE / seconds,
                    }


def traffic_rows(setting: Setting) -> Iterator[Row]:
    """Figure 6: httpd written, read, and read with 5 % of the nodes killed; traffic in bins of 5 s."""
    rng = np.random.default_rng([setting.seed, DEGRADED_KILLED])
    killed = rng.permutation(NODES)[:DEGRADED_KILLED]
    for code in ("RS", "LRC"):
        files = stored_archive("httpd", code, nodes=NODES, seed=setting.seed)
        sources = degraded_sources(files, killed)
        degraded = redirected(files, killed, rng)
        for op, run in (
            ("write", run_write(files, engine=setting.engine)),
            ("read", run_read(files, engine=setting.engine)),
            ("degraded read", run_read(degraded, sources=sources, engine=setting.engine)),
        ):
            yield from _traffic(run, code, op, unreadable=sum(not chosen for chosen in sources))


def _traffic(run: SequenceRun, code: str, op: str, *, unreadable: int) -> Iterator[Row]:
    bins = run.binned(int(BIN_S["6"] * NS_PER_S))
    seconds = run.elapsed_ns / NS_PER_S
    base = {**_cell("traffic", code, op, None), "simulated_s": seconds, "requests": len(run.operations)}
    yield {
        **base,
        "throughput_bytes_per_s": float(bins.sum()) / seconds,
        "peak_bin_bytes": int(bins.max()),
        "mean_bin_bytes": float(bins.mean()),
        "unreadable_rows": unreadable if op == "degraded read" else 0,
    }
    for index, size_bytes in enumerate(bins.tolist()):
        yield {
            **base,
            "experiment": "traffic series",
            "at_s": float(index * BIN_S["6"]),
            "bin_bytes": size_bytes,
        }


def degraded_sources(files: Stored, killed: IntArray) -> list[tuple[int, ...]]:
    """Positions read for each row of keys when some nodes are dead; empty where a row is lost."""
    dead = np.isin(files.nodes_of_keys, killed)
    scheme = codes()[files.code].scheme
    return [read_positions(scheme, frozenset(np.flatnonzero(row).tolist())) for row in dead]


@lru_cache(maxsize=1 << 14)
def read_positions(scheme: str, lost: frozenset[int]) -> tuple[int, ...]:
    """Positions from which a stripe is read without the lost ones; empty if it cannot be."""
    code = parse_scheme(scheme)
    try:
        plan = code.plan_read(
            offset_bytes=0,
            length_bytes=code.k,
            object_size_bytes=code.k,
            geometry=code.geometry(1),
            missing=lost,
        )
    except DataLossError:
        return ()
    return tuple(sorted({extent.shard for extent in plan.reads}))


def redirected(files: Stored, killed: IntArray, rng: np.random.Generator) -> Stored:
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

    if setting.data is None:
        events, source = replay.plotted_events(), "the points that the source plots"
    else:
        events, source = replay.traced_events(setting.data), str(replay.TRACE)
    yield from replay.rows(events, source, bin_s=BIN_S["7"], seed=setting.seed, engine=setting.engine)


EXPERIMENTS: Mapping[str, Experiment] = {
    "storage": storage_rows,
    "encoders": encoder_rows,
    "availability": availability_rows,
    "latency": latency_rows,
    "throughput": throughput_rows,
    "traffic": traffic_rows,
    "replay": replay_rows,
}


def _cell(experiment: str, code: str, op: str, size_bytes: int | None) -> Row:
    known: Mapping[str, StripeCode] = codes()
    return {
        "experiment": experiment,
        "code": code,
        "scheme": known[code].scheme if code in known else code,
        "op": op,
        "pattern": "seq",
        "block_size_bytes": size_bytes,
    }
