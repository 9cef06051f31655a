"""The answer of `stripesim sweep`: means as a table, JSON, files, a figure and a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stripesim.scenarios.answers.sweep.plan import SweepPlan
from stripesim.scenarios.answers.sweep.run import INTERRUPTED, SweepResult
from stripesim.scenarios.answers.sweep.stats import CELL_COLUMNS
from stripesim.scenarios.answers.sweep.table import for_terminal, means_table
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import csv_text, json_text, result_files

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

#: Exit status of a sweep that the user interrupted.
_STATUS_INTERRUPTED: Final = 130


def answer_of_sweep(
    plan: SweepPlan, result: SweepResult, *, folder: Path | None, unchecked: bool
) -> Answer:
    """Return the answer of a sweep, complete or not.

    Parameters
    ----------
    plan
        The tasks.
    result
        The rows.
    folder
        Folder with the stored rows, from which the sweep can continue, or None without one.
    unchecked
        True if the numbers of refused rows are shown.
    """

    @cache
    def figure() -> CaptionedFigure | None:
        # Matplotlib loads here, because many sweeps draw nothing.
        from stripesim.scenarios.answers.sweep.figures import draw_sweep

        return draw_sweep(result.aggregated, plan.keys)

    def figures() -> dict[str, CaptionedFigure]:
        drawn = figure()
        return {} if drawn is None else {"sweep": drawn}

    def page() -> str:
        from stripesim.scenarios.answers.sweep.report import report_of_sweep

        return report_of_sweep(plan, result, figure())

    return Answer(
        document=result.to_json(),
        shown=[for_terminal(means_table(result.aggregated, plan.keys))],
        outside=result.warnings,
        warnings=result.falls,
        refusals=result.refusals,
        alerts=list(_alerts(plan, result, folder, unchecked=unchecked)),
        files=lambda: _files(result),
        figures=figures,
        page=page,
        status=_status(result),
    )


def _status(result: SweepResult) -> int:
    if result.stopped == INTERRUPTED:
        return _STATUS_INTERRUPTED
    if result.failed or result.stopped:
        return 1
    return 0


def _files(result: SweepResult) -> dict[str, bytes]:
    extra = {
        "aggregated.csv": csv_text(result.aggregated),
        "failed.json": json_text(result.failed),
    }
    return result_files(result.rows, result.provenance, extra)


def _alerts(
    plan: SweepPlan, result: SweepResult, folder: Path | None, *, unchecked: bool
) -> Iterator[str]:
    """Yield lines about refused, damaged, unsteady, failed and missing rows."""
    done = result.rows.height
    if result.refusals and not unchecked:
        yield f"refused: {result.refused} of {done} rows; --unchecked shows their numbers"
    if result.damaged:
        yield (
            f"warning: skipped {result.damaged} damaged rows in {folder} and simulated their cells again"
        )
    yield from _unsteady(plan, result)
    yield from map(_failure, result.failed)
    if result.stopped:
        yield f"stopped: {result.stopped}; {done} of {len(plan.tasks)} rows are done"
        if folder is not None:
            yield f"repeat the command with --resume to continue from {folder}"


def _unsteady(plan: SweepPlan, result: SweepResult) -> Iterator[str]:
    """Yield a line about the rows without a steady state. The audit gives its own reason for refused rows."""
    if result.rows.is_empty():
        return
    accepted = result.rows.filter(result.rows["refused"].is_null())
    unsteady = accepted.filter(~accepted["steady"])
    if unsteady.is_empty():
        return
    first = unsteady.row(0, named=True)
    where = [str(first[key]) for key in CELL_COLUMNS if first[key]]
    where += [f"{key}={first[key]}" for key in plan.keys]
    yield (
        f"warning: {unsteady.height} of {result.rows.height} rows did not reach a steady state; "
        f"the first: {' '.join(where)}: {first['unsteady_reason']}"
    )


def _failure(failed: Mapping[str, Any]) -> str:
    where = (
        f"{key}={value}"
        for key, value in failed.items()
        if key not in ("task", "reason")
    )
    return f"failed: {' '.join(where)}: {failed['reason']}"
