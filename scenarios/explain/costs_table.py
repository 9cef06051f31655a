"""The cost of a cell's requests by step, as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stripesim.scenarios.explain.costs import COST_KEYS, cost_key, dominant, steps_with_time
from stripesim.scenarios.figures.captions import three_digits
from stripesim.scenarios.schema.units import format_size

#: More cells than these are not read on a terminal: of a larger grid one size is shown.
ROWS_MAX: Final = 24
_USUAL_SIZE_BYTES: Final = 4096

#: What a step is called in figures.
STEP_WORDS: Final[Mapping[str, str]] = {
    "client": "client",
    "public_net": "public network",
    "lock": "PG lock, order of writes",
    "primary_cpu": "primary's CPU",
    "encode": "encode, decode",
    "read_back": "reading back",
    "distribution": "distribution",
    "shard_cpu": "shards' CPU",
    "device": "device",
    "log": "log",
    "pause": "saving old stripes",
    "hung": "resent after a fault",
}
# Two lines each and hardly wider than a number, so that all fit on 100 columns.
_HEADS: Final[Mapping[str, str]] = {
    "client": "cli-\nent",
    "public_net": "pub.\nnet",
    "lock": "PG\nlock",
    "primary_cpu": "pri.\nCPU",
    "encode": "en-\ncode",
    "read_back": "read\nback",
    "distribution": "dis-\ntri.",
    "shard_cpu": "OSDs\nCPU",
    "device": "de-\nvice",
    "log": "log",
    "pause": "pause",
    "hung": "hung",
}
_NOTE: Final = (
    "% of the mean latency of the requests followed, along their critical paths: first in service, below it "
    "waiting. * = the largest part; log = the store's log and its thread; distri. = private network of "
    "sub-writes; read back = private network of reads; OSDs CPU = of the members; pause = saving what is "
    "overwritten; hung = waiting for a dead member, until the request is issued again"
)


def print_costs(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print what the latency of each row consists of; nothing if no row has it.

    Notes
    -----
    Two lines for each cell, one of service and one of waiting, each step in percent of the latency. Steps
    that no row spends time on are left out. Of more than `ROWS_MAX` cells only those of one request size
    are shown, 4 KiB where there is such a one, else the smallest.
    """
    costed = [row for row in rows if row.get(COST_KEYS[0]) is not None]
    if not costed:
        return
    title = "Cost by step [%]"
    sizes = sorted({row.get("block_size_bytes") or 0 for row in costed})
    if len(costed) > ROWS_MAX and len(sizes) > 1:
        shown = _USUAL_SIZE_BYTES if _USUAL_SIZE_BYTES in sizes else sizes[0]
        costed = [row for row in costed if row.get("block_size_bytes") == shown]
        title += f", {format_size(shown)} of {len(sizes)} sizes (all: --out, figures costs-…)"
    steps = steps_with_time(costed)
    table = Table(
        box=SIMPLE_HEAD, caption=_NOTE, caption_justify="left", pad_edge=False, padding=(0, 1, 0, 0),
        title=title, title_justify="left",
    )  # fmt: skip
    table.add_column("requests")
    table.add_column("mean\n[ms]", justify="right", no_wrap=True)
    for step in steps:
        table.add_column(_HEADS[step], justify="right", no_wrap=True)
    for row in costed:
        largest = dominant(row)
        lines = [
            [_share(row, step, waiting=waiting, largest=largest) for step in steps]
            for waiting in (False, True)
        ]
        latency = three_digits(row["cost_latency_mean_ns"] * 1e-6)
        table.add_row(escape(_cell(row)), latency, *lines[0])
        table.add_row("  waiting", "", *lines[1], style="dim")
    console.print(table)


def _cell(row: Mapping[str, Any]) -> str:
    size = row.get("block_size_bytes")
    words = (
        row.get("scheme"),
        row.get("op"),
        row.get("pattern"),
        None if size is None else format_size(size),
    )
    return " ".join(str(word) for word in words if word is not None)


def _share(row: Mapping[str, Any], step: str, *, waiting: bool, largest: str | None) -> str:
    """Write a part in percent of the latency; a dot for none, nothing where there can be none."""
    part_ns = row.get(cost_key(step, waiting=waiting))
    if part_ns is None:
        return ""
    mark = "*" if cost_key(step, waiting=waiting) == f"cost_{largest}_ns" else ""
    if part_ns == 0:
        return "·"
    percent = 100 * part_ns / row["cost_latency_mean_ns"]
    return f"{percent:.0f}{mark}" if percent >= 10 else f"{percent:.1f}{mark}" if percent >= 0.05 else "0.0"
