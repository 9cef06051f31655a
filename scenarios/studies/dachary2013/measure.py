"""Measure this machine's kernels for the study.

``python -m stripesim.scenarios.studies.dachary2013.measure FOLDER`` writes ``measured.csv`` and
``measured.json``
(what measured them); the two that ship were made so. With a path to the measurements of Ceph's plugins
(``kernels.csv``) as a second argument, ``ceph16.csv`` is reduced from it.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.calibration.kernels import isal as kernel_raw
from stripesim.calibration.kernels import jerasure as kernel_jerasure
from stripesim.calibration.kernels.bench import COLD_BYTES, benchmark, sweep_sizes
from stripesim.calibration.kernels.ceph_plugins import ceph_rows
from stripesim.calibration.kernels.codec import library_versions
from stripesim.calibration.kernels.measure import measure
from stripesim.calibration.kernels.store import cpu_description

CASE_BYTES = 1 << 20
"""Data of one call in the source [B]."""
SCHEME = "rs:6,2"
STAND_IN = "rs:2,1"
# The flat XOR codes come in few shapes; this is one that Reed-Solomon has too.
XOR_SHAPE = "rs:10,5"
LOCAL = "lrc:4,4,2"
# What the raw kernels are compared with Ceph's plugins on: shape and bytes of a chunk.
RAW_SHAPES = ((6, 2, 4096), (6, 2, 174784), (6, 3, 4096), (6, 3, 174784), (10, 4, 4096), (10, 4, 104864))
COLUMNS = (
    *(
        "backend",
        "scheme",
        "op",
        "erasures",
        "size_bytes",
        "buffers",
        "cores",
        "seconds_median",
        "seconds_p10",
    ),
    *("seconds_p90", "bytes_per_s", "copy_seconds_median", "roofline", "verified"),
)


def measure_here(progress: Callable[[str], None] | None = None) -> list[dict[str, Any]]:
    """Every case of the study's figures and claims, in one run.

    Returns
    -------
    list of dict
        With the keys `COLUMNS`; see `stripesim.calibration.kernels.bench.benchmark`.
    """
    sizes = sorted({*sweep_sizes(6), CASE_BYTES})
    rows = benchmark([SCHEME], sizes, progress=progress)
    if kernel_jerasure.available():
        if progress is not None:
            progress("jerasure")
        rows += [
            row | {"buffers": "warm", "cores": 1, "roofline": None}
            for row in kernel_jerasure.measure_cauchy_good(6, 2, CASE_BYTES)
        ]
    for scheme in (STAND_IN, XOR_SHAPE, LOCAL):
        if progress is not None:
            progress(scheme)
        rows += [
            row | {"buffers": "warm", "cores": 1, "roofline": None} for row in measure([scheme], [CASE_BYTES])
        ]
    if kernel_raw.available():
        if progress is not None:
            progress("kernel by vector extension")
        for k, m, chunk_bytes in RAW_SHAPES:
            for variant in ("sse", "avx", "avx2", "avx512"):
                rows += [
                    row | {"buffers": "warm", "cores": 1, "roofline": None}
                    for row in kernel_raw.measure_raw([(k, m)], [chunk_bytes], variant=variant)
                ]
    return [{name: row[name] for name in COLUMNS} for row in rows]


def frame_of(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """The rows as a table."""
    return pl.DataFrame([{name: row.get(name) for name in COLUMNS} for row in rows], infer_schema_length=None)


def provenance_here() -> dict[str, Any]:
    """What measured: processor, versions, day."""
    return {
        "basis": "measured",
        "command": "python -m stripesim.scenarios.studies.dachary2013.measure",
        "cpu": cpu_description(),
        "versions": library_versions(),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "cold_bytes": COLD_BYTES,
        "note": "Times are processor times; the parts on all cores are wall times on a shared machine.",
    }


def main(arguments: Sequence[str]) -> None:
    """Measure and write."""
    folder = Path(arguments[0])
    if len(arguments) > 1:
        reduced = [
            row | {"buffers": "warm", "cores": 1, "roofline": None} for row in ceph_rows(Path(arguments[1]))
        ]
        frame_of(reduced).write_csv(folder / "ceph16.csv")
    rows = measure_here(lambda words: print(words, file=sys.stderr))
    frame_of(rows).write_csv(folder / "measured.csv")
    (folder / "measured.json").write_text(json.dumps(provenance_here(), indent=1) + "\n", encoding="utf-8")


__all__ = ["CASE_BYTES", "COLUMNS", "frame_of", "main", "measure_here", "provenance_here"]


if __name__ == "__main__":
    main(sys.argv[1:])
