"""One claim for each measured number, and one for each ratio of two that differ in one thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stripesim.calibration.ledger.verdicts import Claim, Ledger, judge
from stripesim.scenarios.studies.published_rows import simulated_values
from stripesim.scenarios.studies.s3.counted import CountedRow
from stripesim.scenarios.studies.s3.measured import (
    RATIO_TOLERANCE,
    VALUE_TOLERANCE,
    ObjectRow,
)
from stripesim.scenarios.studies.tasks import Row

#: Columns of which a ratio varies one.
_VARIED = ("scheme", "block", "threads")
_SAME = ("system", "hardware", "op", "state", "metric", "unit")


def claims_of(rows: Sequence[ObjectRow]) -> tuple[Claim, ...]:
    """Turn measured rows into claims: a value by the row's `id`, and ratios as ``id/id``."""
    values = [row.claim("s3", VALUE_TOLERANCE) for row in rows]
    return (*values, *(_ratio(row, base) for row, base in _pairs(rows)))


def _pairs(rows: Sequence[ObjectRow]) -> Iterator[tuple[ObjectRow, ObjectRow]]:
    """Yield each row with the first row that differs from it in one varied column only."""
    for varied in _VARIED:
        first: dict[tuple[str, ...], ObjectRow] = {}
        fixed = [name for name in _VARIED if name != varied]
        for row in rows:
            key = tuple(getattr(row, name) for name in (*_SAME, *fixed))
            base = first.setdefault(key, row)
            if base.published == 0:
                # Nothing is a multiple of 0.
                continue
            if base is not row and getattr(base, varied) != getattr(row, varied):
                yield row, base


def _ratio(row: ObjectRow, base: ObjectRow) -> Claim:
    roles = {row.role, base.role}
    ratio = None
    if row.published is None or not base.published:
        roles.add("not-derivable")
    else:
        ratio = row.published / base.published
    role = next(
        (name for name in ("not-derivable", "held-out") if name in roles), "calibration"
    )
    return Claim(
        id=f"{row.id}/{base.id}",
        paper="s3",
        locus=row.source,
        metric=f"ratio of {row.metric}",
        scheme=row.scheme,
        baseline=base.scheme,
        pattern="",
        op=row.op,
        block_size=row.block,
        published=ratio,
        published_text="" if ratio is None else f"{ratio:.4g}",
        unit="1",
        kind="ratio",
        role=role,
        compare="value",
        tolerance=RATIO_TOLERANCE,
        note="",
        statement=f"{row.metric} of {row.op}: {row.scheme}, {row.block}, {row.threads} over "
        f"{base.scheme}, {base.block}, {base.threads}",
    )


def ledger_for(
    rows: Sequence[ObjectRow],
    simulated: Iterable[Row],
    parameters: Iterable[Row],
    *,
    counted: Sequence[CountedRow] = (),
) -> Ledger:
    """Judge result rows against measured ones."""
    values, reasons = simulated_values(simulated)
    reasons |= {
        row.id: f"no model of a cluster that is {row.state}"
        for row in rows
        if row.role == "not-derivable"
    }
    for row, base in _pairs(rows):
        name = f"{row.id}/{base.id}"
        pair = (values.get(row.id), values.get(base.id))
        if pair[0] is None or not pair[1]:
            reasons[name] = reasons.get(row.id) or reasons.get(base.id) or "no value"
            continue
        values[name] = pair[0] / pair[1]
    of_counts = [claim for row in counted for claim in row.claims()]
    return judge(
        (*claims_of(rows), *of_counts),
        values,
        reasons=reasons,
        parameters=parameters,
    )
