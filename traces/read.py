"""Reading a trace file: the formats, how one is recognised, whole or in bounded chunks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from stripesim.traces.budget import REQUEST_BYTES, RowBudget
from stripesim.traces.columns import BlockTrace, Chunk, assemble
from stripesim.traces.failures import alibaba, backblaze, fta, lanl
from stripesim.traces.failures import own as own_failures
from stripesim.traces.failures.columns import FailureTrace
from stripesim.traces.failures.statistics import failure_info
from stripesim.traces.formats import blkparse, blktrace, fio_iolog, tables, vscsi
from stripesim.traces.formats import own as own_blocks
from stripesim.traces.formats.delimited import DelimitedFormat
from stripesim.traces.formats.named_columns import COLUMNS_EXAMPLE, named_columns
from stripesim.traces.formats.own import REQUEST_COLUMNS_NEEDED
from stripesim.traces.lines import cells_of
from stripesim.traces.own import PARQUET_MAGIC, parquet_columns
from stripesim.traces.problems import FaultLog, TraceError, shown
from stripesim.traces.source import BLOCK_BYTES, Head, TraceFormat, TraceSource
from stripesim.traces.statistics import info

Format = TypeVar("Format", bound=TraceFormat[Any] | DelimitedFormat)

FORMATS: tuple[TraceFormat[Iterator[Chunk]] | DelimitedFormat, ...] = (
    own_blocks.FORMAT,
    blktrace.FORMAT,
    blkparse.FORMAT,
    tables.MSR,
    fio_iolog.FORMAT,
    tables.SPC,
    tables.SYSTOR,
    # CloudPhysics' before Tencent's, whose columns are numbers too but for the operation code.
    tables.ALIBABA,
    tables.CLOUDPHYSICS,
    tables.TENCENT,
    tables.BLKREPLAY,
    tables.DISKSIM,
    tables.SSDSIM,
    vscsi.FORMAT,
)
"""All formats of block traces, in the order in which they are asked."""

FAILURE_FORMATS: tuple[TraceFormat[FailureTrace], ...] = (
    own_failures.FORMAT,
    fta.SQLITE_FORMAT,
    lanl.FORMAT,
    alibaba.FORMAT,
    backblaze.FORMAT,
    fta.FORMAT,
)
"""All formats of failure traces, in the order in which they are tried."""


def load(
    path: str | Path,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    strict: bool = False,
) -> BlockTrace | FailureTrace:
    """Read a trace of any format.

    Parameters
    ----------
    path : str or pathlib.Path
        Plain or compressed with gz, xz, bz2, zstd or zip (one file in it); SQLite files plain only. For
        binary blktrace one of the per-CPU files, or their common name without `.blktrace.N`.
    format : str, optional
        One of the names in `FORMATS` or `FAILURE_FORMATS`; recognised from the start of the file when not
        given.
    columns : mapping, optional
        For any other CSV of requests: the column of each role, by its name in the heading or its number from
        1, such as ``{"time_us": "ts", "offset": "lba", "size": "bytes", "op": "rw"}``; see `named_columns`.
    strict : bool
        Refuse a file with any fault. Otherwise faulty lines are left out, counted and located in `.faults`.

    Returns
    -------
    BlockTrace or FailureTrace

    Raises
    ------
    TraceError
        When the file cannot be read, its format is not known, it holds no valid request or event, or
        (`strict`) it holds a fault. One line per problem.
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
    """Read a block trace; see `load`."""
    source = TraceSource(_located(path))
    reader: TraceFormat[Iterator[Chunk]] | DelimitedFormat
    if columns is None:
        reader = _reader(source, format, FORMATS, "block")
    elif format is None:
        reader = named_columns(source, columns)
    else:
        raise TraceError(
            f"--columns: got --format {shown(format)} as well, wanted one of both"
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
    """Yield a block trace in chunks, with rows in the order in which they are known in full."""
    source = TraceSource(_located(path), block_bytes)
    yield from _reader(source, format, FORMATS, "block").read(source, log)


def read_failures(
    path: str | Path, *, format: str | None = None, strict: bool = False
) -> FailureTrace:
    """Read a failure trace; see `load`."""
    source = TraceSource(Path(path))
    reader = _reader(source, format, FAILURE_FORMATS, "failure")
    log = FaultLog(str(path))
    trace = reader.read(source, log)
    _refuse_faults(log, strict)
    if not trace.events.height:
        raise _nothing(log, "no event", reader.name)
    return replace(trace, faults=log.close(), counts=dict(log.counts))


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
    if isinstance(trace, FailureTrace):
        return failure_info(trace)
    return info(trace)


def _located(path: str | Path) -> Path:
    """Return the first per-CPU file where blktrace's common name was given, else the path itself."""
    path = Path(path)
    beside = [path.with_name(path.name + suffix) for suffix in (".blktrace.0", ".0")]
    return next((one for one in (path, *beside) if one.exists()), path)


def _named(name: str, formats: Sequence[Format]) -> Format:
    for one in formats:
        if one.name == name:
            return one
    raise TraceError(f"--format: got {shown(name)}, wanted one of {_names(formats)}")


def _reader(
    source: TraceSource, name: str | None, formats: Sequence[Format], kind: str
) -> Format:
    """Return the format of that name, or the first that takes the file as its own."""
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
    """Explain what a file lacks that no format accepts."""
    needed = ", ".join(REQUEST_COLUMNS_NEEDED)
    if head.data.startswith(PARQUET_MAGIC):
        columns = ", ".join(map(shown, parquet_columns(head.path)[:20])) or "none"
        return f"{head.path}: got a Parquet file with the columns {columns}, wanted {needed}"
    first = head.lines[0] if head.lines else ""
    wanted = f"a {kind} trace ({_names(formats)}); --format forces one"
    if "," not in first:
        return f"{head.path}:1: got {shown(first)}, wanted {wanted}"
    names = cells_of(first, ",", quoted=True)
    missing = [name for name in REQUEST_COLUMNS_NEEDED if name not in names]
    return (
        f"{head.path}:1: got {shown(first)}, a CSV without the columns {', '.join(missing)}, "
        f"wanted {wanted}, --columns {COLUMNS_EXAMPLE} says which columns of another CSV are which"
    )


def _names(formats: Sequence[Format]) -> str:
    return ", ".join(one.name for one in formats)


def _refuse_faults(log: FaultLog, strict: bool) -> None:
    if strict and log.count:
        raise TraceError("\n".join(log.close().lines()))


def _nothing(log: FaultLog, got: str, name: str) -> TraceError:
    none = f"{log.source}: got {got}, wanted at least one in format {name}"
    return TraceError("\n".join([none, *log.close().lines()]))
