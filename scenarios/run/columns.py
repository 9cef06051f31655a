"""The columns of a result row, described once for the terminal, reports, figures, CSV and the reference.

`number_text` is how all of them write a number.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, Literal

import polars as pl


def number_text(value: float | None, factor: float = 1.0, *, digits: int = 3, padded: bool = False) -> str:
    """Write a number with three significant digits, without exponents; a dash where there is none.

    Examples
    --------
    >>> number_text(0.012345), number_text(36.84e6, 1e-6), number_text(1234.4), number_text(None)
    ('0.0123', '36.8', '1,234', '–')
    >>> number_text(5), number_text(5, padded=True), number_text(0.1234, digits=2)
    ('5', '5.00', '0.12')
    """
    if value is None or not math.isfinite(value):
        return "–"
    scaled = value * factor
    if abs(scaled) >= 10**digits:
        return f"{scaled:,.0f}"
    rounded = float(f"{scaled:.{digits}g}")
    if rounded == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:,.{decimals}f}"
    return text if padded or "." not in text else text.rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Column:
    """A column of the result rows.

    key: its name in the rows; units are part of it; dtype: type of its values; meaning: what it says, for the
    reference; words: what a report calls it; empty: not shown there; short: what a narrow table calls it;
    empty: as `words`; unit: in which it is shown; factor: from the unit of the column to the one shown;
    better: whether less or more of it is better; ci: columns with the ends of its confidence interval.
    """

    key: str
    dtype: type[pl.DataType]
    meaning: str
    words: str = ""
    short: str = ""
    unit: str = ""
    factor: float = 1.0
    better: Literal["less", "more"] = "less"
    ci: tuple[str, str] | None = None

    @property
    def heading(self) -> str:
        """Name and unit."""
        return f"{self.words} [{self.unit}]" if self.unit else self.words

    @property
    def short_heading(self) -> str:
        """Name and unit for a narrow table."""
        return f"{self.short or self.words} [{self.unit}]" if self.unit else self.short or self.words

    def text(self, row: Mapping[str, Any], *, padded: bool = False) -> str:
        """Write the value of a row, in the unit shown."""
        return number_text(row.get(self.key), self.factor, padded=padded)


def ci_text(row: Mapping[str, Any], low: str, high: str, factor: float, *, digits: int = 2) -> str:
    """Write half the width of a confidence interval; nothing where there is none."""
    ends = row.get(low), row.get(high)
    if ends[0] is None or ends[1] is None:
        return ""
    return number_text((ends[1] - ends[0]) / 2, factor, digits=digits, padded=True)


def _listed() -> Iterator[Column]:
    """Read the columns from `columns.toml`."""
    text = files(__package__).joinpath("columns.toml").read_text(encoding="utf-8")
    for key, given in tomllib.loads(text).items():
        ends = tuple(given["ci"]) if "ci" in given else None
        yield Column(key, **{**given, "dtype": getattr(pl, given.get("dtype", "Float64")), "ci": ends})


#: Every column of a result row by its key, in the order of the rows.
COLUMNS: Final[Mapping[str, Column]] = MappingProxyType({column.key: column for column in _listed()})
