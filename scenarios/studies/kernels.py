"""Kernels that a study measured on one machine: the rows that ship, and how they are measured again."""

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.calibration.kernels.codec import library_versions
from stripesim.calibration.kernels.store import cpu_description

#: Columns that may be empty.
TYPES = {
    "roofline": pl.Float64,
    "copy_seconds_median": pl.Float64,
    "verified": pl.Boolean,
}


def shipped(study: str, name: str = "measured.csv") -> pl.DataFrame:
    """Measured rows that ship in a study's folder."""
    source = files(f"{__package__}.{study}") / name
    return pl.read_csv(source.read_bytes(), schema_overrides=TYPES)


def shipped_provenance(study: str) -> dict[str, Any]:
    """What measured the rows that ship."""
    text = (files(f"{__package__}.{study}") / "measured.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def provenance_here(module: str, **more: Any) -> dict[str, Any]:
    """What measures when a module is run: processor, versions, day."""
    return {
        "basis": "measured",
        "command": f"python -m {module}",
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
        json.dumps(provenance, indent=1) + "\n", encoding="utf-8"
    )


def write_rows(
    path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]
) -> None:
    """Write these columns of measured rows as CSV."""
    kept = [{name: row.get(name) for name in columns} for row in rows]
    pl.DataFrame(kept, infer_schema_length=None).write_csv(path)
