"""Write optional sections of a run's report: purchases, composition of latency, failures."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from stripesim.scenarios.answers.run.advise import gain_text, notable
from stripesim.scenarios.answers.run.report.contents import Kind, Row, RunReport
from stripesim.scenarios.schema.units import bytes_text, duration_text, number_text
from stripesim.scenarios.show.figures.captions import STEP_LOOKS, scheme_label
from stripesim.scenarios.show.figures.costs import draw_costs
from stripesim.scenarios.show.figures.faults import draw_timelines
from stripesim.scenarios.show.page.render import Section, figure_blocks
from stripesim.scenarios.show.result_table import PHASES
from stripesim.scenarios.show.tables import Table, TableCell
from stripesim.scenarios.show.words import request_words, row_words, span
from stripesim.sim.observe.critical_path import COST_KEYS, cost_key
from stripesim.sim.observe.limits import resource_name

#: Minimum share of the latency, in any scheme, for a step to be shown.
_SHOWN = 0.005


def sections(report: RunReport) -> list[Section]:
    """Return the sections for this run."""
    return [
        section
        for part in (_advice, _costs, _faults)
        if (section := part(report)) is not None
    ]


def _advice(report: RunReport) -> Section | None:
    if not report.result.advice:
        return None
    rows: dict[str, list[Row]] = {}
    for row in notable(report.result.advice):
        changes = (
            gain_text(row, name) for name in ("iops", "latency_mean", "latency_p99")
        )
        caption = f"{scheme_label(row['scheme'])}, {row_words(row)}: change [%]"
        rows.setdefault(caption, []).append([row["words"], *changes])
    columns = [
        "twice the",
        "requests per second",
        "mean latency",
        "99th percentile of latency",
    ]
    return Section(
        "Gain from doubling a resource",
        "advice",
        "Each resource is doubled, alone and in pairs, and simulated again with the same requests. Only "
        "pairs "
        "that gain more than either resource alone are shown. ± is half a 95 % interval over replications.",
        [
            Table(caption, columns, listed, caption_shown=True)
            for caption, listed in rows.items()
        ],
    )


def _costs(report: RunReport) -> Section | None:
    if not any(row.get(COST_KEYS[0]) is not None for row in report.rows):
        return None
    return Section(
        "Where the time goes",
        "costs",
        "Composition of the mean latency along the requests' critical paths: each step's share, service and "
        "waiting together, and below it the share of waiting.",
        [_costs_table(report, kind) for kind in report.kinds],
        figure_blocks(draw_costs(report.result.rows)),
    )


def _costs_table(report: RunReport, kind: Kind) -> Table:
    rows: list[Row] = []
    for step, look in STEP_LOOKS.items():
        cells = [
            _cost_cell(report.rows_of(kind, scheme), step) for scheme in report.schemes
        ]
        if any(cell.share is not None and cell.share >= _SHOWN for cell in cells):
            rows.append([look.words, *cells])
    several = ", range over the sizes" if len(report.sizes_of(kind)) > 1 else ""
    caption = f"{request_words(*kind, report.sizes_of(kind))}: share of the mean latency [%]{several}"
    return Table(
        caption, report.columns("step"), rows, form="compare", caption_shown=True
    )


def _cost_cell(rows: list[dict[str, Any]], step: str) -> TableCell:
    shares = []
    waits = []
    for row in rows:
        total_ns = sum(row.get(key) or 0.0 for key in COST_KEYS)
        if total_ns:
            waits.append((row.get(cost_key(step, waiting=True)) or 0.0) / total_ns)
            shares.append(waits[-1] + (row.get(cost_key(step)) or 0.0) / total_ns)
    if not shares:
        return TableCell("–")
    percent, waiting = (
        span([float(round(100 * share)) for share in some]) for some in (shares, waits)
    )
    return TableCell(
        percent,
        "" if waiting == "0" else f"waiting {waiting}",
        share=sum(shares) / len(shares),
    )


# Column of a row under faults, its description, and its format.
_PHASES = (
    ("detection_s", "failure until detection", duration_text),
    ("down_out_s", "detection until out", duration_text),
    ("checking_s", "failure until start of recovery", duration_text),
    ("recovery_s", "recovery, until clean", duration_text),
    ("failure_to_clean_s", "failure until clean", duration_text),
    (
        "recovery_limited_by",
        "recovery limited by",
        lambda value: resource_name(value or "–"),
    ),
    ("recovery_lost_bytes", "data on the failed OSDs", bytes_text),
    ("recovery_bytes", "rebuilt or moved", bytes_text),
    (
        "recovery_private_net_bytes_per_lost_byte",
        "sent per byte on the failed OSDs [B]",
        number_text,
    ),
    ("requests_retried", "requests resent", number_text),
    ("requests_failed", "requests failed", number_text),
    ("objects_unavailable", "objects temporarily unavailable", number_text),
    ("objects_lost", "objects permanently lost", number_text),
)


# Columns that are about OSDs that fail, and so empty if drives are only slow.
_OF_FAILURES = {
    "detection_s",
    "down_out_s",
    "checking_s",
    "failure_to_clean_s",
    "recovery_lost_bytes",
    "recovery_private_net_bytes_per_lost_byte",
}


def _faults(report: RunReport) -> Section | None:
    faults = report.scenario.faults
    if faults is None:
        return None
    stops = bool(faults.numbered_events(slow=False) or faults.drawn or faults.replay)
    left_out = set() if stops or faults.corruptions else _OF_FAILURES
    tables = []
    for kind in report.kinds:
        mine = [report.rows_of(kind, scheme) for scheme in report.schemes]
        for index, size in enumerate(report.sizes_of(kind) or [None]):
            rows = [found[index] if index < len(found) else {} for found in mine]
            caption = request_words(*kind, [] if size is None else [size])
            columns = report.columns("")
            tables.append(
                Table(
                    caption,
                    columns,
                    _fault_rows(rows, left_out),
                    form="compare",
                    caption_shown=True,
                )
            )
    return Section(
        "Failures and recovery as simulated",
        "faults",
        "Consequences of the scenario's failures under its load. A dash means that the run ended earlier. "
        "Rates, throughput and latencies of a phase leave out blocked requests, which waited because of the "
        "state of a placement group. The figures include them.",
        tables,
        figure_blocks(draw_timelines(report.result.timelines)),
    )


def _fault_rows(rows: Sequence[Mapping[str, Any]], left_out: Set[str]) -> list[Row]:
    lines: list[Row] = [
        [words, *(write(row.get(column)) for row in rows)]
        for column, words, write in _PHASES
        if column not in left_out and any(column in row for row in rows)
    ]
    for phase in PHASES:
        lines += _phase_rows(rows, phase)
    return lines


def _phase_rows(rows: Sequence[Mapping[str, Any]], phase: str) -> Iterator[Row]:
    """Yield rate, throughput, latency and blocked requests in a phase, unless no scheme has a value."""
    rates = [row.get(f"iops_{phase}") for row in rows]
    if _has_value(rates):
        yield [f"requests per second, {phase}", *map(number_text, rates)]
    throughputs = [row.get(f"throughput_{phase}_bytes_per_s") for row in rows]
    if _has_value(throughputs):
        words = f"throughput [MB/s], {phase}"
        yield [words, *(number_text(one, 1e-6) for one in throughputs)]
    p99s_ns = [row.get(f"latency_p99_{phase}_ns") for row in rows]
    if _has_value(p99s_ns):
        heading = f"99th percentile of latency [ms], {phase}"
        yield [heading, *(number_text(p99_ns, 1e-6) for p99_ns in p99s_ns)]
    if any(row.get(f"blocked_{phase}") for row in rows):
        heading = f"requests blocked, {phase}: reason, and longest time [s]"
        yield [heading, *(_blocked(row, phase) for row in rows)]


def _has_value(values: Sequence[float | None]) -> bool:
    return any(value is not None for value in values)


def _blocked(row: Mapping[str, Any], phase: str) -> str:
    if not row.get(f"blocked_{phase}"):
        return "–"
    return f"{row[f'blocked_by_{phase}']}; {number_text(row[f'blocked_longest_{phase}_ns'], 1e-9)}"
