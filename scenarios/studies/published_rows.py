"""Read tables of published numbers whose columns say what was measured, on what and where it is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

from stripesim.calibration.measured.tables import Source, read_rows
from stripesim.models.problems import MeasuredError, Problem


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


def published_rows(
    source: Source,
    kind: type[AnyRow],
    *,
    is_valid: Callable[[float], bool] = lambda value: True,
    wanted: str = "a number",
) -> tuple[AnyRow, ...]:
    """Return the rows of a table.

    Parameters
    ----------
    source
        The table, as a CSV file.
    kind
        Class of the rows.
    is_valid, wanted
        Test of a value, and what it asks for in words.

    Raises
    ------
    MeasuredError
        If the file cannot be read, columns are missing or values are invalid, with a problem for each.
    """
    problems: list[Problem] = []
    columns = [field.name for field in fields(kind)]
    rows = []
    for row in read_rows(source, columns, problems):
        if not _has_value(row.words("value"), is_valid):
            row.refuse("value", wanted)
            continue
        rows.append(kind(**{name: row.words(name) for name in columns}))
    if problems:
        raise MeasuredError(*problems)
    return tuple(rows)


def _has_value(text: str, is_valid: Callable[[float], bool]) -> bool:
    try:
        return is_valid(float(text))
    except ValueError:
        return False
