"""The rows of the study: Ceph's own benchmark, and kernels of one machine, recorded or measured now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.models.kernel.buffers import EncodeBufferModel
from stripesim.scenarios.studies.parameters import changed_model
from stripesim.scenarios.studies.tasks import Row

_PACKAGE = "stripesim.scenarios.studies.dachary2013"
_TYPES = {"roofline": pl.Float64, "copy_seconds_median": pl.Float64, "verified": pl.Boolean}


def shipped_rows(name: str) -> pl.DataFrame:
    """A table that ships: ``ceph16.csv``, Ceph's plugins, or ``measured.csv``, one machine's kernels."""
    return pl.read_csv((files(_PACKAGE) / name).read_bytes(), schema_overrides=_TYPES)


def shipped_provenance() -> dict[str, Any]:
    """What measured the kernels that ship."""
    found: dict[str, Any] = json.loads((files(_PACKAGE) / "measured.json").read_text("utf-8"))
    return found


def provenance_here() -> dict[str, Any]:
    """What measures kernels on this machine."""
    from stripesim.scenarios.studies.dachary2013 import measure

    return measure.provenance_here()


def buffers() -> EncodeBufferModel:
    """What the simulator charges around a call of a kernel."""
    from stripesim.calibration.kernels.buffers import ceph_buffers

    return changed_model(ceph_buffers(), "encode_buffers")


def ceph_rows(against: Path | None) -> list[Row]:
    """Ceph's plugins: the rows that ship, or Ceph's own benchmark or a recorded output of it.

    Raises
    ------
    stripesim.calibration.kernels.against_ceph.AgainstError
        If ``against`` cannot be run or read.
    """
    if against is None:
        return [{**row, "source": "ceph16"} for row in shipped_rows("ceph16.csv").to_dicts()]
    from stripesim.calibration.kernels.against_ceph import ceph_rows_against
    from stripesim.scenarios.studies.dachary2013.measure import COLUMNS

    return [
        {
            **dict.fromkeys(COLUMNS),
            **{name: value for name, value in row.items() if name in COLUMNS},
            "backend": _plugin(row["backend"]),
            "buffers": "warm",
            "cores": 1,
            "roofline": None,
            "verified": None,
            "source": "against",
        }
        for row in ceph_rows_against(against)
    ]


def kernel_rows(measure_now: bool) -> list[Row]:
    """The kernels of one machine: the rows that ship, or this one's, measured now.

    Raises
    ------
    stripesim.models.coding.errors.CodecError
        If a measurement is asked for and pyeclib is absent.
    """
    found = shipped_rows("measured.csv").to_dicts()
    if measure_now:
        from stripesim.scenarios.studies.dachary2013.measure import measure_here

        found = measure_here()
    return [{**row, "source": "measured"} for row in found]


def frame_of_cases(rows: Sequence[Sequence[Row]]) -> pl.DataFrame:
    """Put the rows of all tasks in one table, with the columns that every study's rows have."""
    frame = pl.DataFrame(
        [row for part in rows for row in part], infer_schema_length=None, schema_overrides=_TYPES
    )
    return frame.with_columns(pattern=pl.lit("seq"), block_size_bytes=pl.col("size_bytes").cast(pl.Int64))


def _plugin(backend: str) -> str:
    """The name that the claims use; the source's tables name the plugin and mean cauchy_good by jerasure."""
    name = backend.removeprefix("ceph ")
    return "jerasure:cauchy_good" if name == "jerasure" else name
