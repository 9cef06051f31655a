"""`stripesim load`: draw latency over throughput for each scheme."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stripesim.cli import options, output

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stripesim.scenarios.load.results import LoadCurve, LoadPoint


def load(
    scenario: options.ScenarioArgument,
    p99: Annotated[
        list[str] | None,
        typer.Option(
            "--p99",
            metavar="TIME",
            help="Bound of the 99th percentile, such as 5ms, to find the highest rate within. Repeatable.",
        ),
    ] = None,
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    seed: options.SeedOption = None,
    engine: options.EngineOption = "compiled",
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Worker processes. Default: one for each core."),
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(
            min=100,
            help="Requests of each run, 5 for each point. Default: 6,000 to 20,000, by the OSDs.",
        ),
    ] = None,
    unchecked: options.UncheckedOption = False,
    out: options.OutOption = None,
    report: options.ReportOption = False,
    width: options.WidthOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Draw latency over throughput, from a tenth of saturation to past it, with the knee of each scheme."""
    report_folder = output.check_out(out, report=report)
    width_inch = options.width_inch(width, out)
    bounds_s = [_bound_s(text) for text in p99 or ()]
    from stripesim.scenarios.load.answer import load_document, rounded_rate
    from stripesim.scenarios.load.curves import POINTS_MAX, load_curves
    from stripesim.scenarios.schema.keys import cells
    from stripesim.scenarios.schema.loader import load_scenario

    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    total = POINTS_MAX * len(cells(loaded))
    with output.progress(loaded.name, total) as step:

        def show(curve: LoadCurve, point: LoadPoint) -> None:
            step(f"{curve.cell.scheme} at {rounded_rate(point.offered_iops)}/s")

        curves = load_curves(
            loaded,
            engine=engine,
            p99_bounds_s=bounds_s,
            requests=requests,
            jobs=jobs,
            on_point=show,
            unchecked=unchecked,
        )
    document = load_document(loaded, curves, engine=engine)
    written: list[Path] = []
    if out is not None:
        written += _write(out, document, curves, width_inch)
    if report_folder is not None:
        from stripesim.scenarios.report.load import report_of_load

        page = report_of_load(loaded, curves, document)
        written += output.write_page(report_folder, page)
    refusals = document["refusals"]
    output.warn_refused(refusals, unchecked=unchecked)
    if not output.write_json(json_to, document):
        audited = [*refusals, *document["falls"]]
        outside = [line for line in document["warnings"] if line not in audited]
        output.warn_outside(outside, report=report_folder)
        for line in document["falls"]:
            print(f"warning: {line}", file=sys.stderr)
        _print(curves, document)
        output.list_written(written)
    raise typer.Exit(output.audited_status(refusals, unchecked=unchecked))


def _bound_s(text: str) -> float:
    from stripesim.scenarios.schema.units import parse_span_s

    try:
        return parse_span_s(text)
    except ValueError as error:
        raise ValueError(f"--p99: {error}") from None


def _print(curves: Sequence[LoadCurve], document: Mapping[str, Any]) -> None:
    from stripesim.scenarios.load.answer import curve_title, notes_of, rows_of

    terminal = output.console()
    for curve in curves:
        rows = rows_of(curve)
        title = curve_title(curve)
        terminal.print(output.table_of(rows, numbers=range(5), title=title))
    for line in document["sentences"]:
        print(line)
    for line in [*notes_of(curves), *document["notes"]]:
        print(f"note: {line}")


def _write(
    out: Path,
    document: Mapping[str, Any],
    curves: Sequence[LoadCurve],
    width_inch: float | None,
) -> list[Path]:
    from stripesim.scenarios.figures.results import save_figures
    from stripesim.scenarios.load.figure import draw_load
    from stripesim.scenarios.run.results import write_files

    files = {
        "load.json": json.dumps(document, indent=1).encode(),
        "load.csv": _csv_of(document).encode(),
    }
    figures = draw_load(curves)
    return write_files(out, files) + save_figures(figures, out, width_inch=width_inch)


def _csv_of(document: Mapping[str, Any]) -> str:
    """Return the points as CSV, one per line."""
    from stripesim.scenarios.run.results import csv_text

    keys = ("scheme", "op", "pattern", "block_size_bytes")
    return csv_text(
        {**{key: curve[key] for key in keys}, **point}
        for curve in document["curves"]
        for point in curve["points"]
    )
