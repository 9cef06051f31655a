"""Any CSV of requests whose user says which column is which: `--columns`."""

import re
from collections.abc import Mapping

from stripesim.traces.formats.delimited import DelimitedFormat, NumberColumn, one_of
from stripesim.traces.lines import cells_of
from stripesim.traces.problems import TraceError, shown
from stripesim.traces.source import TraceSource

COLUMNS_EXAMPLE = "time_us=NAME,offset=NAME,size=NAME,op=NAME"
"""Example of `--columns`, for messages."""

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
        offset=NumberColumn(offset, _SIZE_UNITS[offset.removeprefix("offset")]),
        length=NumberColumn(size, _SIZE_UNITS[size.removeprefix("size")], least=1),
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


def _time_number(role: str, *, optional: bool = False) -> NumberColumn:
    return NumberColumn(role, 1, _TIME_DIGITS[role.rpartition("_")[2]], optional)
