"""Pieces of markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell(text: object) -> str:
    """Write a value so that it fits one cell of a table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def code(text: object) -> str:
    """Write text as code; nothing for nothing."""
    return f"`{cell(text)}`" if str(text) else ""


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table: one line per row, with an empty line after the last."""
    lines = [headers, ["---"] * len(headers), *rows]
    return (
        "".join(f"| {' | '.join(cell(value) for value in line)} |\n" for line in lines)
        + "\n"
    )


def number(value: float | int | None, digits: int = 4) -> str:
    """Write a number as people do: few digits, thousands apart, no exponent where it can be helped."""
    if value is None:
        return ""
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.{digits}g}"
