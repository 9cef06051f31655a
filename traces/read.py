"""Read trace files: list and detect formats, and read a file as a whole or in bounded chunks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from stripesim.models.problems import TraceError
from stripesim.traces.budget import REQUEST_BYTES, RowBudget
from stripesim.traces.columns import BlockTrace, Chunk, assemble
from stripesim.traces.converted import PARQUET_MAGIC, parquet_columns
from stripesim.traces.failures import alibaba, backblaze, converted_events, fta, lanl
from stripesim.traces.failures.columns import FailureTrace
from stripesim.traces.failures.statistics import failure_info
from stripesim.traces.formats import (
    blkparse,
    blktrace,
    converted_requests,
    fio_iolog,
    tables,
    vscsi,
)
from stripesim.traces.formats.converted_requests import REQUEST_COLUMNS_NEEDED
from stripesim.traces.formats.delimited import DelimitedFormat
from stripesim.traces.formats.named_columns import COLUMNS_EXAMPLE, named_columns
from stripesim.traces.lines import cells_of
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import (
    BLOCK_BYTES,
    UTF16_MARKS,
    Head,
    TraceFormat,
    TraceSource,
)
from stripesim.traces.statistics import info

Format = TypeVar("Format", bound=TraceFormat[Any] | DelimitedFormat)

FORMATS: tuple[TraceFormat[Iterator[Chunk]] | DelimitedFormat, ...] = (
    converted_requests.FORMAT,
    blktrace.FORMAT,
    blkparse.FORMAT,
    tables.MSR,
    fio_iolog.FORMAT,
    tables.SPC,
    tables.SYSTOR,
    # CloudPhysics before Tencent, whose columns also are numbers, except for the operation code.
    tables.ALIBABA,
    tables.CLOUDPHYSICS,
    tables.TENCENT,
    tables.BLKREPLAY,
    tables.DISKSIM,
    tables.SSDSIM,
    vscsi.FORMAT,
)
"""All block trace formats, in the order of detection."""

FAILURE_FORMATS: tuple[TraceFormat[FailureTrace], ...] = (
    converted_events.FORMAT,
    fta.SQLITE_FORMAT,
    lanl.FORMAT,
    alibaba.FORMAT,
    backblaze.FORMAT,
    fta.FORMAT,
)
"""All failure trace formats, in the order of detection."""


def load(
    path: str | Path,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    strict: bool = False,
) -> BlockTrace | FailureTrace:
    """Read a trace in any format.

    Parameters
    ----------
    path
        A file, plain or compressed with gz, xz, bz2, zstd or zip (with one file in it). SQLite files must be
        plain. For binary blktrace, one of the per-CPU files or their common name without ``.blktrace.N``.
    format
        A name in `FORMATS` or `FAILURE_FORMATS`. None detects the format from the start of the file.
    columns
        For a CSV of requests in any other layout: the column of each role, by name or by number from 1, such
        as ``{"time_us": "ts", "offset": "lba", "size": "bytes", "op": "rw"}``. See
        `stripesim.traces.formats.named_columns.named_columns`.
    strict
        Reject a file with any fault. Otherwise faulty lines are dropped, counted, and located in ``.faults``.

    Returns
    -------
    BlockTrace or FailureTrace
        The trace, in the form of its kind.

    Raises
    ------
    TraceError
        If the file cannot be read, its format is unknown, it contains no valid request or event, or, with
        `strict`, it has a fault. The message has one line per problem.
    """
    if columns is not None:
        return read_trace(path, format=format, columns=columns, strict=strict)
    if format is None:
        head = TraceSource(_located(path)).head()
        failures = bool(head.data.strip()) and any(
            form.sniff(head) for form in FAILURE_FORMATS
        )
    else:
        failures = _named(format, (*FORMATS, *FAILURE_FORMATS)) in FAILURE_FORMATS
    return (read_failures if failures else read_trace)(
        path, format=format, strict=strict
    )


def read_trace(
    path: str | Path,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    strict: bool = False,
) -> BlockTrace:
    """Read a block trace. Parameters and errors are those of `load`."""
    source = TraceSource(_located(path))
    reader: TraceFormat[Iterator[Chunk]] | DelimitedFormat
    if columns is None:
        reader = _reader(source, format, FORMATS, "block")
    elif format is None:
        reader = named_columns(source, columns)
    else:
        raise TraceError(
            f"--columns: got --format {shown(format)} as well, wanted only one of them"
        )
    log = FaultLog(str(path))
    budget = RowBudget(str(path), REQUEST_BYTES, "requests and commands")
    chunks = []
    for chunk in reader.read(source, log):
        budget.add(chunk.requests.height)
        if chunk.commands is not None:
            budget.add(chunk.commands.height)
        if chunk.requests.height or chunk.commands is not None:
            chunks.append(chunk)
    _refuse_faults(log, strict)
    if not any(chunk.requests.height for chunk in chunks):
        seen = (
            ", ".join(f"{count} {what}" for what, count in log.counts.items())
            or "nothing of the format"
        )
        raise _nothing(log, f"no valid request ({seen})", reader.name)
    requests, commands, origin_ns = assemble(chunks)
    return BlockTrace(
        requests,
        commands,
        reader.name,
        str(path),
        origin_ns,
        log.close(),
        dict(log.counts),
    )


def iter_trace(
    path: str | Path,
    log: FaultLog,
    *,
    format: str | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[Chunk]:
    """Yield a block trace in chunks, as soon as rows are complete.

    Parameters
    ----------
    path, format
        As for `load`.
    log
        Collects the faults.
    block_bytes
        Size of the blocks that the file is read in [B].

    Raises
    ------
    TraceError
        If the file cannot be read or its format is unknown.
    """
    source = TraceSource(_located(path), block_bytes)
    yield from _reader(source, format, FORMATS, "block").read(source, log)


def read_failures(
    path: str | Path, *, format: str | None = None, strict: bool = False
) -> FailureTrace:
    """Read a failure trace. Parameters and errors are those of `load`."""
    source = TraceSource(Path(path))
    reader = _reader(source, format, FAILURE_FORMATS, "failure")
    log = FaultLog(str(path))
    trace = reader.read(source, log)
    _refuse_faults(log, strict)
    if not trace.events.height:
        raise _nothing(log, "no event", reader.name)
    return replace(trace, faults=log.close(), counts=dict(log.counts))


def describe(trace: BlockTrace | FailureTrace) -> dict[str, Any]:
    """Summarise a trace of either kind.

    Parameters
    ----------
    trace
        Block or failure trace.

    Returns
    -------
    dict
        Result of `info` or `failure_info`.
    """
    if isinstance(trace, FailureTrace):
        return failure_info(trace)
    return info(trace)


def _located(path: str | Path) -> Path:
    """Return the first per-CPU file if the path is blktrace's common name, else the path itself."""
    path = Path(path)
    if path.exists():
        return path
    beside = [path.parent / f"{path.name}{suffix}" for suffix in (".blktrace.0", ".0")]
    return next((one for one in beside if one.exists()), path)


def _named(name: str, formats: Sequence[Format]) -> Format:
    for one in formats:
        if one.name == name:
            return one
    raise TraceError(f"--format: got {shown(name)}, wanted one of {_names(formats)}")


def _reader(
    source: TraceSource, name: str | None, formats: Sequence[Format], kind: str
) -> Format:
    """Return the format of that name, or the first one that recognises the file."""
    if name is not None:
        return _named(name, formats)
    head = source.head()
    if not head.data.strip():
        raise TraceError(f"{source.path}: got an empty file, wanted a {kind} trace")
    for one in formats:
        if one.sniff(head):
            return one
    raise TraceError(_unknown(head, formats, kind))


def _unknown(head: Head, formats: Sequence[Format], kind: str) -> str:
    """Explain why no format recognises a file."""
    needed = ", ".join(REQUEST_COLUMNS_NEEDED)
    if head.data.startswith(PARQUET_MAGIC):
        columns = ", ".join(map(shown, parquet_columns(head.path)[:20]))
        if not columns:
            return f"{head.path}: got a damaged Parquet file, wanted a complete one with the columns {needed}"
        return f"{head.path}: got a Parquet file with the columns {columns}, wanted {needed}"
    if head.data.startswith(UTF16_MARKS):
        how = "iconv -f UTF-16 -t UTF-8 converts it"
        return f"{head.path}: got text in UTF-16, wanted a {kind} trace in UTF-8: {how}"
    first = head.lines[0] if head.lines else ""
    wanted = f"a {kind} trace ({_names(formats)}); --format forces one"
    if "," in first:
        names = cells_of(first, ",", quoted=True)
        missing = [name for name in REQUEST_COLUMNS_NEEDED if name not in names]
        lack = f"without the columns {', '.join(missing)}"
    elif ";" in first or "\t" in first:
        lack = "without commas between its cells"
    else:
        return f"{head.path}:1: got {shown(first)}, wanted {wanted}"
    return (
        f"{head.path}:1: got {shown(first)}, a CSV {lack}, "
        f"wanted {wanted}, --columns {COLUMNS_EXAMPLE} names the columns of another CSV"
    )


def _names(formats: Sequence[Format]) -> str:
    return ", ".join(one.name for one in formats)


def _refuse_faults(log: FaultLog, strict: bool) -> None:
    if strict and log.count:
        raise TraceError(*log.close().lines())


def _nothing(log: FaultLog, got: str, name: str) -> TraceError:
    none = f"{log.source}: got {got}, wanted at least one in format {name}"
    return TraceError(none, *log.close().lines())
