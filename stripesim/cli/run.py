"""What `stripesim run` does between reading options and printing."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stripesim.cli.output import (
    NO_FOLDER_FOR_REPORT,
    check_out,
    console,
    list_written,
    progress,
    warn_outside,
    write_json,
)

if TYPE_CHECKING:
    from stripesim.scenarios.run.advise import Gain
    from stripesim.scenarios.run.execute import ScenarioResult
    from stripesim.scenarios.schema.keys import Scenario

__all__ = ["RunOptions", "run"]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of ``stripesim run``, as they were given."""

    scenario: str
    sets: Sequence[str]
    engine: str
    seed: int | None
    costs: bool
    out: Path | None
    report: bool
    advise: bool = False


def run(options: RunOptions, json_to: str | None) -> int:
    """Run a scenario, write what is to be written, print the rest.

    Returns
    -------
    int
        Exit status: 0, or 130 if the run was interrupted after some of its cells.

    Raises
    ------
    ValueError
        If the scenario is wrong, or a report has no folder to go to.
    """
    if options.report and options.out is None:
        raise ValueError(NO_FOLDER_FOR_REPORT)
    check_out(options.out)
    from stripesim.scenarios.run.execute import run_scenario
    from stripesim.scenarios.schema.keys import cells
    from stripesim.scenarios.schema.loader import load_scenario

    scenario = load_scenario(options.scenario, sets=options.sets, seed=options.seed)
    with progress(f"{scenario.name}", len(cells(scenario))) as step:
        result = run_scenario(scenario, engine=options.engine, progress=step, costs=options.costs)
    gains = _advise(scenario, options) if options.advise and not result.stopped else []
    if gains:
        result = replace(result, advice=[gain.to_dict() for gain in gains])
    written = [] if options.out is None else _write(options.out, scenario, result, options)
    status = 0
    if result.stopped:
        status = 130
        print("stopped: the results are those of the cells that were done", file=sys.stderr)
    if write_json(json_to, result.to_json()):
        return status
    warn_outside(result.warnings, report=options.out if options.report else None)
    for line in result.holes:
        print(f"warning: {line}", file=sys.stderr)
    _print(result)
    list_written(written)
    return status


def _advise(scenario: Scenario, options: RunOptions) -> list[Gain]:
    """Simulate purchases."""
    from stripesim.scenarios.run.advise import advise, simulations

    with progress(f"{scenario.name}: purchases", simulations(scenario)) as step:
        return advise(scenario, engine=options.engine, progress=step)


def _write(out: Path, scenario: Scenario, result: ScenarioResult, options: RunOptions) -> list[Path]:
    """Write tables, parameters, figures and, where asked, the report."""
    from stripesim.scenarios.explain.costs_figure import draw_costs
    from stripesim.scenarios.figures.results import draw_all, save_figures
    from stripesim.scenarios.run.results import write_files, write_results

    extra = {"parameters.json": json.dumps(result.parameters, indent=1)}
    figures = {**draw_all(result.rows), **draw_costs(result.rows)}
    if result.timelines:
        from stripesim.scenarios.figures.faults import draw_timelines

        extra["timeline.json"] = json.dumps(result.timelines)
        figures |= draw_timelines(result.timelines)
    written = write_results(out, result.rows, result.provenance, extra)
    written += save_figures(figures, out)
    if options.report:
        from stripesim.scenarios.report.run import report_of_run

        with progress(f"{scenario.name}: report", len(scenario.schemes)) as step:
            page = report_of_run(scenario, result, engine=options.engine, progress=step)
        written += write_files(out, {"report.html": page.encode()})
    return written


def _print(result: ScenarioResult) -> None:
    """Print the tables and the lines below them."""
    from stripesim.cli.tables import advice_table, fault_lines, recorded_lines, repair_lines, timeline_table
    from stripesim.scenarios.explain.costs_table import print_costs
    from stripesim.scenarios.run.advise import notable
    from stripesim.scenarios.run.results import print_table
    from stripesim.scenarios.run.sentences import load_sentences

    terminal = console()
    print_table(result.rows, terminal)
    rows = result.rows.to_dicts()
    print_costs(rows, terminal)
    if result.advice:
        terminal.print(advice_table(notable(result.advice)))
    for timeline in result.timelines:
        terminal.print(timeline_table(timeline))
    for row in rows:
        for line in fault_lines(row):
            print(line)
    for line in [*load_sentences(rows), *repair_lines(rows), *recorded_lines(rows)]:
        print(line)
