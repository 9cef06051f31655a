"""The rows of the study: Ceph's own benchmark, and kernels of one machine, recorded or measured now."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.models.kernel.buffers import EncodeBufferModel
from stripesim.scenarios.studies import kernels
from stripesim.scenarios.studies.parameters import changed_model
from stripesim.scenarios.studies.tasks import Row

STUDY = "dachary2013"


def shipped_rows(name: str) -> pl.DataFrame:
    """A table that ships: ``ceph16.csv``, Ceph's plugins, or ``measured.csv``, one machine's kernels."""
    return kernels.shipped(STUDY, name)


def provenance(measured_now: bool, against: Path | None) -> dict[str, Any]:
    """What measured the kernels, and where the rows of Ceph's plugins are from."""
    if measured_now:
        from stripesim.scenarios.studies.dachary2013.measure import provenance_here

        made = provenance_here()
    else:
        made = kernels.shipped_provenance(STUDY)
    return {
        "kernels": made,
        "ceph": str(against) if against else "ceph16/kernels.csv, Ceph 16.2.15",
    }


def buffers() -> EncodeBufferModel:
    """What the simulator charges around a call of a kernel."""
    from stripesim.calibration.kernels.buffers import ceph_buffers

    return changed_model(ceph_buffers(), "encode_buffers")


def ceph_rows(against: Path | None) -> list[Row]:
    """Ceph's plugins: the rows that ship, or Ceph's own benchmark or a recorded output of it."""
    if against is None:
        return [
            {**row, "source": "ceph16"} for row in shipped_rows("ceph16.csv").to_dicts()
        ]
    from stripesim.calibration.kernels.against_ceph import ceph_rows_against
    from stripesim.scenarios.studies.dachary2013.measure import COLUMNS

    further = {
        "buffers": "warm",
        "cores": 1,
        "roofline": None,
        "verified": None,
        "source": "against",
    }
    return [
        {
            **{name: row.get(name) for name in COLUMNS},
            "backend": _plugin(row["backend"]),
            **further,
        }
        for row in ceph_rows_against(against)
    ]


def kernel_rows(measure_now: bool) -> list[Row]:
    """The kernels of one machine: the rows that ship, or this one's, measured now, which needs pyeclib."""
    found = shipped_rows("measured.csv").to_dicts()
    if measure_now:
        from stripesim.scenarios.studies.dachary2013.measure import measure_here

        found = measure_here()
    return [{**row, "source": "measured"} for row in found]


def frame_of_cases(rows: Sequence[Sequence[Row]]) -> pl.DataFrame:
    """Put the rows of all tasks in one table, with the columns that every study's rows have."""
    listed = [row for part in rows for row in part]
    frame = pl.DataFrame(
        listed, infer_schema_length=None, schema_overrides=kernels.TYPES
    )
    return frame.with_columns(
        pattern=pl.lit("seq"), block_size_bytes=pl.col("size_bytes").cast(pl.Int64)
    )


def _plugin(backend: str) -> str:
    """The name that the claims use; the source's tables name the plugin and mean cauchy_good by jerasure."""
    name = backend.removeprefix("ceph ")
    return "jerasure:cauchy_good" if name == "jerasure" else name
