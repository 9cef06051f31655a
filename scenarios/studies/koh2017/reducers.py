"""From result rows to one number: selections, means, extremes, ratios and trends for claims to compose.

A *series* picks a quantity over schemes, figures and block sizes; a *rule* turns series into what a claim is
compared with. Neither knows which claim it serves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import polars as pl

from stripesim.calibration.ledger.verdicts import Observation

KIB_BYTES = 1024
SIZES_BYTES = tuple(KIB_BYTES << power for power in range(8))
"""The eight block sizes of the paper, 1 KiB to 128 KiB [bytes]."""

KEYS = ("scheme", "op", "pattern", "image", "block_size_bytes")
Cell = tuple[str, str, str, str, int]


class RowsError(ValueError):
    """Result rows that cannot be read as one value per cell."""


class NotComputedError(Exception):
    """Why a rule has no value for these rows; its text becomes the claim's reason."""


@dataclass(frozen=True)
class Runs:
    """The runs a figure was drawn from, one per scheme and block size.

    ``bound`` says what ends a run: ``steady`` (anything long enough; the figure does not depend on it) or
    ``time`` (the same simulated duration for every cell, because the figure does depend on it).
    """

    op: Literal["read", "write"]
    pattern: Literal["seq", "rand"]
    image: Literal["prefilled", "pristine"]
    bound: Literal["steady", "time"]


@dataclass(frozen=True)
class Quantity:
    """A number read from one result row: the columns it needs and how they combine.

    ``of`` receives the columns' values in order and the block size [bytes].
    """

    name: str
    columns: tuple[str, ...]
    of: Callable[[tuple[float, ...], int], float]


class Lookup(Protocol):
    """Where rules find their numbers."""

    def value(self, quantity: Quantity, scheme: str, figure: str, size_bytes: int) -> float:
        """One number, or `NotComputedError` with the reason."""
        ...


Series = Callable[[Lookup], list[float]]
NumberRule = Callable[[Lookup], float]
Rule = Callable[[Lookup], float | tuple[float, ...] | Observation]


class RowTable:
    """Result rows by cell.

    Parameters
    ----------
    rows
        One row per cell; the key columns are `KEYS`.
    figures
        Figure → the runs behind it.

    Raises
    ------
    RowsError
        If a key column is missing or two rows describe the same cell.
    """

    def __init__(self, rows: pl.DataFrame, figures: Mapping[str, Runs]) -> None:
        absent = [key for key in KEYS if key not in rows.columns]
        if absent:
            raise RowsError(f"rows: got no column {', '.join(absent)}, wanted {', '.join(KEYS)}")
        self._figures = figures
        self._columns = frozenset(rows.columns)
        self._rows: dict[Cell, dict[str, object]] = {}
        for row in rows.iter_rows(named=True):
            cell: Cell = (row["scheme"], row["op"], row["pattern"], row["image"], row["block_size_bytes"])
            if cell in self._rows:
                raise RowsError(f"rows: got two rows for {describe_cell(cell)}, wanted one per cell")
            self._rows[cell] = row

    def value(self, quantity: Quantity, scheme: str, figure: str, size_bytes: int) -> float:
        """One number from the row of this cell."""
        cell = cell_of(scheme, self._figures[figure], size_bytes)
        row = self._rows.get(cell)
        if row is None:
            raise NotComputedError(f"no row for {describe_cell(cell)}")
        absent = [name for name in quantity.columns if name not in self._columns]
        if absent:
            raise NotComputedError(f"the rows have no column {', '.join(absent)}")
        values = []
        for name in quantity.columns:
            number = row[name]
            if not isinstance(number, int | float) or not math.isfinite(number):
                raise NotComputedError(f"{name} is {number} for {describe_cell(cell)}")
            values.append(float(number))
        return quantity.of(tuple(values), size_bytes)


class CellRecorder:
    """A lookup that only notes which cells, and of which figures, the rules ask for."""

    def __init__(self, figures: Mapping[str, Runs]) -> None:
        self._figures = figures
        self.cells: set[Cell] = set()
        self.figures: set[str] = set()

    def value(self, quantity: Quantity, scheme: str, figure: str, size_bytes: int) -> float:
        """Note the cell; every quantity is 1 so that no rule divides by nothing."""
        self.cells.add(cell_of(scheme, self._figures[figure], size_bytes))
        self.figures.add(figure)
        return 1.0


def cell_of(scheme: str, runs: Runs, size_bytes: int) -> Cell:
    """Key of the row a figure takes for one scheme and block size [bytes]."""
    return scheme, runs.op, runs.pattern, runs.image, size_bytes


def describe_cell(cell: Cell) -> str:
    """A cell in words, for messages."""
    scheme, op, pattern, image, size_bytes = cell
    return f"{scheme} {pattern} {op} of {size_bytes} B on a {image} image"


def of(
    quantity: Quantity,
    schemes: str | Sequence[str],
    figures: str | Sequence[str],
    sizes_bytes: Sequence[int] = SIZES_BYTES,
) -> Series:
    """Pick a quantity, in the order schemes, figures, sizes."""
    scheme_list = [schemes] if isinstance(schemes, str) else list(schemes)
    figure_list = [figures] if isinstance(figures, str) else list(figures)

    def series(lookup: Lookup) -> list[float]:
        return [
            lookup.value(quantity, scheme, figure, size_bytes)
            for scheme in scheme_list
            for figure in figure_list
            for size_bytes in sizes_bytes
        ]

    return series


def mean(series: Series) -> NumberRule:
    """Arithmetic mean of the series, every cell with the same weight."""

    def rule(lookup: Lookup) -> float:
        values = series(lookup)
        return sum(values) / len(values)

    return rule


def largest(series: Series) -> NumberRule:
    """The series' maximum: the paper's "up to"."""
    return lambda lookup: max(series(lookup))


def smallest(series: Series) -> NumberRule:
    """The series' minimum: the paper's "at least"."""
    return lambda lookup: min(series(lookup))


def majority_bound(series: Series) -> NumberRule:
    """Smallest number that more than half of the series does not exceed: "less than … for most sizes"."""

    def rule(lookup: Lookup) -> float:
        values = sorted(series(lookup))
        return values[len(values) // 2]

    return rule


def farthest_from(target: float, series: Series) -> NumberRule:
    """The member that deviates most from `target`: a claim about all cells fails with its worst one."""
    return lambda lookup: max(series(lookup), key=lambda value: abs(value - target))


def average_of(*rules: NumberRule) -> NumberRule:
    """Mean of several numbers, for a claim that names two codes in one figure."""
    return lambda lookup: sum(rule(lookup) for rule in rules) / len(rules)


def ratio(numerator: NumberRule, denominator: NumberRule) -> NumberRule:
    """Ratio of two numbers; with means inside, the ratio of the means."""
    return lambda lookup: _divide(numerator(lookup), denominator(lookup))


def ratios(numerators: Series, denominators: Series) -> Series:
    """Cell-by-cell ratios of two series in the same order."""

    def series(lookup: Lookup) -> list[float]:
        pairs = zip(numerators(lookup), denominators(lookup), strict=True)
        return [_divide(numerator, denominator) for numerator, denominator in pairs]

    return series


def joined(*parts: Series) -> Series:
    """Several series one after another."""
    return lambda lookup: [value for part in parts for value in part(lookup)]


def drop_percent(value: NumberRule, baseline: NumberRule) -> NumberRule:
    """By how much `value` lies below `baseline` [%]."""
    relative = ratio(value, baseline)
    return lambda lookup: 100 * (1 - relative(lookup))


def rise_percent(value: NumberRule, baseline: NumberRule) -> NumberRule:
    """By how much `value` lies above `baseline` [%]."""
    relative = ratio(value, baseline)
    return lambda lookup: 100 * (relative(lookup) - 1)


def gap_percent(value: NumberRule, baseline: NumberRule) -> NumberRule:
    """Distance of `value` from `baseline`, whichever is larger [%]."""
    relative = ratio(value, baseline)
    return lambda lookup: 100 * abs(relative(lookup) - 1)


def largest_of(*rules: NumberRule) -> NumberRule:
    """The largest of several numbers."""
    return lambda lookup: max(rule(lookup) for rule in rules)


def span(*rules: NumberRule) -> Rule:
    """The numbers' smallest and largest as a pair, for a published range."""

    def rule(lookup: Lookup) -> tuple[float, float]:
        values = [one(lookup) for one in rules]
        return min(values), max(values)

    return rule


def trend(*series: Series, tolerance: float) -> Rule:
    """Describe how each series runs from its first to its last member.

    Parameters
    ----------
    tolerance
        Fraction of change that does not count as a change.

    Notes
    -----
    ``flat``: every value within the tolerance of the mean. ``decreasing``: the last value is below the first
    by more than the tolerance and no value exceeds the lowest before it by more than the tolerance;
    ``increasing`` likewise. Otherwise ``mixed``. Series that disagree are all named.
    """

    def rule(lookup: Lookup) -> Observation:
        lists = [one(lookup) for one in series]
        words = [describe_trend(values, tolerance) for values in lists]
        says = words[0] if len(set(words)) == 1 else ", ".join(words)
        return Observation(says, tuple(value for values in lists for value in values))

    return rule


def describe_trend(values: Sequence[float], tolerance: float) -> str:
    """Word for one series, see `trend`.

    >>> describe_trend([90, 91, 89, 45, 20], 0.2)
    'decreasing'
    >>> describe_trend([50, 55, 48, 52], 0.2)
    'flat'
    """
    centre = sum(values) / len(values)
    if all(abs(value - centre) <= tolerance * abs(centre) for value in values):
        return "flat"
    if _falls(values, tolerance):
        return "decreasing"
    if _falls(values[::-1], tolerance):
        return "increasing"
    return "mixed"


def always_above_one(series: Series, words: str, otherwise: str) -> Rule:
    """Say `words` if every member of the series exceeds 1, else `otherwise`."""

    def rule(lookup: Lookup) -> Observation:
        values = series(lookup)
        return Observation(words if all(value > 1 for value in values) else otherwise, tuple(values))

    return rule


def as_series(*rules: NumberRule) -> Series:
    """Several numbers as a series."""
    return lambda lookup: [rule(lookup) for rule in rules]


def _falls(values: Sequence[float], tolerance: float) -> bool:
    lowest = values[0]
    for value in values:
        if value > lowest * (1 + tolerance):
            return False
        lowest = min(lowest, value)
    return values[-1] < values[0] * (1 - tolerance)


def _divide(numerator: float, denominator: float) -> float:
    if denominator == 0:
        raise NotComputedError("the quantity to compare with is 0, so there is no ratio")
    return numerator / denominator
