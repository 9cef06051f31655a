"""Measured kernels of a study: the rows that ship, how to measure them again, and scaled tables of costs."""

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.calibration.kernels.codec import library_versions
from stripesim.calibration.kernels.store import cpu_description
from stripesim.calibration.measured.kernels import read_kernels
from stripesim.models.documents import json_text
from stripesim.models.kernel.cost import AffineKnee, KernelTable
from stripesim.scenarios.show.files import csv_text
from stripesim.scenarios.studies.description import study_folder


def shipped(study: str) -> pl.DataFrame:
    """Return the measured rows that ship in a study's folder."""
    return read_kernels(study_folder(study) / "measured.csv")


def provenance(study: str, module: str, *, now: bool, **more: Any) -> dict[str, Any]:
    """Return what measured a study's kernels.

    Parameters
    ----------
    study
        Name of the study.
    module
        Module of its folder that measures kernels.
    now
        True if this machine measures them now, False for the rows that ship.
    more
        Further JSON values for a measurement on this machine.
    """
    if not now:
        text = (study_folder(study) / "measured.json").read_text("utf-8")
        document: dict[str, Any] = json.loads(text)
        return document
    return {
        "basis": "measured",
        "command": f"python -m {__package__}.{study}.{module}",
        "cpu": cpu_description(),
        "versions": library_versions(),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        **more,
    }


def write(
    folder: Path,
    study: str,
    rows: Iterable[Mapping[str, Any]],
    provenance: Mapping[str, Any],
) -> None:
    """Write the two files that ship, ``measured.csv`` and ``measured.json``."""
    write_rows(folder / "measured.csv", rows, shipped(study).columns)
    (folder / "measured.json").write_text(
        json_text(provenance, is_ascii=True), encoding="utf-8"
    )


def write_rows(
    path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]
) -> None:
    """Write these columns of measured rows as CSV."""
    kept = [{name: row.get(name) for name in columns} for row in rows]
    path.write_text(csv_text(kept), encoding="utf-8")


def scaled_table(table: KernelTable, family: str, factor: float) -> KernelTable:
    """Return a table with scaled times for one family of codes, or for one code.

    Used for Clay: the NumPy kernel looks products up in tables, while Ceph's plugin calls jerasure's
    vectorised code on the same sub-chunks. The factor is measured for encoding and assumed to
    apply to repair and decode.
    """

    def scaled(knee: AffineKnee) -> AffineKnee:
        names = ("fixed_ns", "per_byte_ns", "per_byte_beyond_ns")
        return replace(knee, **{name: factor * getattr(knee, name) for name in names})

    return replace(
        table,
        costs=tuple(
            replace(cost, total=scaled(cost.total), net=cost.net and scaled(cost.net))
            if cost.scheme.startswith(family)
            else cost
            for cost in table.costs
        ),
    )
