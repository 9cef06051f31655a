"""Writes a trace as blkparse prints it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stripesim.traces.columns import BlockTrace
from stripesim.traces.matching import SECTOR_BYTES
from stripesim.traces.problems import TraceError

_RANK = {"Q": 0, "D": 1, "C": 2}


def write_blkparse(trace: BlockTrace, path: str | Path) -> None:
    """Write Q, D and C events in blkparse's default columns.

    Notes
    -----
    Times count from the trace's first event. Device names that are no `major,minor` are numbered from
    259,0 in order of name. Reading the file back gives the same requests
    and commands as long as no two of a device and direction overlap while both are in flight.
    """
    frames = [trace.requests] + ([] if trace.commands is None else [trace.commands])
    for frame in frames:
        odd = frame.filter(
            (frame["offset_bytes"] % SECTOR_BYTES != 0) | (frame["length_bytes"] % SECTOR_BYTES != 0)
        )
        if odd.height:
            offset, length = odd.select("offset_bytes", "length_bytes").row(0)
            raise TraceError(
                f"{path}: got extent {offset}+{length} B, wanted whole sectors of {SECTOR_BYTES} B"
            )
    # At equal times a request is queued before it is dispatched before it completes.
    events = sorted(_events(trace), key=lambda event: (event[0], _RANK[event[1]]))
    start_ns = min(0, events[0][0]) if events else 0
    names = _device_names(sorted({event[2] for event in events}))
    with Path(path).open("w", encoding="utf-8") as file:
        for number, (time_ns, action, device, is_write, offset, length) in enumerate(events, 1):
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
    given = {d: d for d in devices if d.count(",") == 1 and d.replace(",", "").isdecimal()}
    free = (f"259,{minor}" for minor in range(len(devices) * 2) if f"259,{minor}" not in given)
    return {d: given.get(d) or next(free) for d in devices}
