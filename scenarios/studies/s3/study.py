"""Simulate measured rows of object gateways and judge rates, cores and latencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, Ledger
from stripesim.scenarios.answers.run.execute import parameters_of
from stripesim.scenarios.studies.base import Setting, Study
from stripesim.scenarios.studies.s3.claims import claims_of, ledger_for
from stripesim.scenarios.studies.s3.described import read_cluster
from stripesim.scenarios.studies.s3.measured import CALIBRATION, load
from stripesim.scenarios.studies.s3.runs import models_of, scenario_of, tasks_for
from stripesim.scenarios.studies.tasks import Row, Task


class S3(Study):
    """Rates and cores of gateways. Any folder with an ``s3.csv`` of the same columns can be judged."""

    name = "s3"

    def claims(self) -> tuple[Claim, ...]:
        """Return one claim for each shipped row, and for ratios of rows."""
        return claims_of(load())

    def parameters(self) -> list[Row]:
        """List the numbers of the models, on the cluster that was fitted."""
        row = next(row for row in load() if row.id in CALIBRATION)
        cluster = read_cluster(row.hardware)
        return [*parameters_of(models_of(scenario_of(row, cluster), cluster))]

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each run."""
        return tasks_for(load(setting.options.get("data")), setting.engine)

    def ledger(self, setting: Setting, rows: pl.DataFrame) -> Ledger:
        """Judge result rows against measured ones."""
        measured = load(setting.options.get("data"))
        return ledger_for(measured, rows.iter_rows(named=True), self.parameters())

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the parameter set, the folder of measurements, and how many of its rows are simulated."""
        data = setting.options.get("data")
        return {
            "parameters": "nvme",
            "data": "shipped" if data is None else str(data),
            "rows": sum(row.role != "not-derivable" for row in load(data)),
        }


STUDY = S3()
