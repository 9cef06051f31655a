"""Reading failure traces: the formats, how one is recognised, and the reading itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

from stripesim.traces.failures.alibaba import AlibabaSsdFormat
from stripesim.traces.failures.backblaze import BackblazeFormat
from stripesim.traces.failures.columns import FailureTrace
from stripesim.traces.failures.fta import FtaFormat, FtaSqliteFormat
from stripesim.traces.failures.lanl import LanlFormat
from stripesim.traces.problems import FaultLog, TraceError, shown
from stripesim.traces.registry import Head, head_of
from stripesim.traces.source import TraceSource


class FailureFormat(Protocol):
    """What a format must offer; one file per source of data."""

    @property
    def name(self) -> str:
        """Its name for `--format`."""

    def sniff(self, lines: tuple[str, ...], data: bytes) -> bool:
        """Tell from the first lines (text) or bytes (binary) whether a file is of this format."""

    def read(self, source: TraceSource, log: FaultLog) -> FailureTrace:
        """Read the file, noting faults in `log`."""


FAILURE_FORMATS: tuple[FailureFormat, ...] = (
    FtaSqliteFormat(),
    LanlFormat(),
    AlibabaSsdFormat(),
    BackblazeFormat(),
    FtaFormat(),
)
"""All formats of failure traces, in the order in which they are asked."""


def failure_format(head: Head) -> FailureFormat | None:
    """Recognise a failure trace's format from how the file starts; None where no format takes it."""
    if not head.data.strip():
        return None
    return next((form for form in FAILURE_FORMATS if form.sniff(head.lines, head.data)), None)


def read_failures(path: str | Path, *, format: str | None = None, strict: bool = False) -> FailureTrace:
    """Read a failure trace.

    Parameters
    ----------
    path : str or pathlib.Path
        Plain or compressed; SQLite files plain only.
    format : str, optional
        One of the names in `FAILURE_FORMATS`; recognised from the start of the file when not given.
    strict : bool
        Refuse a file with any fault. Otherwise faulty rows are left out, counted and located in `.faults`.

    Returns
    -------
    FailureTrace

    Raises
    ------
    TraceError
        When the file cannot be read, its format is not known, it holds no event, or (`strict`) it
        holds a fault.
    """
    source = TraceSource(Path(path))
    names = ", ".join(form.name for form in FAILURE_FORMATS)
    if format is not None:
        reader = next((form for form in FAILURE_FORMATS if form.name == format), None)
        if reader is None:
            raise TraceError(f"--format: got {shown(format)}, wanted one of {names}")
    else:
        head = head_of(source)
        reader = failure_format(head)
        if reader is None:
            first = head.lines[0] if head.lines else ""
            raise TraceError(
                f"{path}:1: got {shown(first)}, wanted a failure trace ({names}); --format forces one"
            )
    log = FaultLog(str(path))
    trace = reader.read(source, log)
    faults = log.close()
    if strict and faults.count:
        raise TraceError("\n".join(faults.lines()))
    if not trace.events.height:
        none = f"{path}: got no event, wanted at least one in format {reader.name}"
        raise TraceError("\n".join([none, *faults.lines()]))
    return replace(trace, faults=faults, counts=dict(log.counts))
