"""The command `calibrate`: fit a parameter set to measurements of your own cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stripesim.cli import options, output

if TYPE_CHECKING:
    from stripesim.scenarios.calibrating.calibrate import CalibrationResult


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
        typer.Option(min=1, help="Worker processes. Default: one for each core."),
    ] = None,
    out: options.OutOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Fit a parameter set to a few measurements of your own cluster."""
    output.check_out(out)
    from stripesim.scenarios.calibrating.calibrate import calibrate as fit_cluster

    result = fit_cluster(
        measured, jobs=jobs, progress=lambda line: print(line, file=sys.stderr)
    )
    written = [] if out is None else _write(out, result)
    if output.write_json(json_to, result.to_json()):
        return
    _print(result)
    output.list_written(written)


def _write(out: Path, result: CalibrationResult) -> list[Path]:
    from stripesim.scenarios.calibrating.figure import draw_calibration
    from stripesim.scenarios.calibrating.parameter_file import (
        FILE,
        parameter_text,
        scenario_text,
    )
    from stripesim.scenarios.figures.results import save_figures
    from stripesim.scenarios.run.results import write_files

    files = {
        FILE: parameter_text(result).encode(),
        "calibration.json": json.dumps(result.to_json(), indent=1).encode(),
    }
    if result.scenario.cluster.crush_map is None:
        files["scenario.toml"] = scenario_text(result).encode()
    written = write_files(out, files)
    return written + save_figures({"calibration": draw_calibration(result)}, out)


def _print(result: CalibrationResult) -> None:
    """Print the factors, each value before and after, and what to measure next."""
    from stripesim.scenarios.schema.units import number_text

    console = output.console()
    console.print(
        output.table_of(
            [
                {
                    "factor": factor.name,
                    "value": f"{factor.value:.2f}",
                    "95 % interval": f"{factor.low:.2f} to {factor.high:.2f}",
                    "unit": "µs" if factor.unit == "us" else "×",
                    "told by the rows": "yes" if factor.is_known else "no: as assumed",
                }
                for factor in result.fitted
            ]
        )
    )
    console.print(
        output.table_of(
            [
                {
                    "value": value.id,
                    "role": value.role,
                    "load": value.load,
                    "measured": number_text(value.measured, digits=4),
                    "before": number_text(value.before, digits=4),
                    "after": number_text(value.after, digits=4),
                    "after / measured": f"{value.after / value.measured:.2f}",
                }
                for value in result.values
            ]
        )
    )
    held_out = result.held_out()
    if held_out:
        before = result.count_within(after=False)
        after = result.count_within(after=True)
        print(
            f"held out: {after} of {held_out} values within 25 % after calibration, {before} before"
        )
    if result.further:
        best = result.further[0]
        print(
            f"measure next: {best.load}, whose rate is known to ±{best.uncertainty:.0%}"
        )
        print(f"  {best.fio}")
