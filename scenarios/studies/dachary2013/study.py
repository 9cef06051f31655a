"""Compare the claims of Dachary 2013 and 2014 with measured kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from stripesim.calibration.kernels.against_ceph import ceph_rows_against
from stripesim.calibration.kernels.buffers import ceph_buffers
from stripesim.calibration.measured.kernels import EMPTY_TYPES, ceph_kernels
from stripesim.models.kernel.buffers import EncodeBufferModel
from stripesim.models.problems import NotComputedError
from stripesim.scenarios.studies import kernels
from stripesim.scenarios.studies.base import Setting, Study, StudyResult
from stripesim.scenarios.studies.dachary2013 import measure
from stripesim.scenarios.studies.lookup import published, select
from stripesim.scenarios.studies.parameters import changed_model
from stripesim.scenarios.studies.tasks import Call, Row, Task

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

CAUCHY_GOOD: Final = "jerasure:cauchy_good"
#: Sources of rows, the best first: the given benchmark, this machine, Ceph 16.
SOURCES: Final = ("against", "measured", "ceph16")


class Dachary2013(Study):
    """Measured, not simulated: a setting changes the simulator's charge around a kernel."""

    name = measure.STUDY

    def parameters(self) -> list[Row]:
        """List the numbers of the simulator's charge around a kernel."""
        return list(buffers().parameters("encode_buffers."))

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """Read or measure Ceph's plugins, and this machine's kernels."""
        return [
            Call("Ceph's plugins", ceph_rows, (setting.options.get("against"),)),
            Call("kernels", kernel_rows, ("measure" in setting.options,)),
        ]

    def frame(self, rows: Sequence[list[Row]]) -> pl.DataFrame:
        """Put the measured cases in one table, with the columns that the rows of all studies have."""
        frame = pl.DataFrame(
            [row for part in rows for row in part],
            infer_schema_length=None,
            schema_overrides=EMPTY_TYPES,
        )
        return frame.with_columns(
            pattern=pl.lit("seq"), block_size_bytes=pl.col("size_bytes").cast(pl.Int64)
        )

    def vocabulary(self, rows: pl.DataFrame) -> Mapping[str, Any]:
        """Return the names that expressions know."""

        def scaled(
            reference: str, backend: str, scheme: str, op: str, erasures: int
        ) -> float:
            """Scale our time of a case by published over ours of the reference [s]."""
            seconds = case_seconds(rows, backend, scheme, op, erasures)
            ours = case_seconds(rows, CAUCHY_GOOD, "rs:6,2", "encode", 0)
            return published(self.name)[reference] * seconds / ours

        return {
            "CAUCHY_GOOD": CAUCHY_GOOD,
            "STAND_IN": "liberasurecode_rs_vand",
            "scaled": scaled,
        }

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return what measured the kernels, and where the rows of Ceph's plugins are from."""
        against = setting.options.get("against")
        return {
            "kernels": measure.provenance(now="measure" in setting.options),
            "ceph": str(against) if against else "ceph16/kernels.csv, Ceph 16.2.15",
        }

    def figures(self, result: StudyResult) -> Mapping[str, CaptionedFigure]:
        """Draw the figures, and the figure of copies that `stripesim kernel` shares."""
        from stripesim.scenarios.show.figures.kernels import draw_copies

        measured = result.rows["source"] == "measured"
        copies = draw_copies(
            result.rows.filter(measured),
            result.rows.filter(~measured),
            scheme="rs:6,2",
            sizes_bytes=[24 << 10, 1 << 20],
            buffers=buffers(),
        )
        return {**super().figures(result), "kernel-and-copies": copies}


STUDY = Dachary2013()


def buffers() -> EncodeBufferModel:
    """Return the simulator's charge around a call of a kernel."""
    return changed_model(ceph_buffers(), "encode_buffers")


def ceph_rows(against: Path | None) -> list[Row]:
    """Return rows of Ceph's plugins: those that ship, or from Ceph's benchmark or its recorded output."""
    if against is None:
        rows = ceph_kernels().to_dicts()
        return [{**row, "source": "ceph16"} for row in rows]
    further = {
        "buffers": "warm",
        "cores": 1,
        "roofline": None,
        "verified": None,
        "source": "against",
    }
    return [
        {
            **{name: row.get(name) for name in measure.COLUMNS},
            "backend": _plugin(row["backend"]),
            **further,
        }
        for row in ceph_rows_against(against)
    ]


def kernel_rows(measure_now: bool) -> list[Row]:
    """Return kernels of one machine: the rows that ship, or this machine's, which needs pyeclib."""
    if measure_now:
        rows = measure.measure_here()
    else:
        rows = kernels.shipped(measure.STUDY).to_dicts()
    return [{**row, "source": "measured"} for row in rows]


def case_seconds(
    rows: pl.DataFrame, backend: str, scheme: str, op: str, erasures: int
) -> float:
    """Return the time of one call on 1 MiB, padding included [s]."""
    case = {"backend": backend, "scheme": scheme, "op": op, "erasures": erasures}
    measured = select(rows, **case, buffers="warm", cores=1)
    measured = measured.filter(pl.col("size_bytes").is_between(1 << 20, 1_250_000))
    for source in SOURCES:
        of_source = select(measured, source=source)
        if of_source.height:
            return float(of_source["seconds_median"][0])
    raise NotComputedError(f"not measured: {backend} {scheme} {op} {erasures}")


def _plugin(backend: str) -> str:
    """Return the claims' name of a plugin; the source says jerasure and means its cauchy_good."""
    name = backend.removeprefix("ceph ")
    return CAUCHY_GOOD if name == "jerasure" else name
