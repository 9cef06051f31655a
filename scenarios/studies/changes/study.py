"""Planned changes on a real cluster, measured and simulated."""

from typing import Any

from stripesim.scenarios.studies.base import Setting, Study, experiments_option
from stripesim.scenarios.studies.tasks import Row


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
    options = (experiments_option("The ledger needs both."),)

    def parameters(self) -> list[Row]:
        """List the numbers of the cluster's models."""
        from stripesim.models.coding import parse_scheme
        from stripesim.scenarios.run.execute import parameters_of
        from stripesim.scenarios.studies.ceph16.cluster import models_for

        return parameters_of(models_for(parse_scheme("rs:6,3")))

    def provenance(self, setting: Setting, tasks: Any) -> dict[str, Any]:
        """Return what the rows depend on beside version, engine and machine."""
        from stripesim.scenarios.studies.ceph16.cluster import PARAMETERS

        return {"generation": "pacific", "parameters": PARAMETERS}


STUDY = Changes()
