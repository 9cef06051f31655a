"""Planned changes on a real cluster, measured and simulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stripesim.scenarios.studies.base import Option, Setting, Study
from stripesim.scenarios.studies.tasks import Call, Row, Task

if TYPE_CHECKING:
    import polars as pl

    from stripesim.calibration.ledger.verdicts import Ledger


class Changes(Study):
    """Shards and bytes that planned changes move. Nothing is fitted."""

    name = "changes"
    summary = "planned changes on a real Ceph 16.2.15: shards and bytes that move"
    title = "Planned changes of a cluster, measured and simulated"
    introduction = (
        "An OSD marked out while up and in again, two OSDs weighted to 0 and back: the shards that move, and "
        "bytes that devices and the cluster network move for each byte of them. Claims, roles and tolerances "
        "were fixed before the first run, and no number is fitted to them."
    )
    options = (
        Option(
            name="data",
            flag="--data",
            kind=Path,
            help="Folder with change.csv or change/change.csv, in the form of ceph16; default: shipped.",
        ),
    )

    def parameters(self) -> list[Row]:
        """List the numbers of the cluster's models."""
        from stripesim.models.coding import parse_scheme
        from stripesim.scenarios.run.execute import parameters_of
        from stripesim.scenarios.studies.ceph16.cluster import models_for

        return parameters_of(models_for(parse_scheme("rs:6,3")))

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each pool, which goes through all changes."""
        from stripesim.scenarios.studies.changes.measured import (
            MeasuredPool,
            load_changes,
        )
        from stripesim.scenarios.studies.changes.runs import POOLS, change_rows

        pools: tuple[MeasuredPool, ...] = POOLS
        folder = setting.options.get("data")
        if folder is not None:
            pools = tuple(dict.fromkeys(each.pool for each in load_changes(folder)))
        return [
            Call(pool.scheme, change_rows, (pool, setting.engine)) for pool in pools
        ]

    def ledger(self, setting: Setting, rows: pl.DataFrame) -> Ledger:
        """Judge what ships, or the rows of another folder."""
        folder = setting.options.get("data")
        if folder is None:
            return super().ledger(setting, rows)
        from stripesim.calibration.ledger.verdicts import judge
        from stripesim.scenarios.studies.changes.claims import simulated_metric
        from stripesim.scenarios.studies.changes.measured import (
            claims_of_changes,
            load_changes,
        )

        claims = claims_of_changes(load_changes(folder))
        values = {claim.id: simulated_metric(rows, claim) for claim in claims}
        return judge(claims, values, parameters=self.parameters())

    def provenance(self, setting: Setting, tasks: Any) -> dict[str, Any]:
        """Return the generation and the parameter set."""
        from stripesim.scenarios.studies.ceph16.cluster import PARAMETERS

        return {"generation": "pacific", "parameters": PARAMETERS}


STUDY = Changes()
