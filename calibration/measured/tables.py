"""Read measured tables with typed cells, and collect all problems with file, line and column."""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from stripesim.models.problems import Problem, file_reason

Source = Path | Traversable

#: Names of columns that mean a metric, in a form that may not be read: without its unit, with another one or
#: one in brackets (``p99 [ms]``), in capitals, or a latency that says neither mean nor percentile.
_METRIC_COLUMN: Final = re.compile(
    r"(iops|throughput|mi?b[/_]s|(latency[ _]*)?(mean|p50|p95|p99)|latency)([ _]*(ns|us|µs|ms|s))?"
    r"\s*([\[(].*)?",
    re.IGNORECASE,
)

#: What spreadsheets of other languages put between fields.
_OTHER_SEPARATORS: Final[Mapping[str, str]] = {";": "semicolons", "\t": "tabs"}


class CsvRow:
    """One line of a table. Its cells are read by type, and problems are collected, not raised."""

    def __init__(
        self, file: str, line: int, cells: dict[str, str], problems: list[Problem]
    ) -> None:
        self.file = file
        self.line = line
        self.cells = cells
        self.problems = problems  #: Those of the whole table

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"

    def refuse(self, column: str, wanted: str) -> None:
        """Record that a cell is wrong. Only the first reason counts."""
        of_cell = (self.where, column)
        if any((one.place, one.key) == of_cell for one in self.problems):
            return
        got = repr(self.words(column))
        self.problems.append(
            Problem(place=self.where, key=column, got=got, wanted=wanted)
        )

    def words(self, column: str) -> str:
        """Return a text that may be empty or missing."""
        return self.cells.get(column, "")

    def text(self, column: str, choices: tuple[str, ...] = ()) -> str:
        """Return a non-empty text, one of the choices if there are any."""
        value = self.words(column)
        if not value or (choices and value not in choices):
            self.refuse(column, f"one of {', '.join(choices)}" if choices else "a word")
        return value

    def whole(self, column: str, least: int, default: int | None = None) -> int:
        """Return a whole number of at least `least`. A default replaces an empty cell."""
        value = self.words(column)
        if not value and default is not None:
            return default
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number == int(number) and number >= least):
            self.refuse(column, f"a whole number of at least {least}")
            return least
        return int(number)

    def number(self, column: str) -> float | None:
        """Return a number, or None for an empty cell or a missing column."""
        return self._number_above(-math.inf, column, "a number, or nothing")

    def positive(self, column: str) -> float | None:
        """Return a number above 0, or None for an empty cell or a missing column."""
        return self._number_above(0, column, "a number above 0")

    def _number_above(self, low: float, column: str, wanted: str) -> float | None:
        value = self.words(column)
        if not value:
            return None
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not low < number < math.inf:
            self.refuse(column, wanted)
            return None
        return number


def no_rows(source: Source) -> Problem:
    """Return the problem of a table that has a header alone."""
    return Problem(
        place=f"{source.name}:1", got="a header alone", wanted="at least one row"
    )


def read_rows(
    source: Source, columns: Iterable[str], problems: list[Problem]
) -> list[CsvRow]:
    """Read a CSV file that has at least these columns, and record its problems."""
    try:
        # Spreadsheets put a byte order mark before the header.
        text = source.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        wanted = "a CSV file in UTF-8"
        problems.append(
            Problem(place=str(source), got=file_reason(error), wanted=wanted)
        )
        return []
    reader = csv.DictReader(io.StringIO(text))
    header = [name.strip() for name in reader.fieldnames or ()]
    reader.fieldnames = header
    wrong = list(_header_problems(f"{source.name}:1", header))
    if wrong:
        problems += wrong
        return []
    absent = [column for column in columns if column not in header]
    if absent:
        problems.append(
            Problem(
                place=f"{source.name}:1",
                got=f"no column {', '.join(absent)}",
                wanted=", ".join(columns),
            )
        )
        return []
    rows = []
    for cells in reader:
        if None in cells or None in cells.values():
            problems.append(
                Problem(
                    place=f"{source.name}:{reader.line_num}",
                    got="a row of another length than the header's",
                    wanted=f"{len(header)} fields, with quotes around one that has a comma",
                )
            )
            continue
        known = {key: value.strip() for key, value in cells.items()}
        rows.append(CsvRow(source.name, reader.line_num, known, problems))
    return rows


def misnamed_metrics(
    row: CsvRow, known: Iterable[str], wanted: str
) -> Iterator[Problem]:
    """Yield the columns of a table that seem to hold a metric and would be left out, such as ``p99 [ms]``."""
    names = set(known)
    for column in row.cells:
        if column not in names and _METRIC_COLUMN.fullmatch(column):
            yield Problem(
                place=f"{row.file}:1",
                got=f"column {column}",
                wanted=f"a name of a metric: {wanted}",
            )


def _header_problems(where: str, header: list[str]) -> Iterator[Problem]:
    """Yield the reasons why a first line does not name columns."""
    if not any(header):
        got = "an empty line" if header else "an empty file"
        yield Problem(place=where, got=got, wanted="the names of columns")
    for separator, name in _OTHER_SEPARATORS.items():
        # Names of columns may hold these characters, but then other fields are next to them.
        if len(header) == 1 and separator in header[0]:
            yield Problem(
                place=where,
                got=f"{name} between fields",
                wanted="commas, and points in numbers",
            )
    for name, count in Counter(filter(None, header)).items():
        if count > 1:
            yield Problem(
                place=where, got=f"{count} columns {name}", wanted="one of each name"
            )
