"""The kernel table of Ceph's own plugins, from the measured ``kernels.csv``."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.calibration.kernels.fit import table_from_rows
from stripesim.calibration.kernels.store import CEPH_TABLE
from stripesim.calibration.kernels.timing import row_of
from stripesim.models.kernel.cost import KernelTable, KernelTableError

_LIBRARY = "ceph-16.2.15"
_COLUMNS = ("lib", "backend", "technique", "k", "m", "op", "erasures", "iters", "cpu_s", "chunk_len", "time")


def ceph_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of Ceph's plugins, for each plugin and technique, code, operation, erasures and size.

    The file is laid out as ``ceph16/kernels.csv``; jerasure's reed_sol_van, Ceph's default then, comes first.
    Times are processor time over calls, median and extremes of the rounds, for the machine was shared. The
    size is k times the chunk, with the plugin's padding: cauchy_good with its packet size of 3,072 pads 24
    KiB to 576 KiB and encodes all of it. The source does not say whether the results were compared.
    """
    try:
        frame = pl.read_csv(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise KernelTableError(f"{path}: cannot read: {str(error).splitlines()[0]}") from None
    absent = [column for column in _COLUMNS if column not in frame.columns]
    if absent:
        raise KernelTableError(f"{path}: columns: missing {', '.join(absent)}")
    groups: dict[tuple[str, str, str, int, int], list[float]] = {}
    for raw in frame.filter(pl.col("lib") == _LIBRARY).iter_rows(named=True):
        backend, scheme = f"{raw['backend']}:{raw['technique']}", f"rs:{raw['k']},{raw['m']}"
        key = (backend, scheme, raw["op"], raw["erasures"], raw["k"] * raw["chunk_len"])
        groups.setdefault(key, []).append(raw["cpu_s"] / raw["iters"])
    if not groups:
        raise KernelTableError(f"{path}: lib: no row of {_LIBRARY}")
    rows = [
        row_of(*key, samples_s, verified=None)
        | {"seconds_p10": min(samples_s), "seconds_p90": max(samples_s)}
        for key, samples_s in groups.items()
    ]
    return sorted(rows, key=lambda row: row["backend"] != "jerasure:reed_sol_van")


def ceph_table_from(path: Path) -> KernelTable:
    """Fit the table of Ceph's plugins; parameters and errors as `ceph_rows`."""
    times_s = pl.read_csv(path).filter(pl.col("lib") == _LIBRARY)["time"].cast(pl.Float64)
    provenance: Mapping[str, Any] = {
        "basis": "measured",
        "command": "not stated; rows lib = ceph-16.2.15 of ceph16/kernels.csv, three rounds interleaved",
        "cpu": {"name": "not stated in the source"},
        "versions": {"ceph": "16.2.15"},
        "date": datetime.datetime.fromtimestamp(max(times_s.to_list()), tz=datetime.UTC).date().isoformat(),
        "note": (
            "Two sizes for each operation, so the line passes through both and its residuals say nothing; "
            "one call encodes the whole size. The copy cost was not measured."
        ),
    }
    return table_from_rows(ceph_rows(path), name=CEPH_TABLE, provenance=provenance)
