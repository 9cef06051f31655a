"""Simulate every measured row of a folder and judge the counts."""

from __future__ import annotations

from collections.abc import Sequence

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.answers.run.execute import parameters_of
from stripesim.scenarios.show.quantities import rows_frame
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.studies.base import (
    Setting,
    Study,
    StudyResult,
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

    def result(
        self, setting: Setting, tasks: Sequence[Task], rows: Sequence[list[Row]]
    ) -> StudyResult:
        """Judge the counts."""
        data = setting.options.get("data")
        counted = [row for part in rows for row in part if row.get("task") != PHASES]
        # Durations of the phases of repairs are no claims.
        phases = frame_of_phases(
            row for part in rows for row in part if row.get("task") == PHASES
        )
        kernel = models_for(parse_scheme("rs:6,3")).kernel
        return StudyResult(
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
            frames={"phases": phases},
            fields={"phases": phases.to_dicts()},
        )

    def tables(self, result: StudyResult) -> Sequence[Table]:
        """Return the phases of the repairs, if their times were measured."""
        phases = result.frames["phases"]
        return [phase_table(phases)] if len(phases) else []


STUDY = Ceph16()
