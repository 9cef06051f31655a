"""Write traces as blkparse text, or in columnar form as Parquet or CSV."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stripesim.models.problems import TraceError
from stripesim.traces.columns import BlockTrace
from stripesim.traces.failures.columns import FailureTrace
from stripesim.traces.matching import SECTOR_BYTES
from stripesim.traces.problems import shown
from stripesim.traces.source import companion

SUFFIXES = (".parquet", ".csv", ".txt")
"""Parquet or CSV for the columns; text as printed by blkparse (block traces only)."""


def convert(trace: BlockTrace | FailureTrace, path: str | Path) -> list[Path]:
    """Write a trace in the form given by the file's suffix.

    Parameters
    ----------
    trace
        Block or failure trace.
    path
        File with suffix ``.parquet``, ``.csv`` or ``.txt`` (block traces only).

    Returns
    -------
    list of Path
        The files written, including that of commands or spans.

    Raises
    ------
    TraceError
        If the suffix is wrong, the file is the source of the trace, or it cannot be written.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise TraceError(
            f"{path}: got suffix {shown(path.suffix)}, wanted one of {', '.join(SUFFIXES)}"
        )
    try:
        if path.suffix == ".txt":
            if isinstance(trace, FailureTrace):
                raise TraceError(
                    f"{path}: got a failure trace, wanted .parquet or .csv for it"
                )
            _keep_source(trace, path)
            write_blkparse(trace, path)
            return [path]
        tables = _tables(trace, path)
        for file in tables:
            _keep_source(trace, file)
        for file, table in tables.items():
            if path.suffix == ".csv":
                table.write_csv(file)
            else:
                table.write_parquet(file)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise TraceError(
            f"{path}: got {reason!r}, wanted a file that can be written"
        ) from None
    return list(tables)


def _tables(trace: BlockTrace | FailureTrace, path: Path) -> dict[Path, pl.DataFrame]:
    """Return the tables of a trace, by the file that each is written to."""
    if isinstance(trace, FailureTrace):
        first = trace.events
        second = trace.spans
        word = "spans"
    else:
        first = trace.requests
        second = trace.commands
        word = "commands"
    beside = companion(path, word)
    if second is not None:
        return {path: first, beside: second}
    if beside.exists():
        raise TraceError(
            f"{beside}: got {word} of another trace next to {path.name}, which has none; "
            "wanted no such file, because it would be read together"
        )
    return {path: first}


def _keep_source(trace: BlockTrace | FailureTrace, path: Path) -> None:
    source = Path(trace.source)
    if path.exists() and source.exists() and path.samefile(source):
        raise TraceError(
            f"{path}: got the file that the trace was read from, wanted another (--out FOLDER)"
        )


_RANK = {"Q": 0, "D": 1, "C": 2}


def write_blkparse(trace: BlockTrace, path: str | Path) -> None:
    """Write Q, D and C events in blkparse's default columns.

    Times are relative to the first event. Devices whose names are not `major,minor` are numbered from 259,0,
    ordered by name. Reading the file restores the same requests and commands, unless two requests on one
    device and in one direction overlap while both are in flight.

    Raises
    ------
    TraceError
        If an extent is not in whole sectors.
    """
    frames = [trace.requests] + ([] if trace.commands is None else [trace.commands])
    for frame in frames:
        odd = frame.filter(
            (frame["offset_bytes"] % SECTOR_BYTES != 0)
            | (frame["length_bytes"] % SECTOR_BYTES != 0)
        )
        if odd.height:
            offset, length = odd.select("offset_bytes", "length_bytes").row(0)
            raise TraceError(
                f"{path}: got extent {offset}+{length} B, wanted whole sectors of {SECTOR_BYTES} B"
            )
    # At equal times, queue before dispatch before completion.
    events = sorted(_events(trace), key=lambda event: (event[0], _RANK[event[1]]))
    start_ns = min(0, events[0][0]) if events else 0
    names = _device_names(sorted({event[2] for event in events}))
    with Path(path).open("w", encoding="utf-8") as file:
        for number, (time_ns, action, device, is_write, offset, length) in enumerate(
            events, 1
        ):
            seconds, fraction = divmod(time_ns - start_ns, 1_000_000_000)
            file.write(
                f"{names[device]:>7} {0:>3} {number:>8} {seconds:>5}.{fraction:09d} {0:>5} {action:>2} "
                f"{'W' if is_write else 'R':>3} {offset // SECTOR_BYTES} + {length // SECTOR_BYTES} [0]\n"
            )


def _events(trace: BlockTrace) -> Iterator[tuple[int, str, str, bool, int, int]]:
    columns = ("device", "is_write", "offset_bytes", "length_bytes")
    for issue, dispatch, complete, *rest in trace.requests.select(
        "issue_ns", "dispatch_ns", "complete_ns", *columns
    ).iter_rows():
        yield (issue, "Q", *rest)
        if dispatch is None and complete is not None:
            yield (complete, "C", *rest)
    if trace.commands is None:
        return
    for dispatch, complete, *rest in trace.commands.select(
        "dispatch_ns", "complete_ns", *columns
    ).iter_rows():
        yield (dispatch, "D", *rest)
        if complete is not None:
            yield (complete, "C", *rest)


def _device_names(devices: list[str]) -> dict[str, str]:
    numbered = {
        d: d for d in devices if d.count(",") == 1 and d.replace(",", "").isdecimal()
    }
    free = (
        f"259,{minor}"
        for minor in range(len(devices) * 2)
        if f"259,{minor}" not in numbered
    )
    return {d: numbered.get(d) or next(free) for d in devices}
