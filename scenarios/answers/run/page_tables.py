"""Build the tables of a run's report: comparison of schemes, bottlenecks, storage, all results."""

import itertools
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, Literal

from pydantic import BaseModel

from stripesim.scenarios.answers.run.page_data import Kind, RunReport
from stripesim.scenarios.forms.capacity import SECONDS_PER_YEAR
from stripesim.scenarios.forms.rebuild import Rebuild
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.problems import value_text
from stripesim.scenarios.schema.types import meanings
from stripesim.scenarios.schema.units import (
    bytes_text,
    duration_text,
    number_text,
    size_text,
)
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.quantities import QUANTITIES, Quantity
from stripesim.scenarios.show.tables import Table, TableCell
from stripesim.scenarios.show.words import (
    RESOURCE_WORDS,
    request_words,
    row_words,
    span,
    times,
)
from stripesim.sim.observe.limits import LATENCY, NO_BOTTLENECK

# Columns of the result rows for the comparison of schemes.
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

Row = list[str | TableCell]

#: Relative differences below this are insignificant.
_NOTABLE = 0.02


def comparison(report: RunReport) -> Table:
    """Compare the schemes: capacity, repair, then each kind of request."""
    rows: list[Row] = [["Storage"], *_storage_rows(report)]
    for kind in report.kinds:
        rows.append([request_words(*kind, report.sizes_of(kind))])
        rows += [
            row
            for key in _MEASURES
            if (row := _measure_row(report, kind, QUANTITIES[key])) is not None
        ]
        rows += _wear_rows(report, kind)
        rows.append(
            [
                "bottleneck",
                *(_bottleneck_cell(report, kind, scheme) for scheme in report.schemes),
            ]
        )
    return Table("Schemes compared", report.columns(""), rows, form="compare")


def comparison_notes(report: RunReport) -> list[str]:
    """Explain the comparison."""
    kinds = report.kinds
    schemes = report.schemes
    sized = any(len(report.sizes_of(kind)) > 1 for kind in kinds)
    worn = any(report.wear(kind, scheme) for kind in kinds for scheme in schemes)
    notes = (
        (
            len(schemes) > 1,
            f"Factors are relative to {scheme_label(schemes[0])}. Bold: best of its row, "
            f"if schemes differ by {_NOTABLE:.0%} or more. All schemes get the same requests and random "
            "numbers.",
        ),
        (
            report.result.timelines,
            "Rates and latencies cover the whole run, including failures and recovery. "
            "“Failures and repair as simulated” shows them by phase.",
        ),
        (
            True,
            "MB = 10⁶ bytes. B/B = bytes moved per byte that clients read or write.",
        ),
        (
            sized,
            "Two numbers are the range over the block sizes. “All results” shows each size.",
        ),
        (
            worn,
            "Drive writes per day assume that the simulated rate continues all day and spreads evenly over "
            "drives. Like ratings, they count host writes.",
        ),
    )
    return [note for holds, note in notes if holds]


def _storage_rows(report: RunReport) -> list[Row]:
    held = [report.capacities[scheme] for scheme in report.schemes]
    rows: list[Row] = []
    usable = [one.usable_bytes_full for one in held]
    if None not in usable:
        texts = [bytes_text(value) for value in usable]
        rows.append(
            ["usable capacity", *_judged([[value] for value in usable], texts, "more")]
        )
    stored = [one.stored_per_client_byte for one in held]
    texts = [f"{number_text(value)} B" for value in stored]
    rows.append(
        [
            "stored per client byte",
            *_judged([[value] for value in stored], texts, "less"),
        ]
    )
    rows.append(
        ["shard losses survived", *(str(one.failures_tolerated) for one in held)]
    )
    seconds = [report.repair_seconds(scheme) for scheme in report.schemes]
    if any(seconds):
        name = "repair of one OSD, idle cluster"
        if report.scenario.repair:
            name = "repair of one OSD, under load"
        rows.append([name, *_longest(seconds)])
    if report.scenario.faults is not None:
        healed_rows = [
            row for row in report.rows if row.get("failure_to_clean_s") is not None
        ]
        healed = [
            [
                row["failure_to_clean_s"]
                for row in healed_rows
                if row["scheme"] == scheme
            ]
            for scheme in report.schemes
        ]
        rows.append(
            ["the scenario’s faults, until all data is rebuilt", *_longest(healed)]
        )
    return rows


def _longest(seconds: Sequence[Sequence[float]]) -> list[TableCell]:
    """Return cells with the times of each scheme, compared by the longest."""
    texts = [_ends(some, duration_text) for some in seconds]
    return _judged([[max(some, default=None)] for some in seconds], texts, "less")


def _ends(values: Sequence[float], write: Callable[[float], str]) -> str:
    """Write the smallest and the largest value."""
    if not values:
        return "–"
    ends = (write(min(values)), write(max(values)))
    return " … ".join(dict.fromkeys(ends))


def _judged(
    values: Sequence[Sequence[float | None]],
    texts: Sequence[str],
    better: Literal["less", "more"],
) -> list[TableCell]:
    """Return the cells of one row, with ratios to the first scheme and the best value marked."""
    means = [_mean_of_known(of_scheme) for of_scheme in values]
    known = [mean for mean in means if mean is not None]
    best = _notably_best(known, better)
    cells = []
    for index, (of_scheme, text) in enumerate(zip(values, texts, strict=True)):
        note = ""
        if index > 0 and len(of_scheme) == len(values[0]):
            note = times(of_scheme, values[0])
        is_best = best is not None and means[index] == best
        cells.append(TableCell(text, note, tone="best" if is_best else ""))
    return cells


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return fmean(known)


def _notably_best(
    means: Sequence[float], better: Literal["less", "more"]
) -> float | None:
    """Return the best mean, or None if all are nearly equal."""
    if not means or max(means) <= (1 + _NOTABLE) * min(means):
        return None
    if better == "less":
        return min(means)
    return max(means)


def _measure_row(report: RunReport, kind: Kind, column: Quantity) -> Row | None:
    values = [report.values(kind, scheme, column.key) for scheme in report.schemes]
    if not any(value for some in values for value in some):
        return None
    return [
        column.heading,
        *_judged(values, [span(some, column.factor) for some in values], column.better),
    ]


def _wear_rows(report: RunReport, kind: Kind) -> list[Row]:
    wears = [report.wear(kind, scheme) for scheme in report.schemes]
    every = [wear for some in wears for wear in some]
    rows: list[Row] = []
    if any(wear.drive_writes_per_day is not None for wear in every):
        rated = every[0].rated_drive_writes_per_day
        cells: Row = []
        for some in wears:
            per_day = [
                wear.drive_writes_per_day
                for wear in some
                if wear.drive_writes_per_day is not None
            ]
            text = _ends(per_day, number_text)
            if rated is not None and max(per_day, default=0.0) > rated:
                cells.append(TableCell(text, "above rating", tone="warn"))
            else:
                cells.append(text)
        words = "drive writes per day"
        if rated is not None:
            words += f" (rated: {number_text(rated)})"
        rows.append([words, *cells])
    lives = [
        [
            SECONDS_PER_YEAR * one.life_years
            for one in some
            if one.life_years is not None
        ]
        for some in wears
    ]
    if any(lives):
        rows.append(
            [
                "rated writes used up after",
                *(_ends(some, duration_text) for some in lives),
            ]
        )
    return rows


def _bottleneck_cell(report: RunReport, kind: Kind, scheme: str) -> TableCell:
    rows = [row for row in report.rows_of(kind, scheme) if row["bottleneck"]]
    names = dict.fromkeys(row["bottleneck"] for row in rows)
    return TableCell("; ".join(RESOURCE_WORDS.get(name, name) for name in names) or "–")


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
            words = " to ".join(dict.fromkeys(map(size_text, (alike[0], alike[-1]))))
            rows.append([words, *map(_bottleneck_names, of_sizes(alike))])
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
    return TableCell(RESOURCE_WORDS.get(name, name), note)


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
                RESOURCE_WORDS.get(name, name),
                *(_share_cell(shares.get(scheme)) for scheme in report.schemes),
            ]
            for name, shares in highest.items()
            if any(shares.values())
        ]
        several = (
            ", highest over the block sizes" if len(report.sizes_of(kind)) > 1 else ""
        )
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
    each = [QUANTITIES[key] for key in _EACH]
    columns = ["request", "scheme", throughput.short_heading, "±"]
    columns += [*(column.short_heading for column in each), "bottleneck"]
    rows = [
        [
            row_words(row),
            scheme_label(row["scheme"]),
            throughput.text(row),
            throughput.half_text(row, throughput.ci) or "–",
            *(column.text(row) for column in each),
            RESOURCE_WORDS.get(row["bottleneck"], row["bottleneck"] or "–"),
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


def storage_tables(report: RunReport) -> list[Table]:
    """Return the tables of usable capacity and simulated repairs."""
    return [_capacity_table(report), _waterfall_table(report), _repair_table(report)]


def storage_notes(report: RunReport) -> list[str]:
    """Explain the assumptions of these tables."""
    drives = report.drives
    fill = report.drives.fill
    notes = []
    if drives.capacity is None:
        notes.append(
            f"The parameter set {report.scenario.cluster.drive} has no drive capacity. Set "
            "cluster.drive_bytes in the scenario to see capacity in bytes, repair times of an OSD and drive "
            "writes per day."
        )
    elif fill is not None:
        notes.append(
            f"Drives of {bytes_text(drives.capacity.drive_bytes)}, {drives.per_osd} per OSD. Usable, "
            f"full: client data when the fullest OSD reaches {fill.full_ratio:.0%}, where Ceph refuses "
            f"writes (the full ratio). Usable, safe: when it reaches {fill.nearfull_ratio:.0%} (nearfull) "
            "after the loss of the largest failure domain. Metadata, the log and other pools are not "
            "included."
        )
    if drives.endurance is None:
        notes.append(
            "The rated endurance of these drives is unknown, so wear is not compared with a rating."
        )
    filled = ""
    if fill is not None:
        filled = f" at {fill.nearfull_ratio:.0%}, where Ceph warns (the nearfull ratio)"
    notes.append(
        "Repair: the simulator loses one OSD of this cluster and rebuilds a sample of its objects. The last "
        f"column extrapolates the rate to the data of an OSD{filled}. Brackets give the rate of a sample "
        "half "
        "as large, which shows how much it depends on the size of the sample. Time starts with the first "
        "object. Before that, Ceph must detect the failure and mark the OSD out, by default after a delay."
    )
    return notes


def _capacity_table(report: RunReport) -> Table:
    rows = [
        {
            "scheme": scheme_label(scheme),
            "stored per client byte": number_text(held.stored_per_client_byte),
            "of raw": f"{1 / held.stored_per_client_byte:.0%}",
            "raw": bytes_text(held.raw_bytes),
            "fullest OSD": f"{held.imbalance:.3f} × the mean",
            "usable, full": bytes_text(held.usable_bytes_full),
            "usable, safe": bytes_text(held.usable_bytes_safe),
        }
        for scheme, held in report.capacities.items()
    ]
    return Table.of("Usable capacity", rows, form="stack")


def _waterfall_table(report: RunReport) -> Table:
    """Return the steps from raw to usable capacity, for each scheme."""
    held = [report.capacities[scheme].steps for scheme in report.schemes]
    rows: list[Row] = [
        [
            steps[0].name,
            *(TableCell(bytes_text(step.left_bytes), step.why) for step in steps),
        ]
        for steps in zip(*held, strict=False)
    ]
    columns = report.columns("left after")
    return Table("From raw to usable, with room to heal", columns, rows, form="stack")


def _repair_table(report: RunReport) -> Table:
    rows: list[Row] = []
    for scheme in report.schemes:
        rebuilds = [("idle cluster", report.rebuilds[scheme])]
        for row, rebuild in report.measured_rebuilds(scheme):
            load = row_words(row)
            rebuilds.append(
                (f"in the scenario, under {load[0].lower()}{load[1:]}", rebuild)
            )
        for under, rebuild in rebuilds:
            rows.append(
                [
                    TableCell(scheme_label(scheme), under),
                    *_repair_cells(report, rebuild),
                ]
            )
    osd_bytes = report.rebuild_bytes
    end = "a whole OSD"
    if osd_bytes is not None:
        end = f"an OSD that holds {bytes_text(osd_bytes)}"
    columns = [
        "scheme",
        "sample",
        "simulated time",
        "rate [MB/s]",
        "network [B per lost B]",
        end,
    ]
    return Table("Repair of one OSD", columns, rows, form="stack")


def _repair_cells(report: RunReport, rebuild: Rebuild) -> list[str | TableCell]:
    if rebuild.reason is not None:
        return [TableCell("–", rebuild.reason.partition(";")[0]), "–", "–", "–", "–"]
    sample = TableCell(bytes_text(rebuild.lost_bytes), f"{rebuild.objects:,} objects")
    if rebuild.seconds is None:
        return [sample, "not finished", "–", "–", "–"]
    rate = number_text(rebuild.bytes_per_s, 1e-6)
    if rebuild.half_bytes_per_s is not None:
        rate += f" ({number_text(rebuild.half_bytes_per_s, 1e-6)})"
    held = report.rebuild_bytes
    osd_cell = TableCell("–")
    if held is not None:
        ends = rebuild.seconds_interval(held)
        note = f"limited by {rebuild.limited_by or 'throttles: no resource is near its limit'}"
        if ends is not None:
            note = f"{duration_text(ends[0])} to {duration_text(ends[1])}; {note}"
        osd_cell = TableCell(f"about {duration_text(rebuild.seconds_for(held))}", note)
    network = number_text(rebuild.network_bytes_per_lost_byte)
    return [sample, duration_text(rebuild.seconds), rate, network, osd_cell]
