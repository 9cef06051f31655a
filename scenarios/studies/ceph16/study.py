"""Simulate every measured row of a folder and judge the counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stripesim.scenarios.studies.base import (
    Ablation,
    Option,
    Setting,
    Study,
    StudyResult,
    Table,
    study_provenance,
)
from stripesim.scenarios.studies.tasks import Row, Task

if TYPE_CHECKING:
    import polars as pl

    from stripesim.calibration.ledger.verdicts import Claim


@dataclass(frozen=True, kw_only=True)
class Ceph16Result(StudyResult):
    """What the study gives."""

    # How long the phases of each repair took, measured and simulated: scheme, how, phase, measured_s,
    # simulated_s. No claims.
    phases: pl.DataFrame

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``--json`` and ``ledger.json`` hold."""
        return {**super().to_json(), "phases": self.phases.to_dicts()}

    def terminal_tables(self) -> list[Table]:
        """Return the phases, if a repair's times were measured."""
        from stripesim.scenarios.studies.ceph16.phases import phase_table

        return [
            *super().terminal_tables(),
            *([phase_table(self.phases)] if len(self.phases) else []),
        ]


class Ceph16(Study):
    """Bytes counted on a real cluster; any folder of the same form can be judged."""

    name = "ceph16"
    summary = "bytes counted on a real Ceph 16.2.15, run by run"
    title = "Ceph 16.2.15, measured and simulated"
    introduction = (
        "Bytes that the devices and networks of a real cluster moved, run by run, beside those of a "
        "simulated copy of it. Sizes of messages and log were fitted on a few named runs; all other "
        "rows are predictions."
    )
    options = (
        Option(
            name="data",
            flag="--data",
            kind=Path,
            help="Folder of measurements in the form of those that ship; left out: those.",
        ),
    )
    ablations: ClassVar[Mapping[str, Ablation]] = {
        "no-metadata": Ablation(
            "transactions write no metadata",
            ("store.metadata_bytes=0", "store.ec_metadata_extra_bytes=0"),
        ),
        "no-roll-forward": Ablation(
            "rolling forward sends and logs nothing",
            ("messages.roll_forward_bytes=0", "store.roll_forward_log_bytes=0"),
        ),
        "no-read-cache": Ablation("OSDs cache no data", ("store.read_cache_bytes=0",)),
    }

    def claims(self) -> tuple[Claim, ...]:
        """Read the measurements that ship; each counter of each run is a claim."""
        from stripesim.scenarios.studies.ceph16.claims import claims_of
        from stripesim.scenarios.studies.ceph16.measured import load

        return claims_of(load())

    def parameters(self) -> list[Row]:
        """List the numbers of the cluster's models."""
        from stripesim.models.coding import parse_scheme
        from stripesim.scenarios.run.execute import parameters_of
        from stripesim.scenarios.studies.ceph16.cluster import models_for

        return parameters_of(models_for(parse_scheme("rs:6,3")))

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each measured row, and one for the phases of the repairs."""
        from stripesim.scenarios.studies.ceph16.measured import load
        from stripesim.scenarios.studies.ceph16.runs import tasks_for

        return tasks_for(load(setting.options.get("data")), setting.engine)

    def result(
        self, setting: Setting, tasks: Sequence[Task], rows: Sequence[list[Row]]
    ) -> StudyResult:
        """Judge the counts."""
        from stripesim.models.coding import parse_scheme
        from stripesim.scenarios.run.results import rows_frame
        from stripesim.scenarios.studies.ceph16.claims import (
            calibration_runs,
            ledger_for,
        )
        from stripesim.scenarios.studies.ceph16.cluster import (
            KERNEL_TABLE,
            PARAMETERS,
            models_for,
        )
        from stripesim.scenarios.studies.ceph16.measured import load
        from stripesim.scenarios.studies.ceph16.phases import frame_of_phases
        from stripesim.scenarios.studies.ceph16.runs import PHASES, metrics_of_row

        data = setting.options.get("data")
        counted = [row for part in rows for row in part if row.get("task") != PHASES]
        phases = [row for part in rows for row in part if row.get("task") == PHASES]
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
                kernel_cpu=models_for(parse_scheme("rs:6,3")).kernel.provenance["cpu"],
                data="shipped" if data is None else str(data),
                rows=len(counted),
                calibration_runs=list(calibration_runs(processors=False)),
            ),
            phases=frame_of_phases(phases),
        )

    def tables(self, result: StudyResult) -> Mapping[str, Table]:
        """Return the phases of the repairs."""
        from stripesim.scenarios.studies.ceph16.phases import HEADING, phase_table

        assert isinstance(result, Ceph16Result)
        return {HEADING: phase_table(result.phases)} if len(result.phases) else {}

    def files(self, result: StudyResult) -> Mapping[str, bytes]:
        """Return the phases as CSV."""
        assert isinstance(result, Ceph16Result)
        return {"phases.csv": result.phases.write_csv().encode()}


STUDY = Ceph16()
