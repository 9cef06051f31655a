"""Simulate the study's rows, with the parameters that a run of the study changes."""

from collections.abc import Mapping, Sequence
from typing import Any

from stripesim.calibration.measured.hardware import MeasuredHardware
from stripesim.calibration.measured.rows import MeasuredRow
from stripesim.models.problems import MeasuredError, Problem
from stripesim.scenarios.cells.measured import ROUNDS, predict
from stripesim.scenarios.studies.nvme.measured import study_hardware
from stripesim.scenarios.studies.parameters import changed_models
from stripesim.scenarios.studies.tasks import Call, Row


def simulate_rows(
    rows: Sequence[MeasuredRow],
    hardware: MeasuredHardware,
    engine: str = "compiled",
    rounds: int = ROUNDS,
) -> list[Row]:
    """Simulate rows that share a run, and return a result row for each."""
    return predict(rows, hardware, engine, rounds, fitted=changed_models)


def tasks_for(
    rows: Sequence[MeasuredRow],
    clusters: Mapping[str, Mapping[str, Any]],
    engine: str,
    file: str,
) -> list[Call]:
    """List the simulations of the rows that count: one for all rows of the same run."""
    runs: dict[tuple[Any, ...], list[MeasuredRow]] = {}
    for row in rows:
        if row.role != "not-derivable":
            runs.setdefault(row.run_key, []).append(row)
    tasks = []
    problems: list[Problem] = []
    for shared in runs.values():
        try:
            hardware = study_hardware(shared[0], clusters, file)
        except MeasuredError as error:
            problems += error.problems
            continue
        weight = float(shared[0].clients * shared[0].queue_depth) * (
            2 - shared[0].read_fraction
        )
        tasks.append(
            Call(shared[0].id, simulate_rows, (tuple(shared), hardware, engine), weight)
        )
    if problems:
        raise MeasuredError(*dict.fromkeys(problems))
    return tasks
