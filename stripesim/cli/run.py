"""`stripesim run` simulates a scenario, and `stripesim cite` cites what a run used."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stripesim.cli import options, output

if TYPE_CHECKING:
    from stripesim.scenarios.answers.load.results import LoadCurve
    from stripesim.scenarios.answers.run.execute import ScenarioResult
    from stripesim.scenarios.schema.keys import Scenario


def run(
    scenario: options.ScenarioArgument,
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    engine: options.EngineOption = "compiled",
    seed: options.SeedOption = None,
    costs: Annotated[
        bool | None,
        typer.Option(
            "--costs/--no-costs",
            help="Print the latency by step. --no-costs also omits it from files.",
        ),
    ] = None,
    advise: Annotated[
        bool,
        typer.Option(
            "--advise",
            help="Simulate doubling each resource, alone and in pairs.",
        ),
    ] = False,
    cores: Annotated[
        float | None,
        typer.Option(
            "--cores-at",
            metavar="IOPS",
            help="Print processor time per thread class and host, and the cores busy at this rate.",
        ),
    ] = None,
    unchecked: options.UncheckedOption = False,
    load: Annotated[
        bool,
        typer.Option(
            "--load",
            help="Also simulate the load curve for the report, as `stripesim load` does. Needs --report.",
        ),
    ] = False,
    out: options.OutOption = None,
    report: options.ReportOption = False,
    width: options.WidthOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Simulate a scenario: each scheme under each workload pattern."""
    report_folder = output.check_out(out, report=report)
    width_inch = options.width_inch(width, out)
    from stripesim.scenarios.answers.run.execute import run_scenario
    from stripesim.scenarios.schema.keys import cells
    from stripesim.scenarios.schema.loader import load_scenario

    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    if load:
        _check_load(loaded, report_folder)
    # The breakdown by step takes a second run, so compute it only if it will be shown or saved.
    wanted = costs
    if wanted is None:
        wanted = out is not None or json_to is not None
    with output.progress(loaded.name, len(cells(loaded))) as step:
        result = run_scenario(
            loaded,
            engine=engine,
            progress=step,
            costs=wanted,
            first_full=wanted or cores is not None,
            unchecked=unchecked,
        )
    output.warn_refused(result.refusals, unchecked=unchecked)
    status = output.audited_status(result.refusals, unchecked=unchecked)
    if advise and not result.stopped and not status:
        from stripesim.scenarios.answers.run import advise as advice

        with output.progress(
            f"{loaded.name}: purchases", advice.simulations(loaded)
        ) as step:
            gains = advice.advise(loaded, engine=engine, progress=step)
        result = replace(result, advice=[gain.to_dict() for gain in gains])
    written = [] if out is None else _write(out, result, width_inch)
    if report_folder is not None:
        from stripesim.scenarios.answers.run.report.page import report_of_run

        curves: list[LoadCurve] = []
        if load and not result.stopped:
            curves = _load_curves(loaded, engine)
        with output.progress(f"{loaded.name}: report", len(loaded.schemes)) as step:
            page = report_of_run(
                loaded, result, engine=engine, progress=step, curves=curves
            )
        written += output.write_page(report_folder, page)
    if result.stopped:
        print("stopped: results cover the finished cells only", file=sys.stderr)
    if not output.write_json(json_to, result.to_json()):
        output.warn_outside(result.warnings, report=report_folder)
        for line in result.holes:
            print(f"warning: {line}", file=sys.stderr)
        _print(result, costs=bool(costs))
        if cores is not None:
            from stripesim.cli.tables import print_processors

            print_processors(result.processors, cores)
        output.list_written(written)
    # Exit status 130 marks incomplete results.
    raise typer.Exit(130 if result.stopped else status)


def cite(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN_DIR]",
            help="Folder that --out of a command wrote. Default: the tool alone.",
            show_default=False,
        ),
    ] = None,
    json_to: options.JsonOption = None,
) -> None:
    """Print BibTeX of the tool, and of the parameter sets, codes and sources that a run used."""
    from stripesim.scenarios.answers.cite import cite_run, cite_tool

    entries = cite_tool() if folder is None else cite_run(folder)
    document = {
        "run": None if folder is None else str(folder),
        "entries": [entry.to_json() for entry in entries],
    }
    if not output.write_json(json_to, document):
        print("\n\n".join(entry.bibtex() for entry in entries))


def _check_load(scenario: Scenario, report_folder: Path | None) -> None:
    """Reject a load curve that no report shows, or that the scenario cannot have, before the run."""
    from stripesim.scenarios.answers.load.curves import check_load

    if report_folder is None:
        raise ValueError("--load: got no --report, wanted a report to show the curve")
    check_load(scenario)


def _load_curves(scenario: Scenario, engine: str) -> list[LoadCurve]:
    from stripesim.scenarios.answers.load.curves import POINTS_MAX, load_curves
    from stripesim.scenarios.schema.keys import cells

    total = POINTS_MAX * len(cells(scenario))
    with output.progress(f"{scenario.name}: load", total) as step:
        return load_curves(
            scenario,
            engine=engine,
            on_point=lambda curve, point: step(curve.cell.scheme),
        )


def _write(out: Path, result: ScenarioResult, width_inch: float | None) -> list[Path]:
    """Write tables, parameters and figures."""
    from stripesim.scenarios.show.figures.costs import draw_costs
    from stripesim.scenarios.show.figures.latencies import draw_latencies
    from stripesim.scenarios.show.figures.results import draw_all, save_figures
    from stripesim.scenarios.show.files import write_results

    extra = {"parameters.json": json.dumps(result.parameters, indent=1)}
    figures = {
        **draw_all(result.accepted_rows),
        **draw_costs(result.accepted_rows),
        **draw_latencies(result.latencies),
    }
    if result.timelines:
        from stripesim.scenarios.show.figures.faults import draw_timelines

        extra["timeline.json"] = json.dumps(result.timelines)
        figures |= draw_timelines(result.timelines)
    written = write_results(out, result.rows, result.provenance, extra)
    return written + save_figures(figures, out, width_inch=width_inch)


def _print(result: ScenarioResult, *, costs: bool) -> None:
    """Print the tables and the sentences below them."""
    from stripesim.cli.costs import print_costs
    from stripesim.cli.tables import (
        advice_table,
        fault_lines,
        recorded_lines,
        repair_lines,
        timeline_table,
    )
    from stripesim.scenarios.answers.run.advise import notable
    from stripesim.scenarios.cells.notes import load_sentences
    from stripesim.scenarios.show.result_table import print_table

    terminal = output.console()
    print_table(result.rows, output.console(100))
    rows = result.rows.to_dicts()
    if costs:
        print_costs(rows, terminal)
    if result.advice:
        terminal.print(advice_table(notable(result.advice)))
    for timeline in result.timelines:
        terminal.print(timeline_table(timeline))
    faults = [line for row in rows for line in fault_lines(row)]
    for line in [
        *faults,
        *load_sentences(rows),
        *repair_lines(rows),
        *recorded_lines(rows),
    ]:
        print(line)
