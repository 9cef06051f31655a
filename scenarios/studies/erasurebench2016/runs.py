"""One function for each table or figure of the source; each yields result rows."""

from collections.abc import Iterator
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
    replay,
    sequences,
)
from stripesim.scenarios.studies.erasurebench2016.codes import K, codes, explanations
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.systems.kv_proxy.plan import Writes, even_owners, keys_of
from stripesim.sim.systems.kv_proxy.proxy import SET, SequenceRun

CODES = ("NC", "RS", "LRC")
NODES = fit.STORE_NODES
LATENCY_NODES = (20, 40, 60, 80, 100)
FILE_MB = (4, 16, 64)
NS_PER_S = 1e9
BIN_S = {"6": 5, "7": 20}
"""Sampling interval of the traffic in Figures 6 and 7 [s]."""
FIGURE_4_KILLED = tuple(range(81))
REPEATS = 60
DEGRADED_KILLED = 5
SMALL_FILE_BYTES = 3 << 10
SMALL_FILES = 21


def seed_of(setting: Setting) -> int:
    """Return the seed of placements, kills and leaving nodes."""
    return int(setting.options.get("seed", 1))


def data_folder(setting: Setting) -> Path | None:
    """Return the folder of data: the option's, or ../shared/data if it has the failure trace."""
    if "data" in setting.options:
        return Path(setting.options["data"])
    folder = Path("../shared/data")
    return folder if (folder / replay.TRACE).is_file() else None


def storage_rows(_setting: Setting) -> Iterator[Row]:
    """Yield Table I: keys and bytes of the three archives."""
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
    """Yield Table II: the source's encoders as fitted, and kernels measured on a present machine."""
    theirs = {"backend": "the source's, in Java"}
    for code in CODES:
        for size in FILE_MB:
            took_s = fit.encode_seconds(parameters.proxy(), code, size)
            # Encoding that takes no time (an ablation) has no rate.
            rate = size * sequences.MEGABYTE / took_s if took_s else None
            cell = _cell("encoders", code, "encode", size * sequences.MEGABYTE)
            yield {**cell, "throughput_bytes_per_s": rate, **theirs}
    for code in ("RS", "LRC"):
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
    """Yield Figure 3: writes of 16 MiB into stores of 20 to 100 nodes, and of a 3 KiB file."""
    for code in CODES:
        for nodes in LATENCY_NODES:
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
    # A file is one row of keys and ends with the last key's answer.
    ends = run.completed_ns[run.operations.kinds == SET].reshape(SMALL_FILES, -1)[:, -1]
    yield {
        **_cell("small files", "LRC", "write", SMALL_FILE_BYTES),
        "nodes": NODES,
        "simulated_s": run.elapsed_ns / NS_PER_S,
        "latency_p50_ns": float(np.median(np.diff(ends))),
    }


def availability_rows(setting: Setting) -> Iterator[Row]:
    """Yield Figure 4: readable files by killed nodes, simulated and exact, also with other decoders."""
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
    """Yield Figure 5: rates of writing and reading a lone file, through the file system and directly."""
    for way in ("FUSE", "Direct"):
        for op in ("write", "read"):
            for code in CODES:
                for size in (megabytes * sequences.MEGABYTE for megabytes in FILE_MB):
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
    """Yield Figure 6: httpd written, read, and read with 5 % of the nodes killed, in bins of 5 s."""
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
            lost_rows = sources.count(()) if op == "degraded read" else 0
            yield from _traffic(run, code, op, lost_rows)


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
    """Return the positions read for each row of keys with some nodes dead, or none if a row is lost."""
    dead = np.isin(files.nodes_of_keys, killed)
    scheme = codes()[files.code].scheme
    return [
        read_positions(scheme, frozenset(np.flatnonzero(row).tolist())) for row in dead
    ]


@lru_cache(maxsize=1 << 14)
def read_positions(scheme: str, lost: frozenset[int]) -> tuple[int, ...]:
    """Return the positions from which a stripe is read without the lost ones, or none."""
    code = parse_scheme(scheme)
    return coding.positions_read(
        lambda: code.plan_read(
            offset_bytes=0,
            length_bytes=code.k,
            object_size_bytes=code.k,
            geometry=code.geometry(1),
            missing=lost,
        )
    )


def redirected(
    files: sequences.Stored, killed: IntArray, rng: np.random.Generator
) -> sequences.Stored:
    """Return the same keys after the dead nodes' slots moved to others."""
    dead = np.isin(files.nodes_of_keys, killed)
    alive = np.setdiff1d(np.arange(files.nodes), killed)
    slots = files.slots.copy()
    # Any slot of the new node will do: only the node matters to a request.
    first_slot = np.searchsorted(even_owners(files.nodes), alive)
    slots[dead] = first_slot[rng.integers(0, len(alive), size=int(dead.sum()))]
    return replace(files, slots=slots)


def replay_rows(setting: Setting) -> Iterator[Row]:
    """Yield Figure 7: the websites02 trace, from the trace itself or from the plotted points."""
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


def _cell(experiment: str, code: str, op: str, size_bytes: int | None) -> Row:
    return {
        "experiment": experiment,
        "code": code,
        "scheme": codes()[code].scheme if code in codes() else code,
        "op": op,
        "pattern": "seq",
        "block_size_bytes": size_bytes,
    }
