"""Fit the numbers of this study in the stages of ``fit.toml``.

``python -m stripesim.scenarios.studies.cores.fit [GROUP...]`` prints the values in ``parameters.toml``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

from stripesim.scenarios.studies.cores.measured import (
    CALIBRATION,
    CLUSTER_CALIBRATION,
    RATE,
    CoresRow,
    load,
)
from stripesim.scenarios.studies.cores.runs import simulated
from stripesim.scenarios.studies.nvme.measured import load as load_nvme
from stripesim.scenarios.studies.parameters import Changes, changes_applied
from stripesim.scenarios.studies.staged_fit import (
    FitStage,
    RowValues,
    fit_stages,
    run_stages,
)


def main(groups: list[str]) -> None:
    """Fit the groups, by default all, and print."""
    stages = [
        stage for stage in fit_stages("cores") if not groups or stage.group in groups
    ]
    run_stages(stages, simulator=simulator, published=measured)


def rows() -> dict[str, CoresRow]:
    """Return the rows that a fit may see."""
    known = {row.id: row for row in load() if row.id in CALIBRATION}
    write = known["cpu_power-024"]
    (cluster,) = (row for row in load_nvme()[0] if row.id == CLUSTER_CALIBRATION)
    known[CLUSTER_CALIBRATION] = replace(
        write,
        id=cluster.id,
        scheme=cluster.scheme,
        hardware=write.hardware.replace("1 OSD", "60 OSDs"),
        value=str(cluster.measured["iops"]),
    )
    return known


def measured(stage: FitStage) -> RowValues:
    """Return the measured rates of a stage's rows."""
    known = rows()
    return {name: float(known[name].value) for name in stage.rows}


def simulator(
    stage: FitStage, known: Mapping[str, float]
) -> Callable[[Mapping[str, float]], RowValues]:
    """Return the function that simulates a stage's rows."""
    of_stage = rows()

    def simulate(values: Mapping[str, float]) -> RowValues:
        with changes_applied(Changes(numbers={**known, **values})):
            return {name: simulated(of_stage[name])[RATE] for name in stage.rows}

    return simulate


if __name__ == "__main__":
    main(sys.argv[1:])
