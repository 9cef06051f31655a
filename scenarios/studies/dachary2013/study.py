"""Set the claims of Dachary 2013 and 2014 beside measured kernels, and judge them."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.scenarios.studies.base import StudyResult, study_provenance

_PACKAGE = "stripesim.scenarios.studies.dachary2013"
_TABLES = ("ceph16.csv", "measured.csv")

TITLE = "Dachary 2013 and 2014: Ceph's erasure-code kernels, timed again"
INTRODUCTION = (
    "How long L. Dachary’s benchmarks of 2013 and 2014 took for encoding and decoding, case beside case, "
    "and how long the same cases take on a present processor."
)


def shipped_rows(name: str) -> pl.DataFrame:
    """A table that ships: ``ceph16.csv``, Ceph's plugins, or ``measured.csv``, one machine's kernels."""
    source = (files(_PACKAGE) / name).read_bytes()
    types = {"roofline": pl.Float64, "copy_seconds_median": pl.Float64, "verified": pl.Boolean}
    return pl.read_csv(source, schema_overrides=types)


def save_study_figures(result: StudyResult, out: Path) -> list[Path]:
    """Draw and write the study's figures and its report; return the files."""
    from stripesim.scenarios.report.study import save_with_report
    from stripesim.scenarios.studies.dachary2013.draw import draw

    return save_with_report(result, draw(result.rows), out, title=TITLE, introduction=INTRODUCTION)


def run(
    *,
    engine: str = "compiled",
    progress: Callable[[str, int], None] | None = None,
    measure: bool = False,
    against: Path | None = None,
) -> StudyResult:
    """Run the study.

    Parameters
    ----------
    engine : str
        Nothing is simulated here; taken so that all studies are called alike.
    progress : callable, optional
        Called after each part with a few words and the number of parts in all.
    measure : bool
        Measure this machine (a minute or two) instead of taking the rows that ship.
    against : Path, optional
        Ceph's own benchmark or its recorded output, instead of the rows of Ceph's plugins that ship.

    Raises
    ------
    stripesim.calibration.kernels.against_ceph.AgainstError
        If ``against`` cannot be run or read.
    stripesim.models.coding.errors.CodecError
        If a measurement is asked for and pyeclib is absent.
    """
    from stripesim.scenarios.studies.dachary2013.claims import ledger_for

    def told(words: str) -> None:
        if progress is not None:
            progress(words, len(_TABLES))

    if against is None:
        ceph = shipped_rows("ceph16.csv").with_columns(source=pl.lit("ceph16"))
    else:
        ceph = _against(against)
    told("Ceph's plugins")
    made: dict[str, Any] = json.loads((files(_PACKAGE) / "measured.json").read_text("utf-8"))
    here = shipped_rows("measured.csv")
    if measure:
        from stripesim.scenarios.studies.dachary2013.measure import frame_of, measure_here, provenance_here

        here, made = frame_of(measure_here()), provenance_here()
    told("kernels")
    rows = pl.concat([ceph, here.with_columns(source=pl.lit("measured"))], how="diagonal_relaxed")
    # Columns that every study's rows have, so that they are written alike.
    rows = rows.with_columns(pattern=pl.lit("seq"), block_size_bytes=pl.col("size_bytes").cast(pl.Int64))
    return StudyResult(
        ledger=ledger_for(rows, parameters()),
        rows=rows,
        provenance=study_provenance(
            "dachary2013",
            engine,
            kernels=made,
            ceph=str(against) if against is not None else "ceph16/kernels.csv, Ceph 16.2.15",
        ),
    )


def parameters() -> list[dict[str, Any]]:
    """The numbers that the simulator charges around a kernel, with their provenance."""
    from stripesim.calibration.kernels.buffers import ceph_buffers

    return list(ceph_buffers().parameters("encode_buffers."))


def _against(path: Path) -> pl.DataFrame:
    from stripesim.calibration.kernels.against_ceph import ceph_rows_against
    from stripesim.scenarios.studies.dachary2013.measure import frame_of

    rows = [
        row | {"backend": _plugin(row["backend"]), "buffers": "warm", "cores": 1, "roofline": None}
        for row in ceph_rows_against(path)
    ]
    return frame_of(rows).with_columns(
        source=pl.lit("against"), roofline=pl.lit(None, pl.Float64), verified=pl.lit(None, pl.Boolean)
    )


def _plugin(backend: str) -> str:
    """The name that the claims use; the source's tables name the plugin and mean cauchy_good by jerasure."""
    name = backend.removeprefix("ceph ")
    return "jerasure:cauchy_good" if name == "jerasure" else name
