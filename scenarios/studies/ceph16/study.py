"""Simulate every measured row of a folder and judge the counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.answers.run.execute import parameters_of
from stripesim.scenarios.show.quantities import rows_frame
from stripesim.scenarios.studies.base import (
    Setting,
    Study,
    StudyResult,
    Table,
    study_provenance,
)
from stripesim.scenarios.studies.ceph16.claims import (
    calibration_runs,
    claims_of,
    ledger_for,
)
from stripesim.scenarios.studies.ceph16.cluster import (
    KERNEL_TABLE,
    PARAMETERS,
    models_for,
)
from stripesim.scenarios.studies.ceph16.measured import load
from stripesim.scenarios.studies.ceph16.phases import (
    HEADING,
    frame_of_phases,
    phase_table,
)
from stripesim.scenarios.studies.ceph16.runs import PHASES, metrics_of_row, tasks_for
from stripesim.scenarios.studies.tasks import Row, Task


@dataclass(frozen=True, kw_only=True)
class Ceph16Result(StudyResult):
    """Outcome of the study."""

    #: Durations of the phases of each repair, measured and simulated: scheme, how, phase, measured_s,
    #: simulated_s. They are no claims.
    phases: pl.DataFrame

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``--json`` and ``ledger.json`` hold."""
        return {**super().to_json(), "phases": self.phases.to_dicts()}

    def terminal_tables(self) -> list[Table]:
        """Return the phases, if a repair's times were measured."""
        return [*super().terminal_tables(), *STUDY.tables(self).values()]


class Ceph16(Study):
    """Bytes counted on a real cluster. Any folder of the same form can be judged."""

    name = "ceph16"

    def claims(self) -> tuple[Claim, ...]:
        """Return one claim for each counter of each shipped run."""
        return claims_of(load())

    def parameters(self) -> list[Row]:
        """List the numbers of the cluster's models."""
        return parameters_of(models_for(parse_scheme("rs:6,3")))

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each measured row, and one for the phases of each repair."""
        return tasks_for(load(setting.options.get("data")), setting.engine)

    def result(
        self, setting: Setting, tasks: Sequence[Task], rows: Sequence[list[Row]]
    ) -> StudyResult:
        """Judge the counts."""
        data = setting.options.get("data")
        counted = [row for part in rows for row in part if row.get("task") != PHASES]
        phases = [row for part in rows for row in part if row.get("task") == PHASES]
        kernel = models_for(parse_scheme("rs:6,3")).kernel
        return Ceph16Result(
            ledger=ledger_for(
                load(data),
                {row["run_id"]: metrics_of_row(row) for row in counted},
                self.parameters(),
            ),
            rows=rows_frame(counted),
            provenance=study_provenance(
                self.name,
                setting.engine,
                generation="pacific",
                parameters=PARAMETERS,
                kernel_table=KERNEL_TABLE,
                kernel_cpu=kernel.provenance["cpu"],
                data="shipped" if data is None else str(data),
                rows=len(counted),
                calibration_runs=list(calibration_runs(processors=False)),
            ),
            phases=frame_of_phases(phases),
        )

    def tables(self, result: StudyResult) -> Mapping[str, Table]:
        """Return the phases of the repairs."""
        assert isinstance(result, Ceph16Result)
        return {HEADING: phase_table(result.phases)} if len(result.phases) else {}

    def files(self, result: StudyResult) -> Mapping[str, bytes]:
        """Return the phases as CSV."""
        assert isinstance(result, Ceph16Result)
        return {"phases.csv": result.phases.write_csv().encode()}


STUDY = Ceph16()
