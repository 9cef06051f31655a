"""Build the tables and sentences that commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stripesim.cli.output import console, table

if TYPE_CHECKING:
    from rich.table import Table

#: Words for what recovery and repair move, with the matching part of the column names.
_MOVED = (
    ("read", "device_read_bytes"),
    ("written", "device_write_bytes"),
    ("sent", "private_net_bytes"),
)


def _moved(row: Mapping[str, Any], prefix: str) -> str:
    """Format the bytes read, written and sent per byte lost."""
    pairs = [(word, row.get(f"{prefix}_{key}_per_lost_byte")) for word, key in _MOVED]
    return ", ".join(
        f"{word} {value:.2f}" for word, value in pairs if value is not None
    )


def repair_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Summarise the repair in each row, skipping rows without one."""
    lines = []
    for row in (row for row in rows if row.get("repair_objects") is not None):
        objects = row["repair_objects"]
        pending = row["repair_objects_pending"]
        lost = f"{row['repair_lost_bytes'] / 1e6:,.0f} MB"
        if row["repair_s"] is None:
            outcome = f"repair of {lost} unfinished, {pending:,} of {objects + pending:,} objects remain"
        else:
            outcome = (
                f"{objects:,} objects, {lost} rebuilt in {row['repair_s']:.1f} s; bytes per byte lost: "
                f"{_moved(row, 'repair')}"
            )
        lines.append(f"{row['scheme']} {row['op']} {row['pattern']}: {outcome}")
    return lines


# Longest list of events with equal time and kind.
_TEXTS_MAX = 2


def timeline_table(timeline: Mapping[str, Any]) -> Table:
    """Lay out the events of one run under faults. Events of equal time and kind share a line."""
    name = " ".join(
        str(timeline[key]) for key in ("scheme", "op", "pattern") if timeline.get(key)
    )
    rows: list[list[str]] = []
    for (time, what), alike in groupby(
        timeline["events"], lambda e: (f"{e['time_s']:,.3f}", e["what"])
    ):
        texts = [event["text"] for event in alike]
        text = "; ".join(texts[:_TEXTS_MAX])
        if len(texts) > _TEXTS_MAX:
            text += f" and {len(texts) - _TEXTS_MAX} more"
        rows.append([time, what, text])
    return table(
        ("time [s]", "event", "what happened"),
        rows,
        numbers=[0],
        title=f"{name}: timeline",
    )


_SPANS = (
    ("failure to down", "detection_s"),
    ("down to out", "down_out_s"),
    ("failure to recovery", "checking_s"),
    ("recovery", "recovery_s"),
    ("failure to clean", "failure_to_clean_s"),
)


def fault_lines(row: Mapping[str, Any]) -> list[str]:
    """Summarise a run under faults, or return an empty list for a row without faults."""
    if row.get("requests_issued") is None:
        return []
    spans = [(words, row.get(key)) for words, key in _SPANS]
    lines = [
        f"requests: {row['requests']:,} done, {row['requests_failed']:,} failed (timed out), "
        f"{row['requests_pending']:,} pending at the end; {row['requests_retried']:,} were reissued",
        ", ".join(
            f"{words} {value:,.1f} s" for words, value in spans if value is not None
        ),
    ]
    if row["recovery_bytes"]:
        recovered_mb = row["recovery_bytes"] / 1e6
        lines.append(f"{recovered_mb:,.0f} MB rebuilt or moved{_lost_words(row)}")
    if row["pgs_unavailable"]:
        lines.append(
            f"temporarily unavailable: {row['pgs_unavailable']} placement groups with "
            f"{row['objects_unavailable']:,} objects, {row['unavailable_pg_s']:,.1f} PG·s"
        )
    if row["objects_lost"]:
        lines.append(
            f"LOST: {row['objects_lost']:,} objects in {row['pgs_lost']} placement groups"
        )
    elif not row["clean_at_end"]:
        lines.append("not clean at the end")
    return [f"{row['scheme']}: {line}" for line in lines if line]


def _lost_words(row: Mapping[str, Any]) -> str:
    """State what the failed OSDs held, and the bytes moved per lost byte."""
    if not row["recovery_lost_bytes"]:
        return ""
    lost_mb = row["recovery_lost_bytes"] / 1e6
    return f"; the failed OSDs held {lost_mb:,.0f} MB; per byte of it: {_moved(row, 'recovery')}"


def advice_table(advice: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out the simulated gain of each purchase."""
    from stripesim.scenarios.answers.run.advise import gain_text
    from stripesim.scenarios.schema.units import format_size

    columns = (
        "cell",
        "twice the",
        "requests per second",
        "mean latency",
        "99th percentile",
    )
    caption = "Each simulated alone. Pairs are shown if they gain more than either resource alone. "
    caption += "± is half of a 95 % interval over replications."
    title = "Effect of doubling a resource [%]"
    shown = table(columns, numbers=range(2, 5), title=title, caption=caption)
    previous = ""
    for row in advice:
        parts = [row["scheme"], row["op"], row["pattern"]]
        if row["block_size_bytes"]:
            parts.append(format_size(row["block_size_bytes"]))
        cell = " ".join(parts)
        if previous and cell != previous:
            shown.add_section()
        changes = (
            gain_text(row, name) for name in ("iops", "latency_mean", "latency_p99")
        )
        shown.add_row("" if cell == previous else cell, row["words"], *changes)
        previous = cell
    return shown


def recorded_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Compare the recorded latency of a trace with the simulated one, skipping rows that lack either."""
    return [
        f"{row['scheme']}: latency recorded → simulated [ms]: "
        + ", ".join(
            f"{name} {row[f'recorded_latency_{name}_ns'] / 1e6:.2f} → {row[f'latency_{name}_ns'] / 1e6:.2f}"
            for name in ("mean", "p50", "p95", "p99")
        )
        for row in rows
        if None not in (row.get("recorded_latency_mean_ns"), row.get("latency_mean_ns"))
    ]


def print_processors(cells: Sequence[Mapping[str, Any]], iops: float) -> None:
    """Print processor use in each cell, and the number of cores that a request rate keeps busy."""

    def percent(share: float | None) -> str:
        if share is None:
            return "–"
        return f"{100 * share:.0f} %"

    def line(
        name: str, count: object, uses: Mapping[str, Any], *shares: float | None
    ) -> list[str]:
        return [
            name,
            str(count),
            f"{uses['cpu_ns_per_op'] / 1e3:.1f}",
            *map(percent, shares),
        ]

    for cell in (cell for cell in cells if cell.get("threads")):
        used = [host["utilisation"] for host in cell["hosts"]]
        rows = [
            line(
                one["thread"],
                one["count_per_osd"] or "–",
                one,
                one["in_use_mean"],
                one["in_use_highest"],
            )
            for one in cell["threads"]
        ]
        rows.append(line("cores of hosts", "", cell, sum(used) / len(used), max(used)))
        described = [
            str(cell[key])
            for key in ("scheme", "op", "pattern", "block_size_bytes")
            if cell.get(key)
        ]
        columns = ("threads", "per OSD", "CPU [µs/request]", "in use", "busiest")
        console().print(
            table(columns, rows, numbers=range(1, 5), caption=" ".join(described))
        )
        busy = iops * cell["cpu_ns_per_op"] / 1e9
        line_of_rate = f"{iops:,.0f} requests/s keep {busy:.1f} cores busy"
        first = cell.get("saturates_first")
        if first:
            rate = f"{first['iops']:,.0f} requests/s"
            line_of_rate += f"; first to saturate: {first['resource']}, at {rate}"
        print(line_of_rate)
