"""Build the tables of bottlenecks, of utilisation, of all results and of the scenario."""

import itertools
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from stripesim.scenarios.answers.run.report.contents import Row, RunReport
from stripesim.scenarios.schema.problems import value_text
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.types import meanings
from stripesim.scenarios.schema.units import (
    size_text,
)
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.quantities import QUANTITIES, quantity_of
from stripesim.scenarios.show.tables import Table, TableCell
from stripesim.scenarios.show.words import (
    request_words,
    row_words,
    span,
)
from stripesim.sim.observe.limits import LATENCY, NO_BOTTLENECK
from stripesim.sim.observe.resource_words import member_words

# Columns of the table of all results, after throughput and its interval.
_EACH = (
    "iops",
    "latency_p50_ns",
    "latency_p99_ns",
    "device_read_bytes_per_client_byte",
    "device_write_bytes_per_client_byte",
    "private_net_bytes_per_client_byte",
    "cpu_ns_per_op",
)


def bottlenecks(report: RunReport) -> Table:
    """Return the bottleneck of each cell. Consecutive sizes with equal bottlenecks share a row."""
    rows: list[Row] = []
    for kind in report.kinds:
        rows_of = {scheme: report.rows_of(kind, scheme) for scheme in report.schemes}
        sizes = report.sizes_of(kind)
        rows.append([request_words(*kind)])
        if not sizes:
            rows.append(
                [
                    "all sizes",
                    *(_bottleneck_names(rows_of[scheme]) for scheme in report.schemes),
                ]
            )

        def of_sizes(
            some: Sequence[int], rows_of: dict[str, Any] = rows_of
        ) -> list[list[dict[str, Any]]]:
            return [
                [row for row in mine if row["block_size_bytes"] in some]
                for mine in rows_of.values()
            ]

        named = {
            size: [[row["bottleneck"] for row in mine] for mine in of_sizes([size])]
            for size in sizes
        }
        for _, group in itertools.groupby(sizes, key=named.__getitem__):
            alike = list(group)
            size_range = " to ".join(
                dict.fromkeys(map(size_text, (alike[0], alike[-1])))
            )
            rows.append([size_range, *map(_bottleneck_names, of_sizes(alike))])
    columns = report.columns("request size")
    return Table(
        "Bottleneck of each kind of request",
        columns,
        rows,
        form="compare",
        numeric=False,
    )


def _bottleneck_names(rows: Sequence[dict[str, Any]]) -> TableCell:
    """Return the common bottleneck of some rows, with other resources near their limit."""
    if not rows or rows[0]["bottleneck"] is None:
        return TableCell("–")
    name = rows[0]["bottleneck"]
    near = list(dict.fromkeys(row["limits"] for row in rows if row.get("limits")))
    note = f"near the limit: {' or '.join(near)}" if near else ""
    if name not in (LATENCY, NO_BOTTLENECK):
        used = span(
            [float(round(100 * row["bottleneck_mean_utilisation"])) for row in rows]
        )
        note = f"{used} % in use on average; {note}"
    return TableCell(member_words(name), note)


def utilisation(report: RunReport) -> list[Table]:
    """Return the utilisation of each resource, a table for each kind of request."""
    tables = []
    for kind in report.kinds:
        mine = [
            use
            for use in report.result.resources
            if (use["op"], use["pattern"]) == kind
        ]
        highest: dict[str, dict[str, float]] = {}
        for use in mine:
            of_kind = highest.setdefault(use["kind"], {})
            of_kind[use["scheme"]] = max(
                use["utilisation"], of_kind.get(use["scheme"], 0.0)
            )
        rows: list[Row] = [
            [
                member_words(name),
                *(_share_cell(shares.get(scheme)) for scheme in report.schemes),
            ]
            for name, shares in highest.items()
            if any(shares.values())
        ]
        several = ", highest over the sizes" if len(report.sizes_of(kind)) > 1 else ""
        caption = f"{request_words(*kind, report.sizes_of(kind))}: utilisation of the busiest member{several}"
        tables.append(
            Table(
                caption,
                report.columns("resource"),
                rows,
                form="compare",
                caption_shown=True,
            )
        )
    return tables


def _share_cell(share: float | None) -> TableCell:
    if share is None:
        return TableCell("–")
    if 0 < share < 0.005:
        return TableCell("< 1 %", share=share)
    return TableCell(f"{100 * share:.0f} %", share=share)


def results(report: RunReport) -> Table:
    """Return all result rows with the most important columns."""
    throughput = QUANTITIES["throughput_bytes_per_s"]
    of_objects = report.scenario.workload.is_s3
    each = [quantity_of(key, of_objects=of_objects) for key in _EACH]
    columns = ["request", "scheme", throughput.short_heading, "±"]
    columns += [*(column.short_heading for column in each), "bottleneck"]
    rows = [
        [
            row_words(row),
            scheme_label(row["scheme"]),
            throughput.text(row),
            throughput.half_text(row, throughput.ci) or "–",
            *(column.text(row) for column in each),
            member_words(row["bottleneck"] or "–"),
        ]
        for row in report.rows
    ]
    return Table("All results", columns, rows, words=(1, len(columns) - 1))


def _value_words(key: str, value: Any) -> str:
    if key.endswith("_bytes"):
        return ", ".join(
            map(size_text, value if isinstance(value, tuple) else (value,))
        )
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else value_text(value)


def scenario(shown: Scenario) -> Table:
    """Return every key of a scenario with its value and meaning."""
    rows: list[Row] = []

    def walk(model: BaseModel, above: str) -> None:
        keys = meanings(type(model))
        for name in type(model).model_fields:
            value = getattr(model, name)
            if isinstance(value, BaseModel):
                walk(value, f"{above}{name}.")
            elif value is not None and (above or name not in ("name", "description")):
                rows.append(
                    [
                        f"{above}{name}",
                        _value_words(name, value),
                        keys.get(name, ""),
                    ]
                )

    walk(shown, "")
    return Table(
        "Scenario", ["key", "value", "meaning"], rows, form="stack", numeric=False
    )
