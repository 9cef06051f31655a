"""Table II's codes on this machine: the kernels that pyeclib calls, at the source's block sizes.

``python -m stripesim.scenarios.studies.erasurebench2016.kernels FOLDER`` writes ``measured.csv`` and
``measured.json`` (what measured them); the two that ship were made so.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.calibration.kernels.codec import library_versions
from stripesim.calibration.kernels.measure import measure
from stripesim.calibration.kernels.store import cpu_description

SIZES_BYTES = (4_000_000, 16_000_000, 64_000_000)
SCHEMES = {"rs:10,4": "RS", "lrc:10,6,5": "LRC"}
COLUMNS = (
    *("backend", "scheme", "op", "erasures", "size_bytes", "seconds_median", "seconds_p10", "seconds_p90"),
    *("bytes_per_s", "copy_seconds_median", "verified"),
)


def shipped() -> pl.DataFrame:
    """The measured rows that ship with the package."""
    source = files("stripesim.scenarios.studies.erasurebench2016") / "measured.csv"
    return pl.read_csv(source.read_bytes(), schema_overrides={"verified": pl.Boolean})


def shipped_provenance() -> dict[str, Any]:
    """What measured the rows that ship."""
    text = (files("stripesim.scenarios.studies.erasurebench2016") / "measured.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def measure_here() -> pl.DataFrame:
    """Measure this machine.

    Raises
    ------
    stripesim.models.coding.errors.CodecError
        If pyeclib is absent.
    """
    rows = measure(list(SCHEMES), list(SIZES_BYTES))
    return pl.DataFrame([{name: row.get(name) for name in COLUMNS} for row in rows], infer_schema_length=None)


def provenance_here() -> dict[str, Any]:
    """What measures: processor, versions, day."""
    return {
        "basis": "measured",
        "command": "python -m stripesim.scenarios.studies.erasurebench2016.kernels",
        "cpu": cpu_description(),
        "versions": library_versions(),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }


def main(arguments: Sequence[str]) -> None:
    """Measure and write."""
    folder = Path(arguments[0])
    measure_here().write_csv(folder / "measured.csv", float_precision=9)
    (folder / "measured.json").write_text(json.dumps(provenance_here(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
