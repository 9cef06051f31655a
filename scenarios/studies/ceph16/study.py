"""Simulate every measured row of a folder and judge the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, Ledger
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.answers.run.execute import parameters_of
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.studies.base import Setting, Study, StudyResult
from stripesim.scenarios.studies.ceph16.claims import (
    calibration_runs,
    claims_of,
    judge_counts,
)
from stripesim.scenarios.studies.ceph16.cluster import (
    KERNEL_TABLE,
    PARAMETERS,
    models_for,
)
from stripesim.scenarios.studies.ceph16.measured import load
from stripesim.scenarios.studies.ceph16.phases import (
    frame_of_phases,
    phase_table,
)
from stripesim.scenarios.studies.ceph16.runs import PHASES, metrics_of_row, tasks_for
from stripesim.scenarios.studies.tasks import Row, Task


class Ceph16(Study):
    """Bytes counted on a real cluster. Any folder of the same form can be judged."""

    name = "ceph16"
    prints_tables = True

    def claims(self) -> tuple[Claim, ...]:
        """Return one claim for each counter of each shipped run."""
        return claims_of(load())

    def parameters(self) -> list[Row]:
        """List the numbers of the cluster's models."""
        return parameters_of(models_for(parse_scheme("rs:6,3")))

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each measured row, and one for the phases of each repair."""
        return tasks_for(load(setting.options.get("data")), setting.engine)

    def frame(self, rows: Sequence[list[Row]]) -> pl.DataFrame:
        """Put the counts of all tasks in one table. Durations of the phases of repairs are no claims."""
        return super().frame(
            [[row for row in part if not _is_phase(row)] for part in rows]
        )

    def ledger(self, setting: Setting, rows: pl.DataFrame) -> Ledger:
        """Judge the counts."""
        counts = {
            row["run_id"]: metrics_of_row(row) for row in rows.iter_rows(named=True)
        }
        claims = claims_of(load(setting.options.get("data")))
        return judge_counts(claims, counts, self.parameters())

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the numbers behind the models, the folder of counts, and the runs that a fit has seen."""
        data = setting.options.get("data")
        kernel = models_for(parse_scheme("rs:6,3")).kernel
        return {
            "generation": "pacific",
            "parameters": PARAMETERS,
            "kernel_table": KERNEL_TABLE,
            "kernel_cpu": kernel.provenance["cpu"],
            "data": "shipped" if data is None else str(data),
            "rows": load(data).rows_count,
            "calibration_runs": list(calibration_runs(processors=False)),
        }

    def result(
        self, setting: Setting, tasks: Sequence[Task], rows: Sequence[list[Row]]
    ) -> StudyResult:
        """Judge the counts, and add the phases of repairs."""
        phases = frame_of_phases(
            row for row in chain.from_iterable(rows) if _is_phase(row)
        )
        return replace(
            super().result(setting, tasks, rows),
            frames={"phases": phases},
            fields={"phases": phases.to_dicts()},
        )

    def tables(self, result: StudyResult) -> Sequence[Table]:
        """Return the phases of the repairs, if their times were measured."""
        phases = result.frames["phases"]
        return [phase_table(phases)] if len(phases) else []


def _is_phase(row: Row) -> bool:
    return row.get("task") == PHASES


STUDY = Ceph16()
