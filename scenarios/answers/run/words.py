"""Describe in sentences what runs did: faults, rebuilds and recorded latencies."""

from collections.abc import Mapping, Sequence
from typing import Any

from stripesim.scenarios.cells.notes import load_sentences

#: Words for what recovery and repair move, with the matching part of the column names.
_MOVED = (
    ("read", "device_read_bytes"),
    ("written", "device_write_bytes"),
    ("sent", "private_net_bytes"),
)


def sentences_of_run(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences below the tables: faults, load, rebuilds and recorded latencies."""
    return [
        *(line for row in rows for line in fault_lines(row)),
        *load_sentences(rows),
        *rebuild_lines(rows),
        *recorded_lines(rows),
    ]


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
    """State the bytes that the failed OSDs held, and the bytes moved per lost byte."""
    if not row["recovery_lost_bytes"]:
        return ""
    lost_mb = row["recovery_lost_bytes"] / 1e6
    return f"; the failed OSDs held {lost_mb:,.0f} MB; per byte of it: {_moved(row, 'recovery')}"


def _moved(row: Mapping[str, Any], prefix: str) -> str:
    """Format the bytes read, written and sent per byte lost."""
    pairs = [(word, row.get(f"{prefix}_{key}_per_lost_byte")) for word, key in _MOVED]
    return ", ".join(
        f"{word} {value:.2f}" for word, value in pairs if value is not None
    )


def rebuild_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Summarise the rebuild of lost OSDs in each row, skipping rows without one."""
    lines = []
    for row in (row for row in rows if row.get("repair_objects") is not None):
        objects = row["repair_objects"]
        pending = row["repair_objects_pending"]
        lost = f"{row['repair_lost_bytes'] / 1e6:,.0f} MB"
        if row["repair_s"] is None:
            outcome = f"rebuild of {lost} unfinished, {pending:,} of {objects + pending:,} objects remain"
        else:
            outcome = (
                f"rebuild {row['repair_s']:.1f} s, until the last of {objects:,} lost objects ({lost}); per "
                f"byte lost: {_moved(row, 'repair')}"
            )
        lines.append(f"{row['scheme']} {row['op']} {row['pattern']}: {outcome}")
    return lines


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
