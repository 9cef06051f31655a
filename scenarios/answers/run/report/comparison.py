"""Compare the schemes of a run: storage, then each kind of request."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Literal

from stripesim.scenarios.answers.run.report.contents import Kind, Row, RunReport
from stripesim.scenarios.forms.capacity import SECONDS_PER_YEAR
from stripesim.scenarios.schema.units import (
    bytes_text,
    duration_text,
    number_text,
)
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.quantities import COSTS, Quantity, quantity_of
from stripesim.scenarios.show.tables import Table, TableCell
from stripesim.scenarios.show.words import (
    request_words,
    span,
    times,
)
from stripesim.sim.observe.resource_words import member_words

# Columns of the result rows for the comparison of schemes.
_MEASURES = (
    "throughput_bytes_per_s",
    "iops",
    "latency_p50_ns",
    "latency_p99_ns",
    *COSTS,
)
#: Relative differences below this are insignificant.
_NOTABLE = 0.02


def comparison(report: RunReport) -> Table:
    """Compare the schemes: capacity, rebuild, then each kind of request."""
    rows: list[Row] = [["Storage"], *_storage_rows(report)]
    of_objects = report.scenario.workload.is_s3
    measures = [quantity_of(key, of_objects=of_objects) for key in _MEASURES]
    for kind in report.kinds:
        rows.append([request_words(*kind, report.sizes_of(kind))])
        rows += [
            row
            for quantity in measures
            if (row := _measure_row(report, kind, quantity)) is not None
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
            f"if schemes differ by {100 * _NOTABLE:.0f} % or more. All schemes get the same requests and "
            "random numbers.",
        ),
        (
            report.result.timelines,
            "Rates and latencies cover the whole run, including failures and recovery. "
            "“Failures and recovery as simulated” shows them by phase.",
        ),
        (
            True,
            "MB = 10⁶ bytes. B/B = bytes moved per byte that clients read or write.",
        ),
        (
            sized,
            "Two numbers are the range over the sizes. “All results” shows each size.",
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
    seconds = [report.rebuild_seconds(scheme) for scheme in report.schemes]
    if any(seconds):
        name = "rebuild of one OSD, idle cluster"
        if report.scenario.repair:
            name = "rebuild of one OSD, under load"
        rows.append([name, *_longest(seconds)])
    if report.scenario.faults is not None:
        healed_s = [_healed_s(report, scheme) for scheme in report.schemes]
        name = "the scenario’s faults, until clean"
        rows.append([name, *_longest(healed_s)])
    return rows


def _healed_s(report: RunReport, scheme: str) -> list[float]:
    """Return the times from failure to clean in the rows of a scheme [s]."""
    times_s = [
        row.get("failure_to_clean_s") for row in report.rows if row["scheme"] == scheme
    ]
    return _known(times_s)


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
    best = _notably_best(_known(means), better)
    cells = []
    for index, (of_scheme, text) in enumerate(zip(values, texts, strict=True)):
        note = ""
        if index > 0 and len(of_scheme) == len(values[0]):
            note = times(of_scheme, values[0])
        is_best = best is not None and means[index] == best
        cells.append(TableCell(text, note, tone="best" if is_best else ""))
    return cells


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    known = _known(values)
    return fmean(known) if known else None


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


def _wear_rows(report: RunReport, kind: Kind) -> Iterator[Row]:
    """Yield daily writes and rated life of drives, each if it is known for a scheme."""
    wears = [report.wear(kind, scheme) for scheme in report.schemes]
    daily = [_known(wear.drive_writes_per_day for wear in each) for each in wears]
    if any(daily):
        first = next(wear for each in wears for wear in each)
        yield _daily_writes_row(daily, first.rated_drive_writes_per_day)
    lives_years = [_known(wear.life_years for wear in each) for each in wears]
    if any(lives_years):
        lives_s = [[SECONDS_PER_YEAR * life for life in each] for each in lives_years]
        texts = [_ends(each, duration_text) for each in lives_s]
        yield ["rated writes used up after", *texts]


def _daily_writes_row(daily: Sequence[Sequence[float]], rated: float | None) -> Row:
    """Return the drive writes per day of each scheme, with a warning above the rating."""
    cells: Row = []
    for per_day in daily:
        text = _ends(per_day, number_text)
        if rated is not None and max(per_day, default=0.0) > rated:
            cells.append(TableCell(text, "above rating", tone="warn"))
        else:
            cells.append(text)
    heading = "drive writes per day"
    if rated is not None:
        heading += f" (rated: {number_text(rated)})"
    return [heading, *cells]


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _bottleneck_cell(report: RunReport, kind: Kind, scheme: str) -> TableCell:
    rows = [row for row in report.rows_of(kind, scheme) if row["bottleneck"]]
    names = dict.fromkeys(row["bottleneck"] for row in rows)
    return TableCell("; ".join(map(member_words, names)) or "–")
