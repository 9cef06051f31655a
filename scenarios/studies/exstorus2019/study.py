"""Run what the claims of Kim et al. 2019 need and what lies beyond them, and judge the claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from stripesim.scenarios.studies.base import (
    Ablation,
    Setting,
    Study,
    StudyResult,
    experiments_option,
)
from stripesim.scenarios.studies.tasks import Row, Task

if TYPE_CHECKING:
    import polars as pl


class Exstorus2019(Study):
    """One record's write through a striped file system, step by step."""

    name = "exstorus2019"
    summary = "write cost of an exa-scale file system on faster networks"
    title = "Kim et al. 2019: erasure-coded writes on faster networks"
    introduction = (
        "What D.-O. Kim et al., “Cost analysis of erasure coding for exa-scale storage” (The Journal of"
        " Supercomputing, 2019), state of one record’s write, step by step, beside the simulated write "
        "path."
    )
    options = (experiments_option("The ledger needs steps and codes."),)
    ablations: ClassVar[Mapping[str, Ablation]] = {
        "no-metadata-server": Ablation(
            "the metadata server answers at once", ("write.mds_round_trip_ns=0",)
        ),
        "one-core": Ablation("the client has one core", ("write.cores_count=1",)),
        "full-network-rate": Ablation(
            "the network carries its nominal rate",
            ("write.network_efficiency_fraction=1",),
        ),
    }

    def parameters(self) -> list[Row]:
        """List models and kernel ratios."""
        from stripesim.scenarios.studies.exstorus2019.parameters import listed

        return listed()

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the experiments, and what measured the ratios between the kernels."""
        from stripesim.scenarios.studies.exstorus2019.parameters import kernel_ratios

        return {
            "experiments": [task.words for task in tasks],
            "parameters": "scenarios/studies/exstorus2019/parameters.toml",
            "kernel_ratios": kernel_ratios()["provenance"],
        }

    def figure_tables(self, result: StudyResult) -> dict[str, pl.DataFrame]:
        """Return the times of steps, and the entries of the source's Tables 1 to 3."""
        from stripesim.scenarios.studies.exstorus2019.runs import step_table
        from stripesim.scenarios.studies.exstorus2019.source import entry_table

        return {"steps": step_table(result.rows), "table_entries": entry_table()}


STUDY = Exstorus2019()
