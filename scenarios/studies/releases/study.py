"""Simulate measured rows of several releases and judge the counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, Ledger
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.answers.run.execute import parameters_of
from stripesim.scenarios.studies.base import Setting, Study
from stripesim.scenarios.studies.ceph16.claims import judge_counts
from stripesim.scenarios.studies.ceph16.cluster import (
    KERNEL_TABLE,
    PARAMETERS,
    models_for,
)
from stripesim.scenarios.studies.releases import machine
from stripesim.scenarios.studies.releases.claims import calibration_runs, claims_of
from stripesim.scenarios.studies.releases.measured import load
from stripesim.scenarios.studies.releases.runs import metrics_of, tasks_for
from stripesim.scenarios.studies.tasks import Row, Task


class Releases(Study):
    """Bytes counted under several releases. Any folder of the same form can be judged."""

    name = "releases"

    def claims(self) -> tuple[Claim, ...]:
        """Return one claim for each counter of each shipped run."""
        return claims_of(load())

    def parameters(self) -> list[Row]:
        """List the numbers of the cluster's models, and those that a release changes."""
        shared = parameters_of(models_for(parse_scheme("rs:6,3")))
        return [*shared, *machine.PARAMETERS.listed()]

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each measured row."""
        return tasks_for(load(setting.options.get("data")), setting.engine)

    def ledger(self, setting: Setting, rows: pl.DataFrame) -> Ledger:
        """Judge the counts."""
        counts = {row["run_id"]: metrics_of(row) for row in rows.iter_rows(named=True)}
        claims = claims_of(load(setting.options.get("data")))
        return judge_counts(claims, counts, self.parameters())

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the numbers behind the models, the folder of counts, and the runs that a fit has seen."""
        data = setting.options.get("data")
        return {
            "parameters": PARAMETERS,
            "kernel_table": KERNEL_TABLE,
            "data": "shipped" if data is None else str(data),
            "rows": len(tasks),
            "calibration_runs": list(calibration_runs()),
        }


STUDY = Releases()
