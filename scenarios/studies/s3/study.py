"""Simulate measured rows of object gateways and judge rates, cores and latencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, Ledger
from stripesim.scenarios.answers.run.execute import parameters_of
from stripesim.scenarios.studies.base import Setting, Study
from stripesim.scenarios.studies.s3.claims import claims_of, ledger_for
from stripesim.scenarios.studies.s3.counted import load_counts
from stripesim.scenarios.studies.s3.counted_runs import simulate_counts
from stripesim.scenarios.studies.s3.described import read_cluster
from stripesim.scenarios.studies.s3.measured import CALIBRATION, load
from stripesim.scenarios.studies.s3.runs import models_of, scenario_of, tasks_for
from stripesim.scenarios.studies.tasks import Call, Row, Task


class S3(Study):
    """Rates and cores of gateways. Any folder with an ``s3.csv`` of the same columns can be judged."""

    name = "s3"

    def claims(self) -> tuple[Claim, ...]:
        """Return one claim for each shipped row, for ratios of rows, and for each counter."""
        of_counts = [claim for row in load_counts() for claim in row.claims()]
        return (*claims_of(load()), *of_counts)

    def parameters(self) -> list[Row]:
        """List the numbers of the models, on the cluster that was fitted."""
        row = next(row for row in load() if row.id in CALIBRATION)
        cluster = read_cluster(row.hardware)
        return [*parameters_of(models_of(scenario_of(row, cluster), cluster))]

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each run, and for each counted request."""
        data = setting.options.get("data")
        counted = [
            Call(row.id, simulate_counts, (row,), row.size / 1e6)
            for row in load_counts(data)
        ]
        return [*tasks_for(load(data), setting.engine), *counted]

    def ledger(self, setting: Setting, rows: pl.DataFrame) -> Ledger:
        """Judge result rows against measured ones."""
        data = setting.options.get("data")
        return ledger_for(
            load(data),
            rows.iter_rows(named=True),
            self.parameters(),
            counted=load_counts(data),
        )

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the parameter set, the folder of measurements, and how many of its rows are simulated."""
        data = setting.options.get("data")
        return {
            "parameters": "nvme",
            "data": "shipped" if data is None else str(data),
            "rows": sum(row.role != "not-derivable" for row in load(data)),
        }


STUDY = S3()
