"""Read any CSV of requests whose columns the user names with ``--columns``."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from stripesim.models.problems import TraceError
from stripesim.traces.formats.delimited import DelimitedFormat, NumberColumn, one_of
from stripesim.traces.lines import cells_of
from stripesim.traces.problems import shown
from stripesim.traces.source import TraceSource

COLUMNS_EXAMPLE = "time_us=NAME,offset=NAME,size=NAME,op=NAME"
"""Example of ``--columns`` for messages."""

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
    """Return the format of a CSV file whose columns are named by role.

    Parameters
    ----------
    source
        The file. Its first line determines the separator (comma, semicolon or blanks) and the positions of
        columns.
    roles
        Column of each role, by name in the heading or, without a heading, by number from 1. Required roles
        are one of ``time_s``, ``time_ms``, ``time_us`` and ``time_ns``; ``offset`` and ``size`` in bytes, or
        ``offset_sectors`` and ``size_sectors``; and one of ``op`` (words), ``is_write`` and ``is_read``.
        Optional roles are ``device`` and ``response_s`` to ``response_ns``. ``time`` and ``response`` without
        a unit take it from the suffix of the column's name (``issue_us``).

    Raises
    ------
    TraceError
        If a role is missing or unknown, or the file lacks a column.
    """
    by_role = _with_units(roles)
    known = _chosen_roles(by_role)
    heading = _best_heading(source, by_role)
    cells: list[str | None] = [None] * heading.width
    for role, position in heading.positions.items():
        cells[position] = role
    time, offset, size, op = (known[what] for what in _NEEDED_ROLES)
    assert time and offset and size and op
    response = known["a response time"]
    is_write, op_values = _OPS[op]
    header = None
    if not _are_numbers(by_role):
        header = re.compile(re.escape(heading.line))
    return DelimitedFormat(
        name="csv",
        columns=_unnamed(cells),
        separator=heading.separator,
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
        header=header,
        quoted=True,
    )


def _with_units(roles: Mapping[str, str]) -> dict[str, str]:
    """Add the unit in the suffix of the column's name to the roles `time` and `response`."""
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
    """Return the role that provides each property of a request."""
    role_of: dict[str, str | None] = {}
    for property_name, names in (_NEEDED_ROLES | _OPTIONAL_ROLES).items():
        present = [name for name in names if name in roles]
        if len(present) > 1:
            raise TraceError(
                f"--columns: got {' and '.join(present)}, wanted only one of them"
            )
        role_of[property_name] = present[0] if present else None
    missing = [
        f"{property_name} ({', '.join(names)})"
        for property_name, names in _NEEDED_ROLES.items()
        if role_of[property_name] is None
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


class _Heading(NamedTuple):
    """First line of a file, split by one separator."""

    separator: str
    line: str
    width: int  # Number of columns
    positions: dict[str, int]  # Column of each role that matches exactly one


def _best_heading(source: TraceSource, roles: Mapping[str, str]) -> _Heading:
    """Split the first line by the separator that yields the most of the wanted columns."""
    lines = source.head().lines
    first = lines[0].strip() if lines else ""
    headings = [_heading(first, separator, roles) for separator in (",", ";", " ")]
    best = max(headings, key=lambda heading: len(heading.positions))
    absent = [
        f"{name} ({role})" for role, name in roles.items() if role not in best.positions
    ]
    if absent:
        raise TraceError(
            f"{source.path}:1: got {shown(first)}, wanted exactly one column for each name in --columns: "
            f"missing or repeated {', '.join(absent)}"
        )
    names = list(roles.values())
    shared = [role for role, name in roles.items() if names.count(name) > 1]
    if shared:
        raise TraceError(
            f"--columns: got one column for {' and '.join(shared)}, wanted one each"
        )
    return best


def _heading(first: str, separator: str, roles: Mapping[str, str]) -> _Heading:
    cells = cells_of(first, separator, quoted=True)
    if _are_numbers(roles):
        cells = [str(number) for number in range(1, len(cells) + 1)]
    positions = {
        role: cells.index(name)
        for role, name in roles.items()
        if cells.count(name) == 1
    }
    return _Heading(separator, first, len(cells), positions)


def _are_numbers(roles: Mapping[str, str]) -> bool:
    """Return True if columns are given by number, in a file without a heading."""
    return all(name.isdecimal() for name in roles.values())


def _unnamed(cells: list[str | None]) -> tuple[str, ...]:
    """Give unread columns unique names that do not collide with roles."""
    return tuple(name or f"column {place}" for place, name in enumerate(cells, 1))


def _time_number(role: str, *, optional: bool = False) -> NumberColumn:
    return NumberColumn(role, 1, _TIME_DIGITS[role.rpartition("_")[2]], optional)
