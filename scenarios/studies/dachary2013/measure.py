"""Measure this machine's kernels for the study.

``python -m stripesim.scenarios.studies.dachary2013.measure FOLDER`` wrote the shipped ``measured.csv`` and
``measured.json`` (its provenance). With a path to the measurements of Ceph's plugins (``kernels.csv``) as a
second argument, it reduces that file to the shipped ``ceph16_kernels.csv`` instead.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stripesim.calibration.kernels import isal, jerasure
from stripesim.calibration.kernels.against_ceph import ceph_rows
from stripesim.calibration.kernels.bench import COLD_BYTES, benchmark, sweep_sizes
from stripesim.calibration.kernels.measure import measure
from stripesim.scenarios.studies import kernels
from stripesim.sim.observe.progress import OnStep, print_step, silent

STUDY = "dachary2013"
CASE_BYTES = 1 << 20
"""Data of one call in the source [B]."""
SCHEME = "rs:6,2"
# 2 + 1 replaces the source's example code. Both flat XOR codes and Reed-Solomon have 10 + 5.
FURTHER_SCHEMES = ("rs:2,1", "rs:10,5", "lrc:4,4,2")
# Shapes and chunk sizes [B] for comparing raw kernels with Ceph's plugins.
RAW_SHAPES = (
    (6, 2, 4096),
    (6, 2, 174784),
    (6, 3, 4096),
    (6, 3, 174784),
    (10, 4, 4096),
    (10, 4, 104864),
)
# Columns of the rows that ship.
COLUMNS = tuple(kernels.shipped(STUDY).columns)


def measure_here(
    progress: OnStep = silent,
) -> list[dict[str, Any]]:
    """Measure every case of the study's figures and claims in one run, with the keys `COLUMNS`."""
    rows = benchmark([SCHEME], sorted({*sweep_sizes(6), CASE_BYTES}), progress=progress)
    if jerasure.available():
        progress("jerasure")
        rows += _warm(jerasure.measure_cauchy_good(6, 2, CASE_BYTES))
    for scheme in FURTHER_SCHEMES:
        progress(scheme)
        rows += _warm(measure([scheme], [CASE_BYTES]))
    if isal.available():
        progress("kernel by vector extension")
        for k, m, chunk_bytes in RAW_SHAPES:
            for variant in ("sse", "avx", "avx2", "avx512"):
                rows += _warm(
                    isal.measure_raw([(k, m)], [chunk_bytes], variant=variant)
                )
    return [{name: row[name] for name in COLUMNS} for row in rows]


def _warm(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "buffers": "warm", "cores": 1, "roofline": None} for row in rows]


def provenance(*, now: bool) -> dict[str, Any]:
    """Return what measured the kernels: this machine now, or the rows that ship."""
    return kernels.provenance(
        STUDY,
        "measure",
        now=now,
        cold_bytes=COLD_BYTES,
        note="Times are processor times; the parts on all cores are wall times on a shared machine.",
    )


def main(arguments: Sequence[str]) -> None:
    """Measure and write."""
    folder, *plugins = map(Path, arguments)
    if plugins:
        kernels.write_rows(
            folder / "ceph16_kernels.csv", _warm(ceph_rows(plugins[0])), COLUMNS
        )
        return
    rows = measure_here(print_step)
    kernels.write(folder, STUDY, rows, provenance(now=True))


if __name__ == "__main__":
    main(sys.argv[1:])
