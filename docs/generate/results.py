"""The reference of result columns: those of every row, with what each means."""

from __future__ import annotations

from generate.markdown import code, table
from stripesim.blocks import COLUMNS

# The marker in docs/reference/json.md that the table takes the place of.
MARKER = "<!-- columns -->"


def columns() -> str:
    """Write the table of columns."""
    return table(("column", "type", "meaning"), [
        (code(column.key), column.dtype.__name__, column.meaning) for column in COLUMNS.values()
    ])  # fmt: skip
