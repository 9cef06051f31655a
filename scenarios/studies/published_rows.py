"""Read tables of published numbers whose columns say what was measured, on what and where it is printed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

from stripesim.models.problems import MeasuredError, Problem, one_line


@dataclass(frozen=True, kw_only=True)
class PublishedRow:
    """One published number, with the columns of its table as they are written."""

    id: str
    system: str
    source: str
    hardware: str
    scheme: str
    op: str
    block: str
    threads: str
    state: str
    metric: str
    value: str
    unit: str
    how: str
    note: str

    @property
    def published(self) -> float:
        """The number."""
        return float(self.value)


AnyRow = TypeVar("AnyRow", bound=PublishedRow)


def read_text(path: Path) -> str:
    """Return the text of a table.

    Raises
    ------
    MeasuredError
        If the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise MeasuredError(
            Problem(place=str(path), got=one_line(error), wanted="a table of rows")
        ) from None


def rows_of(
    text: str,
    place: str,
    kind: type[AnyRow],
    *,
    is_valid: Callable[[float], bool] = lambda value: True,
    wanted: str = "a number",
) -> tuple[AnyRow, ...]:
    """Return the rows of a table.

    Parameters
    ----------
    text
        The table, as CSV.
    place
        Name of its file, for errors.
    kind
        Class of the rows.
    is_valid, wanted
        Test of a value, and what it asks for in words.

    Raises
    ------
    MeasuredError
        If columns are missing or values are invalid, with a problem for each.
    """
    reader = csv.DictReader(io.StringIO(text))
    columns = [field.name for field in fields(kind)]
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        got = f"no {', '.join(missing)}"
        raise MeasuredError(Problem(place=f"{place}:1", got=got, wanted="all columns"))
    rows = []
    problems = []
    for line, row in enumerate(reader, start=2):
        if _has_value(row["value"], is_valid):
            rows.append(kind(**{name: row[name] or "" for name in columns}))
            continue
        got = repr(row["value"])
        where = f"{place}:{line}"
        problems.append(Problem(place=where, key="value", got=got, wanted=wanted))
    if problems:
        raise MeasuredError(*problems)
    return tuple(rows)


def _has_value(text: str | None, is_valid: Callable[[float], bool]) -> bool:
    try:
        return is_valid(float(text or ""))
    except ValueError:
        return False
