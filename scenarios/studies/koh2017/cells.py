"""Numbers of result rows: a quantity over schemes, figures and block sizes, its means and its ratios."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import polars as pl

from stripesim.calibration.ledger.verdicts import Observation
from stripesim.models.problems import MeasuredError, NotComputedError, Problem
from stripesim.scenarios.studies.koh2017.paper import FIGURES

KIB_BYTES = 1024
SIZES_BYTES = tuple(KIB_BYTES << power for power in range(8))
"""The eight block sizes of the paper, 1 KiB to 128 KiB [bytes]."""
REP = "rep:3"
RS63 = "rs:6,3"
RS104 = "rs:10,4"
BARE = "none"
CODES = (RS63, RS104)
STORAGE = (REP, *CODES)

NO_VALUE = "not computed from these rows"
KEYS = ("scheme", "op", "pattern", "image", "block_size_bytes")
Cell = tuple[str, str, str, str, int]
Names = str | Sequence[str]


class RowFormula(NamedTuple):
    """A number of a result row: its columns, and its formula from them and the block size."""

    columns: tuple[str, ...]
    of: Callable[..., float]


class Numbers(ABC):
    """A source of numbers for claims. Schemes and figures are one name or several."""

    @abstractmethod
    def value(
        self, quantity: RowFormula, scheme: str, figure: str, size_bytes: int
    ) -> float:
        """Return one number, or raise `NotComputedError` with the reason."""

    def of(
        self,
        quantity: RowFormula,
        schemes: Names,
        figures: Names,
        sizes_bytes: Sequence[int] = SIZES_BYTES,
    ) -> list[float]:
        """Return values in the order schemes, figures, sizes."""
        return [
            self.value(quantity, scheme, figure, size_bytes)
            for scheme in ([schemes] if isinstance(schemes, str) else schemes)
            for figure in ([figures] if isinstance(figures, str) else figures)
            for size_bytes in sizes_bytes
        ]

    def mean(
        self,
        quantity: RowFormula,
        schemes: Names,
        figures: Names,
        sizes_bytes: Sequence[int] = SIZES_BYTES,
    ) -> float:
        """Return the arithmetic mean, every cell with the same weight."""
        return average(self.of(quantity, schemes, figures, sizes_bytes))

    def over(
        self, quantity: RowFormula, schemes: Names, figures: Names, baseline: str = REP
    ) -> float:
        """Return the mean of a scheme over the mean of another in the same figures."""
        return divide(
            self.mean(quantity, schemes, figures),
            self.mean(quantity, baseline, figures),
        )

    def between(
        self, quantity: RowFormula, scheme: str, figures: Names, baseline: Names
    ) -> float:
        """Return the mean of a scheme in some figures over its mean in others."""
        return divide(
            self.mean(quantity, scheme, figures), self.mean(quantity, scheme, baseline)
        )

    def ratios(
        self,
        quantity: RowFormula,
        scheme: str,
        figure: str,
        sizes_bytes: Sequence[int] = SIZES_BYTES,
        *,
        baseline: str = REP,
        than: str | None = None,
    ) -> list[float]:
        """Compare size by size: a scheme over the baseline in one figure, or over itself in another."""
        if than is None:
            base_values = self.of(quantity, baseline, figure, sizes_bytes)
        else:
            base_values = self.of(quantity, scheme, than, sizes_bytes)
        return list(
            map(divide, self.of(quantity, scheme, figure, sizes_bytes), base_values)
        )

    def largest_ratio(
        self, quantity: RowFormula, schemes: Iterable[str], figures: Iterable[str]
    ) -> float:
        """Return the largest size-by-size ratio to 3-replication, over all cells named."""
        figures = list(figures)
        return max(
            max(self.ratios(quantity, scheme, figure))
            for scheme in schemes
            for figure in figures
        )


class CellNumbers(Numbers):
    """The numbers of result rows, one row per cell. A `MeasuredError` names a cell with two."""

    def __init__(self, rows: pl.DataFrame) -> None:
        absent = [key for key in KEYS if key not in rows.columns]
        if absent:
            raise MeasuredError(
                Problem(
                    key="rows",
                    got=f"no column {', '.join(absent)}",
                    wanted=", ".join(KEYS),
                )
            )
        self._rows: dict[Cell, dict[str, object]] = {}
        for row in rows.iter_rows(named=True):
            cell: Cell = (
                row["scheme"],
                row["op"],
                row["pattern"],
                row["image"],
                row["block_size_bytes"],
            )
            if cell in self._rows:
                raise MeasuredError(
                    Problem(
                        key="rows",
                        got=f"two rows for {_described(cell)}",
                        wanted="one per cell",
                    )
                )
            self._rows[cell] = row

    def value(
        self, quantity: RowFormula, scheme: str, figure: str, size_bytes: int
    ) -> float:
        """Return one number from the row of this cell."""
        cell = cell_of(scheme, figure, size_bytes)
        row = self._rows.get(cell)
        if row is None:
            raise NotComputedError(f"{NO_VALUE}: no row for {_described(cell)}")
        values = []
        for name in quantity.columns:
            if name not in row:
                raise NotComputedError(f"{NO_VALUE}: the rows have no column {name}")
            number = row[name]
            if not isinstance(number, int | float) or not math.isfinite(number):
                raise NotComputedError(
                    f"{NO_VALUE}: {name} is {number} for {_described(cell)}"
                )
            values.append(float(number))
        return quantity.of(*values, size_bytes)


class Recorder(Numbers):
    """A recorder of the cells and figures that a claim needs."""

    def __init__(self) -> None:
        self.cells: set[Cell] = set()
        self.figures: set[str] = set()

    def value(
        self, quantity: RowFormula, scheme: str, figure: str, size_bytes: int
    ) -> float:
        """Record the cell. Every quantity is 1, so no division is by 0."""
        self.cells.add(cell_of(scheme, figure, size_bytes))
        self.figures.add(figure)
        return 1.0


def cell_of(scheme: str, figure: str, size_bytes: int) -> Cell:
    """Return the key of the row a figure takes for one scheme and block size [bytes]."""
    runs = FIGURES[figure]
    return scheme, runs.op, runs.pattern, runs.image, size_bytes


def _described(cell: Cell) -> str:
    scheme, op, pattern, image, size_bytes = cell
    return f"{scheme} {pattern} {op} of {size_bytes} B on a {image} image"


def average(values: Iterable[float]) -> float:
    """Return the arithmetic mean."""
    listed = list(values)
    return sum(listed) / len(listed)


def divide(numerator: float, denominator: float) -> float:
    """Return the ratio of two numbers, or raise the reason why there is none."""
    if denominator == 0:
        raise NotComputedError(
            f"{NO_VALUE}: the quantity to compare with is 0, so there is no ratio"
        )
    return numerator / denominator


def trend(*lists: Sequence[float], tolerance: float) -> Observation:
    """Return the trend of each list from its first to its last member, once if all agree.

    ``flat``: every value within the tolerance of the mean. ``decreasing``: the last value is below the first
    by more than the tolerance and no value exceeds the lowest before it by more than the tolerance.
    ``increasing``: the reverse. Otherwise ``mixed``. Changes within the tolerance, a fraction, do not count.
    """
    trends = [_trend(values, tolerance) for values in lists]
    says = trends[0] if len(set(trends)) == 1 else ", ".join(trends)
    return Observation(says, tuple(value for values in lists for value in values))


def _trend(values: Sequence[float], tolerance: float) -> str:
    """Return the word for one list.

    >>> _trend([90, 91, 89, 45, 20], 0.2)
    'decreasing'
    >>> _trend([50, 55, 48, 52], 0.2)
    'flat'
    """
    centre = sum(values) / len(values)
    if all(abs(value - centre) <= tolerance * abs(centre) for value in values):
        return "flat"
    if _falls(values, tolerance):
        return "decreasing"
    return "increasing" if _falls(values[::-1], tolerance) else "mixed"


def _falls(values: Sequence[float], tolerance: float) -> bool:
    lowest = values[0]
    for value in values:
        if value > lowest * (1 + tolerance):
            return False
        lowest = min(lowest, value)
    return values[-1] < values[0] * (1 - tolerance)
