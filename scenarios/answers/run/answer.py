"""The answer of `stripesim run`: tables and sentences, JSON, files, figures and a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from stripesim.scenarios.answers.run.cost_table import cost_parts
from stripesim.scenarios.answers.run.tables import (
    advice_table,
    capacity_table,
    processor_parts,
    timeline_table,
)
from stripesim.scenarios.answers.run.words import sentences_of_run
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import json_text, result_files
from stripesim.scenarios.show.result_table import result_table
from stripesim.scenarios.show.tables import Table, TerminalPart

if TYPE_CHECKING:
    from stripesim.scenarios.answers.load.results import LoadCurve
    from stripesim.scenarios.answers.run.execute import ScenarioResult
    from stripesim.scenarios.answers.run.report.contents import RunReport
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

#: Width of the table of rows in a pipe or file [characters].
_ROWS_WIDTH: Final = 100
#: Exit status of a run that the user interrupted.
_INTERRUPTED: Final = 130


def answer_of_run(
    result: ScenarioResult,
    *,
    costs: bool = False,
    cores_at_iops: float | None = None,
    report: RunReport | None = None,
    curves: Sequence[LoadCurve] = (),
) -> Answer:
    """Return the answer of a scenario's result.

    Parameters
    ----------
    result
        The result.
    costs
        Show the latency by step.
    cores_at_iops
        Show the use of processors, and the cores that are busy at this rate [1/s].
    report
        Contents of the page, or None for no page.
    curves
        Load curves, for the page.
    """
    alerts = []
    if result.stopped:
        alerts.append("stopped: results cover the finished cells only")
    return Answer(
        document=result.to_json(),
        shown=list(_parts(result, costs=costs, cores_at_iops=cores_at_iops)),
        outside=result.warnings,
        warnings=result.holes,
        refusals=result.refusals,
        alerts=alerts,
        files=lambda: _files(result),
        figures=lambda: _figures(result),
        page=None if report is None else partial(_page, report, curves),
        status=_INTERRUPTED if result.stopped else 0,
    )


def _parts(
    result: ScenarioResult, *, costs: bool, cores_at_iops: float | None
) -> Iterator[str | Table | TerminalPart]:
    """Yield the tables of a result, and then its sentences."""
    yield TerminalPart(partial(result_table, result.rows), file_width=_ROWS_WIDTH)
    rows = result.rows.to_dicts()
    if costs:
        yield from cost_parts(rows)
    if result.advice:
        yield advice_table(result.advice)
    yield from map(timeline_table, result.timelines)
    if result.capacities:
        yield capacity_table(result.capacities)
    yield from sentences_of_run(rows)
    if cores_at_iops is not None:
        yield from processor_parts(result.processors, cores_at_iops)


def _files(result: ScenarioResult) -> Mapping[str, bytes]:
    extra = {"parameters.json": json_text(result.parameters)}
    if result.timelines:
        extra["timeline.json"] = json_text(result.timelines, indent=None)
    return result_files(result.rows, result.provenance, extra)


def _figures(result: ScenarioResult) -> Mapping[str, CaptionedFigure]:
    # Matplotlib takes longer to load than a short run.
    from stripesim.scenarios.show.figures.costs import draw_costs
    from stripesim.scenarios.show.figures.faults import draw_timelines
    from stripesim.scenarios.show.figures.latencies import draw_latencies
    from stripesim.scenarios.show.figures.results import draw_all

    return {
        **draw_all(result.accepted_rows),
        **draw_costs(result.accepted_rows),
        **draw_latencies(result.latencies),
        **draw_timelines(result.timelines),
    }


def _page(report: RunReport, curves: Sequence[LoadCurve]) -> str:
    from stripesim.scenarios.answers.run.report.page import page_of_run

    return page_of_run(report, curves)
