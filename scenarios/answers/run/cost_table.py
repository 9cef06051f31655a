"""Lay out the costs of each cell: its mean latency by step."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.units import number_text, size_text
from stripesim.scenarios.show.figures.captions import STEP_LOOKS
from stripesim.scenarios.show.tables import (
    TerminalPart,
    listed_rows,
    natural_widths,
)
from stripesim.sim.observe.critical_path import (
    COST_KEYS,
    cost_key,
    dominant,
    steps_with_time,
)

#: Largest number of cells to print. Of a larger grid, only one block size is shown.
ROWS_MAX: Final = 24
_USUAL_SIZE_BYTES: Final = 4096
_NOTE: Final = (
    "% of the mean latency of the sampled requests, along their critical paths: first line service, second "
    "line waiting. * = largest part; log = the store's log and its thread; distri. = private network, "
    "sub-writes; read back = private network, reads; OSDs CPU = processors of the members; pause = saving "
    "data about to be overwritten; hung = waiting for a dead member until the request is reissued"
)


def cost_parts(rows: Sequence[Mapping[str, Any]]) -> list[TerminalPart]:
    """Return the table of latencies by step, or nothing if no row has them."""
    costed = [row for row in rows if row.get(COST_KEYS[0]) is not None]
    if not costed:
        return []
    return [TerminalPart(partial(_cost_table, costed))]


def _cost_table(
    costed: Sequence[Mapping[str, Any]], console: Console
) -> RenderableType:
    """Lay out the latency breakdown of each row; a large grid is shown at one block size only."""
    title = "Cost by step [%]"
    sizes = sorted({row.get("block_size_bytes") or 0 for row in costed})
    if len(costed) > ROWS_MAX and len(sizes) > 1:
        size = _USUAL_SIZE_BYTES if _USUAL_SIZE_BYTES in sizes else sizes[0]
        costed = [row for row in costed if row.get("block_size_bytes") == size]
        title += (
            f", {size_text(size)} of {len(sizes)} sizes (all: --out, figures costs-…)"
        )
    steps = steps_with_time(costed)
    headings = ["requests", "mean\n[ms]"]
    headings += [STEP_LOOKS[step].heading for step in steps]
    lines: list[list[str]] = []
    for row in costed:
        latency = number_text(row["cost_latency_mean_ns"] * 1e-6)
        name = Cell.of_row(row).name
        lines.append([name, latency, *(_share(row, step) for step in steps)])
        waiting = [_share(row, step, waiting=True) for step in steps]
        lines.append(["  waiting", "", *waiting])
    table = _table_of(title, headings, lines)
    if natural_widths(table, console).minimum <= console.width:
        return table
    return listed_rows(headings, lines, title=title, note=_NOTE)


def _table_of(
    title: str, headings: Sequence[str], lines: Sequence[Sequence[str]]
) -> Table:
    """Lay out a line of service and a line of waiting for each kind of request."""
    table = Table(
        box=SIMPLE_HEAD,
        caption=_NOTE,
        caption_justify="left",
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title=title,
        title_justify="left",
    )
    table.add_column(headings[0])
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for number, texts in enumerate(lines):
        table.add_row(*map(escape, texts), style="dim" if number % 2 else None)
    return table


def _share(row: Mapping[str, Any], step: str, *, waiting: bool = False) -> str:
    """Format a part as a percentage of the latency: a dot for zero, empty where the step cannot occur."""
    key = cost_key(step, waiting=waiting)
    part_ns = row.get(key)
    if part_ns is None:
        return ""
    if not part_ns:
        return "·"
    mark = "*" if key == f"cost_{dominant(row)}_ns" else ""
    percent = 100 * part_ns / row["cost_latency_mean_ns"]
    if percent >= 10:
        return f"{percent:.0f}{mark}"
    if percent >= 0.05:
        return f"{percent:.1f}{mark}"
    return "0.0"
