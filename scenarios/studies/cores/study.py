"""Simulate measured rates of pinned OSDs and judge rates and cores used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, Ledger, judge
from stripesim.scenarios.studies.base import Setting, Study
from stripesim.scenarios.studies.cores.measured import TOLERANCE, CoresRow, load
from stripesim.scenarios.studies.cores.runs import PARAMETERS, tasks_for
from stripesim.scenarios.studies.published_rows import simulated_values
from stripesim.scenarios.studies.tasks import Row, Task


class CoresStudy(Study):
    """Rates against cores per OSD. Any folder with a ``cores.csv`` of the same columns can be judged."""

    name = "cores"

    def claims(self) -> tuple[Claim, ...]:
        """Return one claim for each shipped row."""
        return _claims(load())

    def parameters(self) -> list[Row]:
        """List the numbers by which one OSD alone, and a cluster of Ceph 16, differ from the set `nvme`."""
        return PARAMETERS.listed()

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each run."""
        return tasks_for(load(setting.options.get("data")), setting.engine)

    def ledger(self, setting: Setting, rows: pl.DataFrame) -> Ledger:
        """Judge result rows against measured ones."""
        measured = load(setting.options.get("data"))
        values, reasons = simulated_values(rows.iter_rows(named=True), "claim")
        return judge(
            _claims(measured), values, reasons=reasons, parameters=self.parameters()
        )

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the parameter set, the folder of measurements, and the number of its rows."""
        data = setting.options.get("data")
        return {
            "parameters": "nvme",
            "data": "shipped" if data is None else str(data),
            "rows": len(load(data)),
        }


def _claims(rows: Sequence[CoresRow]) -> tuple[Claim, ...]:
    return tuple(row.claim("cores", TOLERANCE) for row in rows)


STUDY = CoresStudy()
