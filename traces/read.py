"""Reading a trace file: whole, or in bounded chunks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stripesim.traces.columns import BlockTrace, Chunk, assemble
from stripesim.traces.problems import FaultLog, TraceError
from stripesim.traces.registry import by_name, detect
from stripesim.traces.source import BLOCK_BYTES, TraceSource


def iter_trace(
    path: str | Path, log: FaultLog, *, format: str | None = None, block_bytes: int = BLOCK_BYTES
) -> Iterator[Chunk]:
    """Yield a trace in chunks, holding one block of text and the requests in flight."""
    source = TraceSource(locate(Path(path)), block_bytes)
    reader = by_name(format) if format is not None else detect(source)
    yield from reader.chunks(source, log)


def read_trace(path: str | Path, *, format: str | None = None, strict: bool = False) -> BlockTrace:
    """Read a block trace.

    Parameters
    ----------
    path : str or pathlib.Path
        Plain or compressed with gz, xz, bz2, zstd or zip (one file in it). For binary blktrace one of the
        per-CPU files, or their common name without `.blktrace.N`.
    format : str, optional
        One of the names in `FORMATS`; recognised from the start of the file when not given.
    strict : bool
        Refuse a file with any fault. Otherwise faulty lines are left out, counted and located in `.faults`.

    Returns
    -------
    BlockTrace

    Raises
    ------
    TraceError
        When the file cannot be read, its format is not known, it holds no valid request, or (`strict`) it
        holds a fault. One line per problem.
    """
    source = TraceSource(locate(Path(path)))
    reader = by_name(format) if format is not None else detect(source)
    log = FaultLog(str(path))
    chunks = [
        chunk for chunk in reader.chunks(source, log) if chunk.requests.height or chunk.commands is not None
    ]
    faults = log.close()
    if strict and faults.count:
        raise TraceError("\n".join(faults.lines()))
    if not any(chunk.requests.height for chunk in chunks):
        seen = ", ".join(f"{count} {what}" for what, count in log.counts.items()) or "nothing of the format"
        none = f"{path}: got no valid request ({seen}), wanted at least one in format {reader.name}"
        raise TraceError("\n".join([none, *faults.lines()]))
    requests, commands, origin_ns = assemble(chunks)
    return BlockTrace(requests, commands, reader.name, str(path), origin_ns, faults, dict(log.counts))


def locate(path: Path) -> Path:
    """Return the first per-CPU file where blktrace's common name was given."""
    if path.exists():
        return path
    for suffix in (".blktrace.0", ".0"):
        first = path.with_name(path.name + suffix)
        if first.exists():
            return first
    return path
