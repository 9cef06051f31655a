"""One claim per measured number, and their ledger."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stripesim.calibration.ledger.verdicts import Claim, Entry, Ledger, judge
from stripesim.calibration.measured.rows import METRICS, MeasuredRow
from stripesim.scenarios.studies.tasks import Row


def claims_of(rows: Sequence[MeasuredRow]) -> tuple[Claim, ...]:
    """Turn measured rows into claims with the rows' roles and tolerances."""
    return tuple(
        _claim(row, metric, value)
        for row in rows
        for metric, value in row.measured.items()
    )


def _claim(row: MeasuredRow, metric: str, value: float) -> Claim:
    operation = "of a mixed load" if row.op == "mixed" else row.op
    operation_text = f"{row.part} {operation}".lstrip()
    groups = f", {row.pg_num} PGs" if row.pg_num else ""
    threads = (
        f", OSDs on {row.threads_per_node} threads per node"
        if row.threads_per_node
        else ""
    )
    in_flight = row.clients * row.queue_depth
    return Claim(
        id=f"{row.id}:{metric}",
        paper="nvme",
        locus=row.where,
        metric=metric,
        scheme=row.scheme,
        baseline="",
        pattern=row.pattern,
        op=row.op,
        block_size=str(row.block_bytes),
        published=value,
        published_text=row.texts[metric],
        unit=METRICS[metric],
        kind="exact",
        role=row.role,
        compare="value",
        tolerance=row.tolerance,
        note=row.note,
        statement=f"{metric} of {row.pattern} {operation_text}, {row.block_bytes} B, {row.scheme}, "
        f"{row.nodes} x {row.osds_per_node} OSDs{groups}{threads}, {in_flight} in flight",
    )


def ledger_for(
    rows: Sequence[MeasuredRow], simulated: Iterable[Row], parameters: Iterable[Row]
) -> Ledger:
    """Judge result rows against measured ones."""
    claims = claims_of(rows)
    by_id = {row["row_id"]: row for row in simulated}
    values = {
        f"{row.id}:{metric}": float(by_id[row.id][metric])
        for row in rows
        if row.id in by_id
        for metric in row.measured
    }
    ledger = judge(claims, values, parameters=parameters)
    marks = {
        f"{row.id}:{metric}": by_id[row.id]["refused"]
        for row in rows
        if row.id in by_id and by_id[row.id]["refused"] is not None
        for metric in row.measured
    }
    return replace(
        ledger, entries=tuple(_marked(entry, marks) for entry in ledger.entries)
    )


def _marked(entry: Entry, marks: Mapping[str, str]) -> Entry:
    """Return a judged claim that says which check of the audit its run fails, if it fails one."""
    mark = marks.get(entry.claim.id)
    if mark is None:
        return entry
    parts = [entry.reason, f"the run ended before it was steady: {mark}"]
    return replace(entry, reason="; ".join(filter(None, parts)))
