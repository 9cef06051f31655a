"""The answers of `stripesim trace`: a summary of a trace, and what was fitted to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stripesim.calibration.ssd.drive import LIKE, drive_toml, drive_warnings
from stripesim.calibration.trace_fit import TraceFit
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.tables import Table
from stripesim.traces import BlockTrace, convert, describe
from stripesim.traces.failures.columns import FailureTrace
from stripesim.traces.failures.statistics import end_warnings

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

#: Headings for the keys of mappings in a summary.
_KEYS_OF: Final = {
    "dispersion": "window [s]",
    "hit_ratio": "cache / footprint",
    "counts": "lines",
    "reasons": "reason",
}


def answer_of_trace(trace: BlockTrace | FailureTrace) -> Answer:
    """Summarise a trace, and draw a block trace."""

    def figures() -> dict[str, CaptionedFigure]:
        if not isinstance(trace, BlockTrace):
            return {}
        from stripesim.scenarios.show.figures.trace_sheet import draw_trace

        return {"trace-info": draw_trace(trace)}

    summary = describe(trace)
    warnings = [] if isinstance(trace, BlockTrace) else end_warnings(trace)
    return Answer(
        document=summary,
        warnings=warnings,
        shown=summary_tables(summary),
        saved_as="trace-info.json",
        figures=figures,
    )


def answer_of_fit(
    fitted: TraceFit, trace: BlockTrace | FailureTrace, *, like: str = LIKE
) -> Answer:
    """Return the answer of a fit.

    Parameters
    ----------
    fitted
        Result of `stripesim.calibration.trace_fit.fit_trace`.
    trace
        The same trace.
    like
        Device parameter set for numbers that the trace does not show.
    """
    # A failure trace has lifetimes and repairs instead, which are not drawn.

    def files() -> dict[str, bytes]:
        is_service = any(fit.quantity == "service" for fit in fitted.service)
        if not (is_service and isinstance(trace, BlockTrace)):
            return {}
        return {"drive.toml": drive_toml(fitted.service, trace, like).encode()}

    def figures() -> dict[str, CaptionedFigure]:
        if not isinstance(trace, BlockTrace):
            return {}
        from stripesim.scenarios.show.figures.service_fit import draw_fit

        return {
            f"{fit.operation}-{fit.quantity}-fit": draw_fit(fit, trace)
            for fit in fitted.service
        }

    if isinstance(trace, BlockTrace):
        warnings = drive_warnings(fitted.service, trace, like)
    else:
        warnings = end_warnings(trace)
    return Answer(
        document=fitted.to_json(),
        warnings=warnings,
        shown=[fitted.summary()],
        saved_as="trace-fit.json",
        files=files,
        figures=figures,
    )


def answer_of_conversion(trace: BlockTrace | FailureTrace, path: Path) -> Answer:
    """Write a trace as columns or as text, by the suffix of the path, and return what was written.

    Raises
    ------
    TraceError
        If the suffix is wrong, the file is the source of the trace, or it cannot be written.
    """
    written = convert(trace, path)
    document = {
        "format": trace.format,
        "rows": len(trace),
        "faults": trace.faults.count,
        "written": [str(one) for one in written],
    }
    return Answer(document=document, notes=[f"wrote {one}" for one in written])


def write_fit(
    fitted: TraceFit,
    trace: BlockTrace | FailureTrace,
    folder: str | Path,
    *,
    like: str = LIKE,
) -> list[Path]:
    """Write ``trace-fit.json`` and, for service times, figures and a ``drive.toml`` for ``cluster.drive``.

    Parameters
    ----------
    fitted
        Result of `fit_trace`.
    trace
        The same trace.
    folder
        Output folder, which is created if needed.
    like
        Device parameter set for numbers that the trace does not show.

    Returns
    -------
    list of pathlib.Path
        The files written.

    Raises
    ------
    TraceError
        If `like` is a hard disk.
    ParameterSetError
        If `like` does not exist.
    """
    return answer_of_fit(fitted, trace, like=like).save(Path(folder))


def summary_tables(summary: Mapping[str, Any]) -> list[Table]:
    """Lay out a summary by `stripesim.traces.describe`: single values first, then lists and groups.

    Values that the trace does not have are left out.
    """
    single = {
        key: value
        for key, value in summary.items()
        if value is not None and not isinstance(value, dict | list)
    }
    tables = [_table("", ("property", "value"), single.items())]
    for key, value in summary.items():
        heading = key.replace("_", " ")
        if isinstance(value, dict) and value:
            columns = (_KEYS_OF.get(key, ""), "value")
            tables.append(_table(heading, columns, value.items()))
        elif isinstance(value, list) and value:
            rows = (row.values() for row in value)
            tables.append(_table(heading, list(value[0]), rows))
    return tables


def _table(
    heading: str, columns: Sequence[str], rows: Iterable[Iterable[Any]]
) -> Table:
    texts = [[_cell(value) for value in row] for row in rows]
    return Table(heading, columns, texts, caption_shown=bool(heading))


def _cell(value: Any) -> str:
    """Format a value of a summary: four digits of a fraction, all digits of a count."""
    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return number_text(value, digits=4)
