"""The tables of a run's report."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from stripesim.scenarios.figures.captions import scheme_label
from stripesim.scenarios.planning.capacity import SECONDS_PER_YEAR
from stripesim.scenarios.report.data import Kind, RunReport
from stripesim.scenarios.report.page.render import Cell, Table
from stripesim.scenarios.report.words import (
    RESOURCE_WORDS,
    bytes_text,
    duration_text,
    request_words,
    size_text,
    span,
    times,
)
from stripesim.scenarios.run.columns import COLUMNS, Column, ci_text, number_text
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.problems import value_text

# Columns of the result rows that schemes are compared by.
_MEASURES = (
    "throughput_bytes_per_s",
    "iops",
    "latency_p50_ns",
    "latency_p99_ns",
    "cpu_ns_per_op",
    "cpu_utilisation",
    "private_net_bytes_per_client_byte",
    "public_net_bytes_per_client_byte",
    "device_read_bytes_per_client_byte",
    "device_write_bytes_per_client_byte",
)
# Those that stand in the table of every result, behind throughput and its interval.
_EACH = (
    "iops",
    "latency_p50_ns",
    "latency_p99_ns",
    "device_read_bytes_per_client_byte",
    "device_write_bytes_per_client_byte",
    "private_net_bytes_per_client_byte",
    "cpu_ns_per_op",
)

Row = list[str | Cell]

#: Differences below this are none to decide by.
_NOTABLE = 0.02


def comparison(report: RunReport) -> Table:
    """Set the schemes side by side: capacity, repair, then each kind of request."""
    rows: list[Row] = [["Storage"], *_storage_rows(report)]
    for kind in report.kinds:
        rows.append([request_words(*kind, report.sizes_of(kind))])
        rows += [row for key in _MEASURES if (row := _measure_row(report, kind, COLUMNS[key])) is not None]
        rows += _wear_rows(report, kind)
        rows.append(["bottleneck", *(_bottleneck_cell(report, kind, scheme) for scheme in report.schemes)])
    return Table(
        "Schemes compared", ["", *map(scheme_label, report.schemes)], rows, form="compare", numeric=True
    )


def comparison_notes(report: RunReport) -> list[str]:
    """Say how to read the comparison."""
    notes = []
    if len(report.schemes) > 1:
        notes.append(
            f"A factor compares with {scheme_label(report.schemes[0])}. Bold: best of its row, where schemes "
            f"differ by {_NOTABLE:.0%} or more. All meet the same requests and the same random numbers."
        )
    if report.result.timelines:
        notes.append(
            "Rates and latencies are of the whole run, failures and recovery included; “Failures and repair "
            "as simulated” has them by phase."
        )
    notes.append("MB = 10⁶ bytes; B/B = bytes moved for each byte that the client reads or writes.")
    if any(len(report.sizes_of(kind)) > 1 for kind in report.kinds):
        notes.append(
            "Two numbers are the least and the greatest over the block sizes; “Every result” has each."
        )
    if any(report.wear(kind, scheme) for kind in report.kinds for scheme in report.schemes):
        notes.append(
            "Drive writes per day suppose that the simulated rate goes on day and night and spreads evenly; "
            "they count what hosts write, as ratings do."
        )
    return notes


def _storage_rows(report: RunReport) -> list[Row]:
    held = [report.capacities[scheme] for scheme in report.schemes]
    rows: list[Row] = []
    usable = [one.usable_bytes for one in held]
    if None not in usable:
        texts = [bytes_text(value) for value in usable]
        rows.append(["usable capacity", *_judged([[value] for value in usable], texts, "more")])
    stored = [one.stored_per_client_byte for one in held]
    texts = [f"{number_text(value)} B" for value in stored]
    rows.append(["stored for each client byte", *_judged([[value] for value in stored], texts, "less")])
    rows.append(["lost shards survived", *(str(one.failures_tolerated) for one in held)])
    seconds = [report.repair_seconds(scheme) for scheme in report.schemes]
    if any(seconds):
        longest = [max(some, default=None) for some in seconds]
        words = "repair of one OSD" + (", under the load" if report.scenario.repair else ", idle cluster")
        texts = [_ends(some, duration_text) for some in seconds]
        rows.append([words, *_judged([[value] for value in longest], texts, "less")])
    healed = [
        [row.get("failure_to_clean_s") for row in report.rows if row["scheme"] == scheme]
        for scheme in report.schemes
    ]
    if report.scenario.faults is not None:
        known = [[value for value in some if value is not None] for some in healed]
        texts = [_ends(some, duration_text) for some in known]
        longest = [max(some, default=None) for some in known]
        words = "the scenario’s faults, until all data is rebuilt"
        rows.append([words, *_judged([[value] for value in longest], texts, "less")])
    return rows


def _ends(values: Sequence[float], write: Callable[[float], str]) -> str:
    """Write the least and the greatest of some values."""
    ends = (min(values), max(values)) if values else ()
    return " … ".join(dict.fromkeys(map(write, ends))) or "–"


def _judged(
    values: Sequence[Sequence[float | None]], texts: Sequence[str], better: Literal["less", "more"]
) -> list[Cell]:
    """Cells of one row: with the factor of the first scheme, and the best one marked."""
    means = [_mean([value for value in some if value is not None]) for some in values]
    known = [mean for mean in means if mean is not None]
    best = (min if better == "less" else max)(known, default=None)
    distinct = bool(known) and max(known) > (1 + _NOTABLE) * min(known)
    cells = []
    for index, (some, text) in enumerate(zip(values, texts, strict=True)):
        note = "" if index == 0 or len(some) != len(values[0]) else times(some, values[0])
        is_best = distinct and means[index] is not None and means[index] == best
        cells.append(Cell(text, note, tone="best" if is_best else ""))
    return cells


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _measure_row(report: RunReport, kind: Kind, column: Column) -> Row | None:
    values = [report.values(kind, scheme, column.key) for scheme in report.schemes]
    if not any(value for some in values for value in some):
        return None
    return [column.heading, *_judged(values, [span(some, column.factor) for some in values], column.better)]


def _wear_rows(report: RunReport, kind: Kind) -> list[Row]:
    wears = [report.wear(kind, scheme) for scheme in report.schemes]
    rows: list[Row] = []
    if any(wear.drive_writes_per_day is not None for some in wears for wear in some):
        rated = next((wear.rated_drive_writes_per_day for some in wears for wear in some), None)
        cells: Row = []
        for some in wears:
            per_day = [wear.drive_writes_per_day for wear in some if wear.drive_writes_per_day is not None]
            beyond = rated is not None and max(per_day, default=0.0) > rated
            note = "above rating" if beyond else ""
            cells.append(Cell(_ends(per_day, number_text), note, tone="warn" if beyond else ""))
        words = "drive writes per day" + ("" if rated is None else f" (rated: {number_text(rated)})")
        rows.append([words, *cells])
    if any(wear.life_years is not None for some in wears for wear in some):
        lives = [[wear.life_years for wear in some if wear.life_years is not None] for some in wears]
        rows.append(["rated writes used up after", *(_ends(some, _years) for some in lives)])
    return rows


def _years(years: float) -> str:
    return duration_text(years * SECONDS_PER_YEAR)


def _bottleneck_cell(report: RunReport, kind: Kind, scheme: str) -> Cell:
    rows = [row for row in report.rows_of(kind, scheme) if row["bottleneck"]]
    names = dict.fromkeys(row["bottleneck"] for row in rows)
    return Cell("; ".join(RESOURCE_WORDS.get(name, name) for name in names) or "–")


def bottlenecks(report: RunReport) -> Table:
    """Name the bottleneck of every cell; neighbouring sizes with the same ones share a row."""
    rows: list[Row] = []
    for kind in report.kinds:
        found = {scheme: report.rows_of(kind, scheme) for scheme in report.schemes}
        sizes = report.sizes_of(kind)
        rows.append([request_words(*kind)])
        if not sizes:
            rows.append(["all sizes", *(_bottleneck_names(found[scheme]) for scheme in report.schemes)])
        named = {
            size: tuple(
                tuple(row["bottleneck"] for row in found[scheme] if row["block_size_bytes"] == size)
                for scheme in report.schemes
            )
            for size in sizes
        }
        for _, group in itertools.groupby(sizes, key=named.__getitem__):
            alike = list(group)
            row: Row = [" to ".join(dict.fromkeys(map(size_text, (alike[0], alike[-1]))))]
            for scheme in report.schemes:
                mine = [one for one in found[scheme] if one["block_size_bytes"] in alike]
                row.append(_bottleneck_names(mine))
            rows.append(row)
    columns = ["request size", *map(scheme_label, report.schemes)]
    return Table("Bottleneck of each kind of request", columns, rows, form="compare", numeric=False)


def _bottleneck_names(rows: Sequence[dict[str, Any]]) -> Cell:
    """Name the one bottleneck that some rows have in common, and what else is near its limit."""
    if not rows or rows[0]["bottleneck"] is None:
        return Cell("–")
    name = rows[0]["bottleneck"]
    near = list(dict.fromkeys(row["limits"] for row in rows if row.get("limits")))
    note = f"near a limit: {' or '.join(near)}" if near else ""
    if name != "none":
        used = span([float(round(100 * row["bottleneck_mean_utilisation"])) for row in rows])
        note = f"{used} % in use on average; {note}"
    return Cell(RESOURCE_WORDS.get(name, name), note)


def utilisation(report: RunReport) -> list[Table]:
    """Say how busy each resource is, a table for each kind of request."""
    tables = []
    for kind in report.kinds:
        mine = [use for use in report.result.resources if (use["op"], use["pattern"]) == kind]
        rows: list[Row] = []
        for resource in dict.fromkeys(use["kind"] for use in mine):
            cells: Row = []
            for scheme in report.schemes:
                shares = [
                    use["utilisation"] for use in mine if (use["scheme"], use["kind"]) == (scheme, resource)
                ]
                cells.append(_share_cell(max(shares, default=None)))
            if any(isinstance(cell, Cell) and cell.share for cell in cells):
                rows.append([RESOURCE_WORDS.get(resource, resource), *cells])
        several = ", highest over the block sizes" if len(report.sizes_of(kind)) > 1 else ""
        caption = f"{request_words(*kind, report.sizes_of(kind))}: utilisation of the busiest member{several}"
        columns = ["resource", *map(scheme_label, report.schemes)]
        tables.append(Table(caption, columns, rows, form="compare", caption_shown=True))
    return tables


def _share_cell(share: float | None) -> Cell:
    if share is None:
        return Cell("–")
    return Cell(f"{100 * share:.0f} %" if share >= 0.005 or share == 0 else "< 1 %", share=share)


def results(report: RunReport) -> Table:
    """Show every row with the columns that matter."""
    throughput, each = COLUMNS["throughput_bytes_per_s"], [COLUMNS[key] for key in _EACH]
    assert throughput.ci is not None
    columns = ["request", "scheme", throughput.short_heading, "±"]
    columns += [*(column.short_heading for column in each), "bottleneck"]
    rows: list[Row] = []
    for row in report.rows:
        size = row["block_size_bytes"]
        rows.append(
            [
                request_words(row["op"], row["pattern"], [] if size is None else [size]),
                scheme_label(row["scheme"]),
                throughput.text(row),
                ci_text(row, *throughput.ci, throughput.factor) or "–",
                *(column.text(row) for column in each),
                RESOURCE_WORDS.get(row["bottleneck"], row["bottleneck"] or "–"),
            ]
        )
    return Table("Every result", columns, rows, words=(1, len(columns) - 1))


def _value_words(key: str, value: Any) -> str:
    if key.endswith("_bytes"):
        return ", ".join(map(size_text, value if isinstance(value, tuple) else (value,)))
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else value_text(value)


def scenario(shown: Scenario) -> Table:
    """Show every key of a scenario, its value and what it means."""
    rows: list[Row] = []

    def walk(model: BaseModel, above: str) -> None:
        for name, field in type(model).model_fields.items():
            value = getattr(model, name)
            if isinstance(value, BaseModel):
                walk(value, f"{above}{name}.")
            elif value is not None and (above or name not in ("name", "description")):
                rows.append([f"{above}{name}", _value_words(name, value), field.description or ""])

    walk(shown, "")
    return Table("Scenario", ["key", "value", "meaning"], rows, form="stack", numeric=False)
