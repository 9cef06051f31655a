"""Simulate measured rows of NVMe clusters and judge rates and latencies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, Ledger
from stripesim.scenarios.answers.run.execute import parameters_of
from stripesim.scenarios.cells.measured import PARAMETERS, models_of, scenario_of
from stripesim.scenarios.studies.base import Setting, Study, StudyResult
from stripesim.scenarios.studies.nvme.claims import claims_of, ledger_for
from stripesim.scenarios.studies.nvme.measured import (
    HARDWARE_FILE,
    load,
    measured_table,
    study_hardware,
)
from stripesim.scenarios.studies.nvme.register import register_of
from stripesim.scenarios.studies.nvme.runs import tasks_for
from stripesim.scenarios.studies.parameters import changed_models
from stripesim.scenarios.studies.tasks import Row, Task


class Nvme(Study):
    """Rates and latencies of today's clusters. Any folder of the same form can be judged."""

    name = "nvme"

    def claims(self) -> tuple[Claim, ...]:
        """Return one claim for each number of each shipped row."""
        return claims_of(load()[0])

    def parameters(self) -> list[Row]:
        """List the numbers of the models, on the processor and drive that were fitted."""
        rows, clusters = load()
        hardware = study_hardware(rows[0], clusters, "clusters.toml")
        scenario = scenario_of(rows[0], hardware)
        models = models_of(scenario, rows[0], hardware, changed_models)
        return [*parameters_of(models), *HARDWARE_FILE.listed()]

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each run.

        Raises
        ------
        MeasuredError
            If the folder cannot be used, with one line for each problem.
        """
        data = setting.options.get("data")
        rows, clusters = load(data)
        file = "clusters.toml" if data is None else str(Path(data) / "clusters.toml")
        return tasks_for(rows, clusters, setting.engine, file)

    def ledger(self, setting: Setting, rows: pl.DataFrame) -> Ledger:
        """Judge result rows against measured ones."""
        measured = load(setting.options.get("data"))[0]
        return ledger_for(measured, rows.iter_rows(named=True), self.parameters())

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the parameter set, the folder of measurements, and how many of its rows are simulated."""
        data = setting.options.get("data")
        return {
            "parameters": PARAMETERS,
            "data": "shipped" if data is None else str(data),
            "rows": sum(row.role != "not-derivable" for row in load(data)[0]),
        }

    def register(self, result: StudyResult) -> dict[str, Any]:
        """Return the document of a register that predicts each measured row."""
        return register_of(result)

    def figure_tables(self, result: StudyResult) -> dict[str, pl.DataFrame]:
        """Return the measured rows."""
        data = result.provenance["data"]
        folder = None if data == "shipped" else Path(data)
        return {"measured": measured_table(load(folder)[0])}


STUDY = Nvme()
