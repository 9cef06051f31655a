"""Build the tables and sentences that commands print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stripesim.cli.output import table

if TYPE_CHECKING:
    from rich.table import Table

#: Headings for the keys of mappings in a trace summary.
_KEYS_OF = {
    "dispersion": "window [s]",
    "hit_ratio": "cache / footprint",
    "counts": "lines",
    "reasons": "reason",
}


def summary_tables(summary: Mapping[str, Any]) -> list[Table]:
    """Lay out a summary by `stripesim.traces.describe`: single values first, then lists and groups.

    Values that the trace does not have are left out.
    """

    def plain(
        heading: str, columns: Sequence[str], rows: Iterable[Iterable[Any]]
    ) -> Table:
        texts = [[_cell(value) for value in row] for row in rows]
        return table(columns, texts, numbers=range(1, len(columns)), title=heading)

    single = {
        key: value
        for key, value in summary.items()
        if value is not None and not isinstance(value, dict | list)
    }
    tables = [plain("", ("property", "value"), single.items())]
    for key, value in summary.items():
        heading = key.replace("_", " ")
        if isinstance(value, dict) and value:
            tables.append(
                plain(heading, (_KEYS_OF.get(key, ""), "value"), value.items())
            )
        elif isinstance(value, list) and value:
            tables.append(
                plain(heading, list(value[0]), (row.values() for row in value))
            )
    return tables


def _cell(value: Any) -> str:
    """Format a value of a summary: four digits of a fraction, all digits of a count."""
    from stripesim.scenarios.schema.units import number_text

    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return number_text(value, digits=4)
