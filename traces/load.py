"""Reading a file that may be a block trace or a failure trace, and summing it up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stripesim.traces.columns import BlockTrace
from stripesim.traces.failures.columns import FailureTrace
from stripesim.traces.failures.read import FAILURE_FORMATS, failure_format, read_failures
from stripesim.traces.failures.statistics import failure_info
from stripesim.traces.problems import TraceError, shown
from stripesim.traces.read import locate, read_trace
from stripesim.traces.registry import FORMATS, head_of
from stripesim.traces.source import TraceSource
from stripesim.traces.statistics import info


def load(path: str | Path, *, format: str | None = None, strict: bool = False) -> BlockTrace | FailureTrace:
    """Read a trace of any format.

    Parameters
    ----------
    path : str or pathlib.Path
        Plain or compressed.
    format : str, optional
        One of the names in `FORMATS` or `FAILURE_FORMATS`; recognised when not given.
    strict : bool
        Refuse a file with any fault.

    Returns
    -------
    BlockTrace or FailureTrace

    Raises
    ------
    TraceError
        As `read_trace` and `read_failures`.
    """
    failures = [form.name for form in FAILURE_FORMATS]
    if format is not None:
        if format in failures:
            return read_failures(path, format=format, strict=strict)
        names = [form.name for form in FORMATS]
        if format not in names:
            raise TraceError(f"--format: got {shown(format)}, wanted one of {', '.join([*names, *failures])}")
        return read_trace(path, format=format, strict=strict)
    found = failure_format(head_of(TraceSource(locate(Path(path)))))
    if found is not None:
        return read_failures(path, format=found.name, strict=strict)
    return read_trace(path, strict=strict)


def describe(trace: BlockTrace | FailureTrace) -> dict[str, Any]:
    """Sum up a trace of either kind.

    Parameters
    ----------
    trace : BlockTrace or FailureTrace
        The trace.

    Returns
    -------
    dict
        What `info` or `failure_info` returns.
    """
    return failure_info(trace) if isinstance(trace, FailureTrace) else info(trace)
