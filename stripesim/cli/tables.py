"""Tables for people: kernel timings, repairs, ledgers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def kernel_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Show kernel timings; `rows` as `stripesim.calibration.kernels.bench.benchmark` returns them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from stripesim.scenarios.schema.units import format_size

    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, caption_justify="left",
        caption="time = median of a call; copy = the same call of the null code; GB = 10⁹ bytes of data; "
        "roof = bytes read and written per second, over those of memcpy; isal_… = ISA-L without library, "
        "headers and copies",
    )  # fmt: skip
    for heading in ("scheme", "operation", "backend", "buffers"):
        table.add_column(heading)
    for heading in ("cores", "data", "time [µs]", "p10…p90 [µs]", "copy [µs]", "[GB/s]", "roof"):
        table.add_column(heading, justify="right")
    order = {"memcpy": 1}
    for row in sorted(
        rows,
        key=lambda r: (
            order.get(r["op"], 0), r["scheme"], r["op"], r["erasures"], r["size_bytes"], r["cores"],
            r["buffers"] == "cold", r["backend"],
        ),
    ):  # fmt: skip
        erased = f", {row['erasures']} lost" if row["op"] == "decode" else ""
        copy_s, roof = row["copy_seconds_median"], row["roofline"]
        spread = row["seconds_p10"] != row["seconds_p90"]
        table.add_row(
            row["scheme"] if row["op"] != "memcpy" else "",
            f"{row['op']}{erased}",
            row["backend"] if row["op"] != "memcpy" else "",
            row["buffers"],
            f"{row['cores']}",
            format_size(row["size_bytes"]),
            f"{row['seconds_median'] * 1e6:.1f}",
            f"{row['seconds_p10'] * 1e6:.1f}…{row['seconds_p90'] * 1e6:.1f}" if spread else "",
            f"{copy_s * 1e6:.1f}" if copy_s is not None else "",
            f"{row['bytes_per_s'] / 1e9:.2f}",
            f"{roof:.2f}" if roof is not None else "",
        )
    return table


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Show rows of text as they are."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(*(escape(column) for column in columns))
    for row in rows:
        table.add_row(*(escape(value) for value in row))
    return table


def summary_tables(summary: Mapping[str, Any]) -> list[Table]:
    """Show what `stripesim.traces.describe` returns: single values in one table, lists and groups below it.

    Parameters
    ----------
    summary : mapping
        Values, mappings of values, and lists of rows with the same keys. Empty ones are left out.

    Returns
    -------
    list of Table
        At most 100 columns wide for every trace.
    """
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    def plain(heading: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, title=heading or None, title_justify="left")
        for number, column in enumerate(columns):
            table.add_column(escape(column), justify="right" if number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(escape(_cell(value)) for value in row))
        return table

    single = {key: value for key, value in summary.items() if not isinstance(value, dict | list)}
    tables = [plain("", ("of the trace", "value"), list(single.items()))]
    for key, value in summary.items():
        heading = key.replace("_", " ")
        if isinstance(value, dict) and value:
            tables.append(plain(heading, (_KEYS_OF.get(key, ""), "value"), list(value.items())))
        elif isinstance(value, list) and value:
            tables.append(plain(heading, list(value[0]), [list(row.values()) for row in value]))
    return tables


#: What the keys of a mapping in a summary are.
_KEYS_OF = {
    "dispersion": "window [s]",
    "hit_ratio": "cache / footprint",
    "counts": "lines",
    "reasons": "reason",
}


def _cell(value: Any) -> str:
    """Write a value of a summary: four digits of a fraction, all digits of a count."""
    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return str(value)
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    )


def repair_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what each row's repair came to; nothing for rows without one."""
    lines = []
    for row in rows:
        objects = row.get("repair_objects")
        if objects is None:
            continue
        lost_mb = row["repair_lost_bytes"] / 1e6
        where = f"{row['scheme']} {row['op']} {row['pattern']}"
        if row["repair_s"] is None:
            pending = row["repair_objects_pending"]
            lines.append(
                f"{where}: repair of {lost_mb:,.0f} MB unfinished, "
                f"{pending:,} of {objects + pending:,} objects to go"
            )
            continue
        moved = ", ".join(
            f"{word} {row[f'repair_{key}_per_lost_byte']:.2f}"
            for word, key in (
                ("read", "device_read_bytes"),
                ("written", "device_write_bytes"),
                ("sent", "private_net_bytes"),
            )
            if row.get(f"repair_{key}_per_lost_byte") is not None
        )
        lines.append(
            f"{where}: {objects:,} objects, {lost_mb:,.0f} MB rebuilt in {row['repair_s']:.1f} s; "
            f"bytes per byte lost: {moved}"
        )
    return lines


def timeline_table(timeline: Mapping[str, Any]) -> Table:
    """Show the events of one run under faults; those of one moment and kind share a line."""
    name = " ".join(str(timeline[key]) for key in ("scheme", "op", "pattern") if timeline.get(key))
    rows: list[list[str]] = []
    for event in timeline["events"]:
        time = f"{event['time_s']:,.3f}"
        if rows and rows[-1][:2] == [time, event["what"]]:
            rows[-1][2] += f"; {event['text']}"
        else:
            rows.append([time, event["what"], event["text"]])
    table = text_table(("time [s]", "event", "what happened"), rows)
    table.title = f"{name}: timeline"
    table.columns[0].justify = "right"
    return table


def fault_lines(row: Mapping[str, Any]) -> list[str]:
    """Say what a run under faults came to; nothing for a row without them."""
    if row.get("requests_issued") is None:
        return []
    endings = (
        f"requests: {row['requests']:,} done, {row['requests_failed']:,} failed (timed out), "
        f"{row['requests_pending']:,} pending at the end; {row['requests_retried']:,} were issued again"
    )
    spans = [
        (word, row.get(key))
        for word, key in (
            ("failure to down", "detection_s"),
            ("down to out", "down_out_s"),
            ("failure to recovery", "checking_s"),
            ("recovery", "recovery_s"),
            ("failure to clean", "failure_to_clean_s"),
        )
    ]
    lines = [endings, ", ".join(f"{word} {value:,.1f} s" for word, value in spans if value is not None)]
    if row["recovery_bytes"]:
        moved = ", ".join(
            f"{word} {row[f'recovery_{key}_per_lost_byte']:.2f}"
            for word, key in (
                ("read", "device_read_bytes"),
                ("written", "device_write_bytes"),
                ("sent", "private_net_bytes"),
            )
        )
        lines.append(f"{row['recovery_bytes'] / 1e6:,.0f} MB rebuilt; bytes for each of them: {moved}")
    if row["pgs_unavailable"]:
        lines.append(
            f"out of reach for a time: {row['pgs_unavailable']} placement groups with "
            f"{row['objects_unavailable']:,} objects, {row['unavailable_pg_s']:,.1f} PG·s"
        )
    if row["objects_lost"]:
        lines.append(f"LOST: {row['objects_lost']:,} objects in {row['pgs_lost']} placement groups")
    elif not row["clean_at_end"]:
        lines.append("not clean at the end")
    return [f"{row['scheme']}: {line}" for line in lines if line]


def advice_table(advice: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out what each purchase brings."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from stripesim.scenarios.run.advise import gain_text
    from stripesim.scenarios.schema.units import format_size

    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, caption_justify="left", title_justify="left",
        title="What twice as much would bring [%]",
        caption="Simulated, each alone, and pairs that bring more than either; "
        "± is half a 95 % interval over replications.",
    )  # fmt: skip
    table.add_column("cell")
    table.add_column("twice the")
    for name in ("requests per second", "mean latency", "99th percentile"):
        table.add_column(name, justify="right")
    previous = ""
    for row in advice:
        size = row["block_size_bytes"]
        cell = " ".join(
            [row["scheme"], row["op"], row["pattern"], *([] if size is None else [format_size(size)])]
        )
        if previous and cell != previous:
            table.add_section()
        changes = (gain_text(row, name) for name in ("iops", "latency_mean", "latency_p99"))
        table.add_row("" if cell == previous else cell, row["words"], *changes)
        previous = cell
    return table


def recorded_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Set a trace's recorded latency beside the simulated one; nothing where it recorded none."""
    names = ("mean", "p50", "p95", "p99")
    lines = []
    for row in rows:
        if row.get("recorded_latency_mean_ns") is not None:
            pairs = [(row[f"recorded_latency_{name}_ns"], row[f"latency_{name}_ns"]) for name in names]
            text = ", ".join(
                f"{name} {recorded / 1e6:.2f} → {simulated / 1e6:.2f}"
                for name, (recorded, simulated) in zip(names, pairs, strict=True)
            )
            lines.append(f"{row['scheme']}: latency recorded → simulated [ms]: {text}")
    return lines
