"""Compare published recoveries with simulated ones: schedulers, hung OSDs, savings of codes."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.models.problems import NotComputedError
from stripesim.scenarios.studies.base import Setting, Study
from stripesim.scenarios.studies.recovery import runs
from stripesim.scenarios.studies.tasks import Call, Task


class Recovery(Study):
    """Recovery next to clients. One factor of the host is fitted to the row without recovery."""

    name = "recovery"

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each configuration."""
        engine = setting.engine
        return [
            *(
                Call(
                    f"{source}: {name}",
                    runs.scheduler_row,
                    (source, name, *rest, engine),
                )
                for source, name, *rest in runs.schedulers()
            ),
            *(Call(name, runs.hung_row, (name, engine)) for name in runs.HUNG),
            *(
                Call(f"repair of {paper}", runs.pair_row, (paper, engine))
                for paper in runs.PAIRS
            ),
        ]

    def vocabulary(self, rows: pl.DataFrame) -> Mapping[str, Any]:
        """Return the names that expressions know: result rows by experiment and configuration."""
        results = {
            (row["experiment"], row["configuration"]): row
            for row in rows.iter_rows(named=True)
        }

        def run(experiment: str, configuration: str) -> Mapping[str, Any]:
            if (experiment, configuration) not in results:
                raise NotComputedError
            return results[experiment, configuration]

        def configuration(claim: Claim) -> Mapping[str, Any]:
            if claim.role == "not-derivable":
                raise NotComputedError(claim.note)
            return run(claim.paper, claim.baseline)

        def rate_ratio(names: str) -> float:
            first, second = names.split(" against ")
            rate = "objects_per_s"
            return float(
                run("mclock2021", first)[rate] / run("mclock2021", second)[rate]
            )

        return {"run": run, "configuration": configuration, "rate_ratio": rate_ratio}


STUDY = Recovery()
