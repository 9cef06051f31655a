"""Writes a trace of any format as blkparse text, or as the columnar form in Parquet or CSV."""

from __future__ import annotations

from pathlib import Path

from stripesim.traces.columns import BlockTrace
from stripesim.traces.failures.columns import FailureTrace
from stripesim.traces.problems import TraceError, shown
from stripesim.traces.write_blkparse import write_blkparse

SUFFIXES = (".parquet", ".csv", ".txt")
"""Parquet and CSV of the columns; text as blkparse prints it (block traces only)."""


def convert(trace: BlockTrace | FailureTrace, path: str | Path) -> list[Path]:
    """Write a trace in the form that the file's suffix says.

    Parameters
    ----------
    trace : BlockTrace or FailureTrace
        The trace.
    path : str or pathlib.Path
        `.parquet` or `.csv`: `REQUEST_SCHEMA` (`EVENT_SCHEMA` for failures), and beside it, where there are
        any, `NAME.commands` (`NAME.spans`). `.txt`: blkparse's default columns.

    Returns
    -------
    list of pathlib.Path
        The files written.

    Raises
    ------
    TraceError
        When the suffix is another, the form cannot hold the trace, a file would replace the trace's own
        source (also through a link), or cannot be written.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise TraceError(f"{path}: got suffix {shown(path.suffix)}, wanted one of {', '.join(SUFFIXES)}")
    try:
        if path.suffix == ".txt":
            if isinstance(trace, FailureTrace):
                raise TraceError(f"{path}: got a failure trace, wanted .parquet or .csv for it")
            _keep_source(trace, path)
            write_blkparse(trace, path)
            return [path]
        first, more, word = (
            (trace.events, trace.spans, "spans")
            if isinstance(trace, FailureTrace)
            else (trace.requests, trace.commands, "commands")
        )
        tables = {path: first}
        if more is not None:
            tables[path.with_suffix(f".{word}{path.suffix}")] = more
        for place in tables:
            _keep_source(trace, place)
        for place, table in tables.items():
            if path.suffix == ".csv":
                table.write_csv(place)
            else:
                table.write_parquet(place)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise TraceError(f"{path}: got {reason!r}, wanted a file that can be written") from None
    return list(tables)


def _keep_source(trace: BlockTrace | FailureTrace, path: Path) -> None:
    source = Path(trace.source)
    if path.exists() and source.exists() and path.samefile(source):
        raise TraceError(f"{path}: got the file that the trace was read from, wanted another (--out FOLDER)")
