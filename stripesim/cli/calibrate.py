"""The command `calibrate`: fit a parameter set to measurements of your own cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stripesim.cli import options, output


def calibrate(
    measured: Annotated[
        Path,
        typer.Argument(
            help="A folder with times.csv and clusters.toml, or with fio's JSON outputs and a scenario.",
            show_default=False,
        ),
    ],
    jobs: Annotated[
        int | None,
        typer.Option(help="Worker processes. Default: one for each core."),
    ] = None,
    unchecked: options.UncheckedOption = False,
    out: options.OutOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Fit a parameter set to a few measurements of your own cluster."""
    to = output.destination(out, json_to)
    from stripesim.scenarios.answers.calibrate.answer import answer_of_calibration
    from stripesim.scenarios.answers.calibrate.calibrate import calibrate as fit_cluster

    with output.progress("calibrate", None) as step:
        calibration = fit_cluster(
            measured, jobs=jobs, progress=step, unchecked=unchecked
        )
    output.deliver(answer_of_calibration(calibration), to, unchecked=unchecked)
