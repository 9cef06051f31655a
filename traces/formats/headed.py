"""CSV files whose columns have names: those that `trace convert` writes, and others with `--columns`.

Cells may be quoted, but hold no line end. `OWN_CSV` reads the project's own columns, `named_columns` a CSV
whose user says which column is which.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import polars as pl

from stripesim.traces.columns import (
    CHUNK_SCHEMA,
    COMMAND_SCHEMA,
    REQUEST_SCHEMA,
    Chunk,
)
from stripesim.traces.formats.delimited import (
    REACH_NS,
    DelimitedFormat,
    Number,
    one_of,
)
from stripesim.traces.lines import cells_of, has_columns
from stripesim.traces.problems import FaultLog, TraceError, shown
from stripesim.traces.source import (
    TraceFormat,
    TraceSource,
    companion,
)

REQUEST_COLUMNS_NEEDED = ("issue_ns", "offset_bytes", "length_bytes", "is_write")
"""Columns without which a CSV is not one that `trace convert` writes; the others may be missing."""

COLUMNS_EXAMPLE = "time_us=NAME,offset=NAME,size=NAME,op=NAME"
"""Example of `--columns`, for messages."""

COMMAND_COLUMNS_NEEDED = ("dispatch_ns", *REQUEST_COLUMNS_NEEDED[1:])
_NO_ROW = re.compile(r"(?!)")

# Digits after the point down to nanoseconds.
_TIME_DIGITS = {"s": 9, "ms": 6, "us": 3, "ns": 0}
_TIMES = tuple(f"time_{unit}" for unit in _TIME_DIGITS)
_RESPONSES = tuple(f"response_{unit}" for unit in _TIME_DIGITS)
_SIZE_UNITS = {"": 1, "_bytes": 1, "_sectors": 512}
_OFFSETS = tuple(f"offset{unit}" for unit in _SIZE_UNITS)
_SIZES = tuple(f"size{unit}" for unit in _SIZE_UNITS)
_TRUE_IS_WRITE = one_of(("0", "false"), ("1", "true"))
_OPS = {
    "op": (
        one_of(("r", "rd", "read"), ("w", "wr", "write")),
        "R, RD, Read, W, WR or Write (0 and 1: name the column is_write or is_read)",
    ),
    "is_write": (_TRUE_IS_WRITE, "1 or true for writes, 0 or false for reads"),
    "is_read": (
        one_of(("1", "true"), ("0", "false")),
        "1 or true for reads, 0 or false for writes",
    ),
}
_NEEDED_ROLES = {
    "a time with its unit": _TIMES,
    "an offset": _OFFSETS,
    "a size": _SIZES,
    "an operation": tuple(_OPS),
}
_OPTIONAL_ROLES = {"a response time": _RESPONSES, "a device": ("device",)}


def _read_own(source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
    """Yield the requests, then the commands of the companion file."""
    zero_ns: int | None = None
    for chunk in _own_format(source, "issue_ns", REQUEST_COLUMNS_NEEDED).read(
        source, log
    ):
        zero_ns = chunk.zero_ns if zero_ns is None else zero_ns
        yield chunk
    commands = companion(source.path, "commands")
    if zero_ns is None or not commands.exists():
        return
    beside = replace(source, path=commands)
    own_log = FaultLog(str(commands))
    no_requests = pl.DataFrame(schema=CHUNK_SCHEMA)
    yield Chunk(no_requests, pl.DataFrame(schema=COMMAND_SCHEMA), zero_ns)
    form = _own_format(beside, "dispatch_ns", COMMAND_COLUMNS_NEEDED)
    for chunk in form.read(beside, own_log):
        dispatch_ns = pl.col("issue_ns") + (chunk.zero_ns - zero_ns)
        complete_ns = pl.col("complete_ns") + (chunk.zero_ns - zero_ns)
        rows = chunk.requests.with_columns(
            dispatch_ns=dispatch_ns, complete_ns=complete_ns
        )
        yield Chunk(no_requests, rows.select(COMMAND_SCHEMA.keys()), zero_ns)
    log.extend(own_log)


OWN_CSV = TraceFormat(
    "columns-csv", lambda head: has_columns(head, REQUEST_COLUMNS_NEEDED), _read_own
)
"""The columnar form as CSV; commands are in `NAME.commands.csv` in the same folder."""


def _own_format(
    source: TraceSource, time: str, needed: tuple[str, ...]
) -> DelimitedFormat:
    first, cells = _heading(source, ",")
    missing = [name for name in needed if name not in cells]
    if missing:
        raise TraceError(
            f"{source.path}:1: got {shown(first)}, wanted a heading with {', '.join(missing)}"
        )
    known = [name if name in REQUEST_SCHEMA else None for name in cells]
    other_times = [
        Number(name, 1, optional=True, least=-REACH_NS)
        for name in ("dispatch_ns", "complete_ns")
        if name in cells and name != time
    ]
    return DelimitedFormat(
        name=OWN_CSV.name,
        columns=_unnamed(known),
        row=_NO_ROW,
        time=Number(time, 1, least=-REACH_NS),
        offset=Number("offset_bytes", 1),
        length=Number("length_bytes", 1, least=1),
        op="is_write",
        is_write=_TRUE_IS_WRITE,
        ops=_OPS["is_write"][1],
        device=("device",) if "device" in cells else (),
        other_times=tuple(other_times),
        header=re.compile(re.escape(first)),
        quoted=True,
    )


def named_columns(source: TraceSource, roles: Mapping[str, str]) -> DelimitedFormat:
    """Return the format of a CSV whose columns are named by their roles.

    Parameters
    ----------
    source
        The file: its first line decides the separator (comma, semicolon or blanks) and where columns are.
    roles
        The column of each role, by its name in the heading or, without one, its number from 1. Roles are
        `time_s`, `time_ms`, `time_us` or `time_ns`; `offset` and `size` (bytes) or `offset_sectors` and
        `size_sectors`; `op` (words), `is_write` or `is_read`; and, where present, `device` and `response_s`
        to `response_ns`.
        `time` alone takes the unit from the end of the column's name (`issue_us`).

    Raises
    ------
    TraceError
        When a role is missing or unknown, or the file has no such column.
    """
    by_role = _with_units(roles)
    known = _chosen_roles(by_role)
    separator, first, positions = _positions(source, by_role)
    cells: list[str | None] = [None] * len(cells_of(first, separator, quoted=True))
    for role, position in positions.items():
        cells[position] = role
    time, offset, size, op = (known[what] for what in _NEEDED_ROLES)
    assert time and offset and size and op
    response = known["a response time"]
    is_write, op_values = _OPS[op]
    headless = all(name.isdecimal() for name in by_role.values())
    return DelimitedFormat(
        name="csv",
        columns=_unnamed(cells),
        separator=separator,
        row=_NO_ROW,
        time=_time_number(time),
        offset=Number(offset, _SIZE_UNITS[offset.removeprefix("offset")]),
        length=Number(size, _SIZE_UNITS[size.removeprefix("size")], least=1),
        op=op,
        is_write=is_write,
        ops=op_values,
        device=("device",) if known["a device"] else (),
        response=_time_number(response, optional=True) if response else None,
        ordered=False,
        header=None if headless else re.compile(re.escape(first)),
        quoted=True,
    )


def _with_units(roles: Mapping[str, str]) -> dict[str, str]:
    """Give `time` and `response` the unit at the end of their column's name."""
    named = {}
    for role, column in roles.items():
        if role not in ("time", "response"):
            named[role] = column
            continue
        unit = column.rpartition("_")[2].lower()
        if unit not in _TIME_DIGITS or "_" not in column:
            units = ", ".join(f"{role}_{unit}" for unit in _TIME_DIGITS)
            raise TraceError(
                f"--columns: got {role}={column} without a unit, wanted one of {units}"
            )
        named[f"{role}_{unit}"] = column
    return named


def _chosen_roles(roles: Mapping[str, str]) -> dict[str, str | None]:
    """Return the role that gives each property of a request."""
    role_of: dict[str, str | None] = {}
    for what, names in (_NEEDED_ROLES | _OPTIONAL_ROLES).items():
        present = [name for name in names if name in roles]
        if len(present) > 1:
            raise TraceError(
                f"--columns: got {' and '.join(present)}, wanted one of them"
            )
        role_of[what] = present[0] if present else None
    missing = [
        f"{what} ({', '.join(names)})"
        for what, names in _NEEDED_ROLES.items()
        if role_of[what] is None
    ]
    unknown = [role for role in roles if role not in role_of.values()]
    if unknown:
        groups = (_NEEDED_ROLES | _OPTIONAL_ROLES).values()
        every = ", ".join(name for group in groups for name in group)
        raise TraceError(
            f"--columns: got {', '.join(map(shown, unknown))}, wanted some of {every}"
        )
    if missing:
        raise TraceError(
            f"--columns: got no column for {' nor '.join(missing)}, wanted {COLUMNS_EXAMPLE}"
        )
    return role_of


def _positions(
    source: TraceSource, roles: Mapping[str, str]
) -> tuple[str, str, dict[str, int]]:
    """Return separator, first line, and the place of each role's column."""
    headless = all(name.isdecimal() for name in roles.values())
    best: tuple[str, str, dict[str, int]] | None = None
    first = ""
    for separator in (",", ";", " "):
        first, cells = _heading(source, separator)
        if headless:
            numbered = {role: int(name) - 1 for role, name in roles.items()}
            positions = {
                role: number
                for role, number in numbered.items()
                if 0 <= number < len(cells)
            }
        else:
            positions = {
                role: cells.index(name)
                for role, name in roles.items()
                if cells.count(name) == 1
            }
        if best is None or len(positions) > len(best[2]):
            best = (separator, first, positions)
    assert best is not None
    absent = [f"{name} ({role})" for role, name in roles.items() if role not in best[2]]
    if absent:
        raise TraceError(
            f"{source.path}:1: got {shown(first)}, wanted one column of each name that --columns gives: "
            f"there is not one {', '.join(absent)}"
        )
    shared = [role for role in roles if list(roles.values()).count(roles[role]) > 1]
    if shared:
        raise TraceError(
            f"--columns: got one column for {' and '.join(shared)}, wanted a column each"
        )
    return best


def _heading(source: TraceSource, separator: str) -> tuple[str, list[str]]:
    lines = source.head().lines
    first = lines[0].strip() if lines else ""
    return first, cells_of(first, separator, quoted=True)


def _unnamed(cells: list[str | None]) -> tuple[str, ...]:
    """Name the columns that are not read, so that no name occurs twice or means something else."""
    return tuple(name or f"column {place}" for place, name in enumerate(cells, 1))


def _time_number(role: str, *, optional: bool = False) -> Number:
    return Number(role, 1, _TIME_DIGITS[role.rpartition("_")[2]], optional)
