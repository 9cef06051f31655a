"""Simulate every measured row of a folder and judge the counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.run.execute import parameters_of
from stripesim.scenarios.studies.base import StudyResult, study_provenance
from stripesim.scenarios.studies.ceph16.claims import CALIBRATION, degraded_id, ledger_for, repair_id
from stripesim.scenarios.studies.ceph16.cluster import KERNEL_TABLE, PARAMETERS, models_for
from stripesim.scenarios.studies.ceph16.measured import Coded, load
from stripesim.scenarios.studies.ceph16.predict import (
    COLUMNS,
    REPAIR_COLUMNS,
    metrics_of,
    predict_degraded,
    predict_repair,
    predict_run,
)

if TYPE_CHECKING:
    import polars as pl

TITLE = "Ceph 16.2.15, measured and simulated"
INTRODUCTION = (
    "Bytes that the devices and networks of a real cluster moved, run by run, beside those of a simulated "
    "copy of it. Sizes of messages and log were fitted on a few named runs; all other rows are predictions."
)


@dataclass(frozen=True, kw_only=True)
class Ceph16Result(StudyResult):
    """What the study gives.

    Parameters
    ----------
    phases : polars.DataFrame
        How long the phases of each repair took, measured and simulated: scheme, how, phase, measured_s,
        simulated_s. No claims.
    """

    phases: pl.DataFrame

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``--json`` and ``ledger.json`` hold."""
        return {**super().to_json(), "phases": self.phases.to_dicts()}

    def terminal_tables(self) -> list[tuple[Sequence[str], Sequence[Sequence[str]]]]:
        """Return the phases, if a repair's times were measured."""
        from stripesim.scenarios.studies.ceph16.phases import phase_table

        return [phase_table(self.phases)] if len(self.phases) else []


def run(
    *,
    engine: str = "compiled",
    data: str | Path | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Ceph16Result:
    """Run the study.

    Parameters
    ----------
    engine : str
        ``compiled`` or ``simpy``.
    data : path, optional
        Folder with ``runs.csv``, ``iolog/`` and, if measured, ``repair.csv`` and ``degraded.csv``; None:
        the folder that ships. It gives workloads and measured values, never parameters.
    progress : callable, optional
        Called after each row with a few words about it and the number of rows in all.

    Raises
    ------
    Ceph16DataError
        If the folder cannot be used; one line per fault.
    """
    from stripesim.scenarios.run.results import rows_frame
    from stripesim.scenarios.studies.ceph16.phases import phases_frame

    measured = load(data)
    total = len(measured.runs) + len(measured.repairs) + len(measured.degraded)
    rows: list[dict[str, Any]] = []
    predictions: dict[str, dict[str, float]] = {}

    def note(
        name: str, coded: Coded, cell: dict[str, Any], row: dict[str, Any], columns: dict[str, str]
    ) -> None:
        predictions[name] = metrics_of(row, columns)
        rows.append({"run_id": name, "scheme": coded.name, **cell, **row})
        if progress is not None:
            progress(name, total)

    for measured_run in measured.runs:
        cell = {
            "op": measured_run.op,
            "pattern": measured_run.pattern,
            "block_size_bytes": measured_run.block_bytes,
            "queue_depth": measured_run.queue_depth,
        }
        row = predict_run(measured_run, engine=engine)
        note(measured_run.run_id, measured_run.coded, cell, row, COLUMNS)
    for repair in measured.repairs:
        note(
            repair_id(repair),
            repair.coded,
            {"op": "repair"},
            predict_repair(repair, engine=engine),
            REPAIR_COLUMNS,
        )
    for degraded in measured.degraded:
        cell = {
            "op": "degraded read",
            "pattern": degraded.pattern,
            "block_size_bytes": degraded.block_bytes,
            "queue_depth": degraded.queue_depth,
        }
        note(degraded_id(degraded), degraded.coded, cell, predict_degraded(degraded, engine=engine), COLUMNS)
    models = models_for(parse_scheme("rs:6,3"))
    return Ceph16Result(
        ledger=ledger_for(measured, predictions, parameters_of(models)),
        rows=rows_frame(rows),
        provenance=study_provenance(
            "ceph16",
            engine,
            generation="pacific",
            parameters=PARAMETERS,
            kernel_table=KERNEL_TABLE,
            kernel_cpu=models.kernel.provenance["cpu"],
            data="shipped" if data is None else str(data),
            rows=total,
            calibration_runs=list(CALIBRATION),
        ),
        phases=phases_frame(measured.repairs, engine=engine),
    )


def save_study_figures(result: Ceph16Result, out: Path) -> list[Path]:
    """Draw and write the study's figures, its report and ``phases.csv``; return the files."""
    from stripesim.scenarios.report.study import save_with_report
    from stripesim.scenarios.run.results import write_files
    from stripesim.scenarios.studies.ceph16.draw import draw
    from stripesim.scenarios.studies.ceph16.phases import HEADING, phase_table

    written = save_with_report(
        result,
        draw(result.ledger),
        out,
        title=TITLE,
        introduction=INTRODUCTION,
        tables={HEADING: phase_table(result.phases)} if len(result.phases) else None,
    )
    return [*written, *write_files(out, {"phases.csv": result.phases.write_csv().encode()})]
