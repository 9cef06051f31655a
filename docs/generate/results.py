"""Generate the reference of result columns."""

from __future__ import annotations

from generate.markdown import code, table
from stripesim.blocks import QUANTITIES

# The marker in docs/reference/json.md that the table replaces.
MARKER = "<!-- columns -->"


def columns() -> str:
    """Return the table of columns."""
    return table(("column", "type", "meaning"), [
        (code(column.key), column.dtype, column.meaning) for column in QUANTITIES.values()
    ])  # fmt: skip
