"""Read measured tables with typed cells, and collect all faults with file, line and column."""

import csv
import math
from importlib.resources.abc import Traversable
from pathlib import Path

Source = Path | Traversable


class Row:
    """One line of a table. Its cells are read by type, and faults are collected, not raised."""

    def __init__(
        self, file: str, line: int, cells: dict[str, str], faults: list[str]
    ) -> None:
        self.file = file
        self.line = line
        self.cells = cells
        self._faults = faults

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"

    def fault(self, column: str, wanted: str) -> None:
        """Note that a cell is wrong."""
        self._faults.append(
            f"{self.where}: {column}: got {self.cells.get(column, '')!r}, wanted {wanted}"
        )

    def text(self, column: str, choices: tuple[str, ...] = ()) -> str:
        """Return a non-empty text, one of the choices if there are any."""
        value = self.cells.get(column, "")
        if not value or (choices and value not in choices):
            self.fault(column, f"one of {', '.join(choices)}" if choices else "a word")
        return value

    def whole(self, column: str, least: int, default: int | None = None) -> int:
        """Return a whole number of at least `least`. A default replaces an empty cell."""
        value = self.cells.get(column, "")
        if not value and default is not None:
            return default
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number == int(number) and number >= least):
            self.fault(column, f"a whole number of at least {least}")
            return least
        return int(number)

    def number(self, column: str) -> float | None:
        """Return a number, or None for an empty cell or a missing column."""
        value = self.cells.get(column, "")
        if not value:
            return None
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.fault(column, "a number, or nothing")
            return None
        return number


def read_rows(source: Source, columns: tuple[str, ...], faults: list[str]) -> list[Row]:
    """Read a CSV file."""
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        faults.append(
            f"{source}: cannot be read ({error.__class__.__name__}), wanted a CSV file"
        )
        return []
    reader = csv.DictReader(text.splitlines())
    absent = [column for column in columns if column not in (reader.fieldnames or ())]
    if absent:
        faults.append(
            f"{source.name}:1: got no column {', '.join(absent)}, wanted {', '.join(columns)}"
        )
        return []
    rows = []
    for cells in reader:
        if None in cells or None in cells.values():
            faults.append(
                f"{source.name}:{reader.line_num}: got a row of another length than the header's, "
                f"wanted {len(reader.fieldnames or ())} fields"
            )
            continue
        known = {key: value.strip() for key, value in cells.items()}
        rows.append(Row(source.name, reader.line_num, known, faults))
    return rows
