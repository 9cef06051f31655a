"""Read published numbers and make claims of them. Columns say what was measured, on what, and where."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final, TypeVar

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.calibration.measured.tables import Source, read_rows
from stripesim.models.problems import MeasuredError, Problem
from stripesim.scenarios.studies.tasks import Row


@dataclass(frozen=True, kw_only=True)
class PublishedRow(ABC):
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
    def published(self) -> float | None:
        """The number, or None if the cell has none."""
        return _number_of(self.value)

    @property
    @abstractmethod
    def role(self) -> str:
        """Role of the row, by rules that were fixed before a model was compared with any row."""

    @property
    def quantity(self) -> str:
        """Name of what the row states."""
        return self.metric

    @property
    def claim_id(self) -> str:
        """Id of the row's claim."""
        return self.id

    @property
    def pattern(self) -> str:
        """Pattern of the requests, empty if the row has none."""
        return ""

    @property
    def conditions(self) -> str:
        """Conditions under which the number was measured, in words."""
        return f"{self.scheme}, {self.threads}"

    def claim(self, study: str, tolerance: float) -> Claim:
        """Return the claim that a simulated value is the number of the row, within a tolerance [1].

        A row without a number cannot be judged, and does not count.
        """
        return Claim(
            id=self.claim_id,
            paper=study,
            locus=self.source,
            metric=self.quantity,
            scheme=self.scheme,
            baseline="",
            pattern=self.pattern,
            op=self.op,
            block_size=self.block,
            published=self.published,
            published_text=self.value,
            unit=self.unit,
            kind="exact",
            role="not-derivable" if self.published is None else self.role,
            compare="value",
            tolerance=tolerance,
            note=self.note,
            statement=f"{self.metric} of {self.op} of {self.block}, {self.conditions}: {self.hardware}",
        )


#: A comma between thousands.
_BETWEEN_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}\b)")

AnyRow = TypeVar("AnyRow", bound=PublishedRow)


def published_rows(source: Source, kind: type[AnyRow]) -> tuple[AnyRow, ...]:
    """Return the rows of a table. A row without a number in ``value`` is a prediction.

    Parameters
    ----------
    source
        The table, as a CSV file.
    kind
        Class of the rows.

    Raises
    ------
    MeasuredError
        If the file cannot be read, columns are missing, or an id is missing or not unique, with a problem
        for each.
    """
    problems: list[Problem] = []
    columns = [field.name for field in fields(kind)]
    rows: dict[str, AnyRow] = {}
    for row in read_rows(source, columns, problems):
        name = row.text("id")
        if name in rows:
            row.refuse("id", "each id once")
        rows[name] = kind(**{column: row.words(column) for column in columns})
    if problems:
        raise MeasuredError(*problems)
    return tuple(rows.values())


def simulated_values(
    rows: Iterable[Row], id_column: str = "row_id"
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the simulated values by id, and the reasons for those that are missing."""
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for row in rows:
        if row["value"] is not None:
            values[row[id_column]] = row["value"]
        if row["reason"]:
            reasons[row[id_column]] = row["reason"]
    return values, reasons


def stated_number(text: str, *patterns: str) -> int | None:
    r"""Return the number that words of a source state: the group of the first pattern that fits, or None.

    >>> stated_number("8 hosts, 4,096 PGs", r"(\d+) PGs")
    4096
    """
    text = _BETWEEN_THOUSANDS.sub("", text)
    for pattern in patterns:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            return int(match[1])
    return None


def _number_of(text: str) -> float | None:
    """Return a number of at least 0, with or without commas between thousands, or None."""
    grouped = re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text)
    try:
        number = float(text.replace(",", "") if grouped else text)
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None
