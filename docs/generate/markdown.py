"""Format cells, tables and numbers as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell(text: object) -> str:
    """Return a value as text for one table cell."""
    return " ".join(str(text).split()).replace("|", "\\|")


def code(text: object) -> str:
    """Return text as code, or an empty string for empty text."""
    return f"`{cell(text)}`" if str(text) else ""


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with one line per row and an empty line at the end."""
    lines = [headers, ["---"] * len(headers), *rows]
    return (
        "".join(f"| {' | '.join(cell(value) for value in line)} |\n" for line in lines)
        + "\n"
    )


def number(value: float | int | None, digits: int = 4) -> str:
    """Return a number with few digits, thousands separators, and no exponent if possible."""
    if value is None:
        return ""
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.{digits}g}"
