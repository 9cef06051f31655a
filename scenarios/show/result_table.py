"""Lay out result rows as a table that fits the terminal."""

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from stripesim.scenarios.schema.units import size_text
from stripesim.scenarios.show.quantities import IDENTITY, QUANTITIES, Rows
from stripesim.scenarios.show.tables import listed_rows, natural_widths
from stripesim.sim.observe.audit import failed_check
from stripesim.sim.observe.limits import LATENCY, NEAR, resource_name

# Rows that differ in these are separated in a table.
_GROUP: Final = ("scheme", "op", "pattern")
_NOTE: Final = "MB = 10⁶ bytes; latency = mean; B/B = bytes moved per client byte"


class _Shown(NamedTuple):
    """A column of the table; a narrow terminal leaves out columns of the highest `rank` first."""

    header: str
    write: Callable[[Mapping[str, Any]], str]
    rank: int = 0
    justify: Literal["left", "right"] = "right"
    no_wrap: bool = True


def _number(key: str, rank: int = 0) -> _Shown:
    quantity = QUANTITIES[key]
    ci = quantity.ci if key == "throughput_bytes_per_s" else None
    header = f"{quantity.short or quantity.words}\n[{quantity.unit}]"
    return _Shown(header, lambda row: quantity.padded_text(row, ci), rank)


def _text(key: str) -> Callable[[Mapping[str, Any]], str]:
    def write(row: Mapping[str, Any]) -> str:
        value = row.get(key)
        return "–" if value is None else str(value)

    return write


def block_text(row: Mapping[str, Any]) -> str:
    """Write the request size of a row, or a dash if it has several."""
    size_bytes = row.get("block_size_bytes")
    if size_bytes is None:
        return "–"
    return size_text(int(size_bytes))


def _bottleneck(row: Mapping[str, Any]) -> str:
    """Name the bottleneck of a row. A row that the audit refuses names the check."""
    refused = row.get("refused")
    if refused is None:
        return _limit(row)
    check = failed_check(refused)
    if row.get("iops") is None:
        return f"refused: {check}"
    return f"{_limit(row)} (unchecked: {check})"


def _limit(row: Mapping[str, Any]) -> str:
    """Name the bottleneck, with the utilisation of its busiest member if that is high."""
    name = resource_name(_text("bottleneck")(row))
    if name == LATENCY:
        return f"latency (most at {resource_name(row['latency_at'])})"
    highest = row.get("bottleneck_utilisation")
    mean = row.get("bottleneck_mean_utilisation")
    # A lock is a bottleneck because of its queue, even at a low utilisation.
    if highest is None or highest < NEAR:
        return name
    if mean is not None and mean < NEAR:
        name += " hot spot"
    return f"{name} {100 * highest:.0f} %"


_RATE: Final = _number("iops", rank=4)
_SHOWN: Final[Sequence[_Shown]] = (
    *(
        _Shown(key, _text(key), justify="left")
        for key in ("scheme", "op", "pattern", "workload")
    ),
    _Shown("block", block_text),
    _Shown("phase", _text("phase"), justify="left"),
    _RATE,
    _number("throughput_bytes_per_s"),
    _number("latency_mean_ns"),
    _number("latency_p99_ns", rank=1),
    _number("device_read_bytes_per_client_byte", rank=3),
    _number("device_write_bytes_per_client_byte", rank=3),
    _number("private_net_bytes_per_client_byte", rank=5),
    _number("cpu_ns_per_op", rank=6),
    _number("context_switches_per_op", rank=7),
    _Shown("blocked", _text("blocked"), rank=2, justify="left", no_wrap=False),
    _Shown("bottleneck", _bottleneck, justify="left", no_wrap=False),
)


#: Phases of a run under faults: name in the rows → name in tables.
PHASES: Final = {
    "before": "before",
    "slow": "slow drive",
    "degraded": "degraded",
    "recovery": "recovering",
    "after": "after",
}


def with_phases(rows: Rows) -> Rows:
    """Insert the phases of runs under faults as additional rows."""
    named = [phase for phase in PHASES if f"iops_{phase}" in _names(rows)]
    if not named:
        return rows
    listed: list[dict[str, Any]] = []
    for row in rows:
        listed.append({**row, "phase": "whole run"})
        for phase in named:
            if row[f"iops_{phase}"] is None:
                continue
            own: dict[str, Any] = {
                name: row[name] for name in (*IDENTITY, "workload") if name in row
            }
            throughput = row.get(f"throughput_{phase}_bytes_per_s")
            own["throughput_bytes_per_s"] = throughput
            for part in ("mean", "p50", "p99"):
                own[f"latency_{part}_ns"] = row.get(f"latency_{part}_{phase}_ns")
            if row[f"blocked_{phase}"]:
                longest_s = row[f"blocked_longest_{phase}_ns"] / 1e9
                own["blocked"] = (
                    f"{row[f'blocked_by_{phase}']}: up to {longest_s:.1f} s"
                )
            if phase == "recovery":
                own["bottleneck"] = row.get("recovery_limited_by")
            listed.append({**own, "iops": row[f"iops_{phase}"], "phase": PHASES[phase]})
    return listed


def _names(rows: Rows) -> set[str]:
    """Return the names of the columns of rows."""
    return {name for row in rows for name in row}


#: Rows of objects: the size is theirs, requests are no IOPS, and all are random.
_SHOWN_OF_OBJECTS: Final = tuple(
    {
        "block": column._replace(header="object"),
        _RATE.header: _RATE._replace(header="rate\n[1/s]", rank=0),
    }.get(column.header, column)
    for column in _SHOWN
    if column.header != "pattern"
)


def result_table(
    rows: Rows, console: Console, *, of_objects: bool = False
) -> RenderableType:
    """Lay out result rows as a table that fits a console, without the least important columns if need be.

    Where the most important ones do not fit either, each row is a list of all of them.

    `of_objects` is True for requests for objects in buckets. The percentage after the bottleneck is its
    utilisation. In the phase "recovering" the bottleneck is the limit of the recovery. Requests blocked by
    peering, leases or `min_size` have their own column. Missing values show as "–".
    """
    rows = with_phases(rows)
    columns = every = _columns_of(rows, of_objects)
    while True:
        table = _table(rows, columns, left_out=len(every) - len(columns))
        rank = max(column.rank for column in columns)
        needed = natural_widths(table, console)
        if needed.maximum <= console.width:
            return table
        if rank == 0:
            break
        columns = [column for column in columns if column.rank != rank]
    if needed.minimum <= console.width:
        return table
    names = [column.header for column in every]
    texts = [[column.write(row) for column in every] for row in rows]
    return listed_rows(names, texts, note=_note(rows))


def _columns_of(rows: Rows, of_objects: bool) -> list[_Shown]:
    """Return the columns of the table, without the optional ones that the rows lack."""
    missing = {"workload", "phase", "blocked"} - _names(rows)
    shown = _SHOWN_OF_OBJECTS if of_objects else _SHOWN
    return [column for column in shown if column.header not in missing]


def html_table(rows: Rows, *, of_objects: bool = False) -> str:
    """Write result rows as an HTML table, for notebooks. `of_objects` is that of `result_table`."""
    rows = with_phases(rows)
    columns = _columns_of(rows, of_objects)
    heads = "".join(f"<th>{html.escape(column.header)}</th>" for column in columns)
    lines = [
        "".join(f"<td>{html.escape(column.write(row))}</td>" for column in columns)
        for row in rows
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><tr>{heads}</tr>{body}</table>"


def _note(rows: Rows) -> str:
    """Explain the abbreviations, and what the rows of phases leave out."""
    if "phase" in _names(rows):
        return f"{_NOTE}; phases leave out blocked requests"
    return _NOTE


def _table(rows: Rows, columns: Sequence[_Shown], left_out: int) -> Table:
    notes = _note(rows)
    if left_out:
        notes += f"; columns left out: {left_out}, widen the terminal or see results.csv of --out"
    table = Table(
        box=SIMPLE_HEAD,
        caption=notes,
        caption_justify="left",
        pad_edge=False,
        collapse_padding=True,
    )
    for column in columns:
        table.add_column(
            escape(column.header), justify=column.justify, no_wrap=column.no_wrap
        )
    groups = [tuple(row.get(key) for key in _GROUP) for row in rows]
    are_several = len(set(groups)) < len(groups)
    for index, row in enumerate(rows):
        if are_several and index and groups[index] != groups[index - 1]:
            table.add_section()
        # Brackets in names and units are text, not rich's markup.
        table.add_row(*(escape(column.write(row)) for column in columns))
    return table
