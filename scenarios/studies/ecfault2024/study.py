"""Run what the claims of Han et al. 2024 need and what lies beyond them, and judge the claims."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, ClassVar

from stripesim.scenarios.studies.base import (
    Ablation,
    Setting,
    Study,
    StudyResult,
    Table,
    experiments_option,
)
from stripesim.scenarios.studies.tasks import Row, Task


class Ecfault2024(Study):
    """Recovery under configurations of an erasure-coded pool; nothing was fitted to the source."""

    name = "ecfault2024"
    summary = "recovery under configurations of an erasure-coded pool (ECFault)"
    title = (
        "Han et al. 2024 (ECFault): configurations of erasure-coded pools, simulated"
    )
    introduction = (
        "Every number that R. Han et al., “Revisiting Erasure Codes: A Configuration Perspective” "
        "(HotStorage 2024), states on its slides, beside what the simulated cluster does. Nothing was "
        "fitted. Volume of the data, number of OSDs and the swept values are not on the slides; they "
        "come from the source's repository or are assumed, as the parameters say."
    )
    scenario = str(files("stripesim.scenarios.studies.ecfault2024") / "base.toml")
    scenario_sets = ("faults.events=[{osds=[0], at_s=0.0}]",)
    fixed_keys = ("schemes", "faults.events", "recovery.", "cache-")
    options = (experiments_option("The ledger needs storage and profiles."),)
    ablations: ClassVar[Mapping[str, Ablation]] = {
        "clay-free": Ablation(
            "Clay's kernel takes no time", ("study.clay_kernel_factor=1e-9",)
        ),
        "no-checking-period": Ablation(
            "an OSD that is down is out at once", ("faults.down_out_interval_s=0.0",)
        ),
    }

    def parameters(self) -> list[Row]:
        """List models, device, store, cache, autoscaler and clocks."""
        from stripesim.scenarios.studies.ecfault2024.runs import parameters

        return parameters()

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the experiments, the seed and the base configuration."""
        from stripesim.scenarios.studies.ecfault2024.profiles import CODES, profile

        base = profile("base").scenario(CODES[0])
        return {
            "experiments": [task.words for task in tasks],
            "seed": base.seed,
            "parameters": "scenarios/studies/ecfault2024/parameters.toml",
            "base": base.model_dump(mode="json"),
            "profiles": "scenarios/studies/ecfault2024/profiles.toml",
        }

    def tables(self, result: StudyResult) -> Mapping[str, Table]:
        """Return what storage consists of, what padding implies, and every profile."""
        from stripesim.scenarios.studies.ecfault2024.tables import tables

        return tables(result.rows)


STUDY = Ecfault2024()
