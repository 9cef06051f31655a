"""One claim for each measured number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stripesim.calibration.ledger.verdicts import Claim, Ledger, judge
from stripesim.scenarios.studies.cores.measured import TOLERANCE, CoresRow
from stripesim.scenarios.studies.tasks import Row


def claims_of(rows: Sequence[CoresRow]) -> tuple[Claim, ...]:
    """Turn measured rows into claims."""
    return tuple(_claim(row) for row in rows)


def _claim(row: CoresRow) -> Claim:
    return Claim(
        id=row.claim_id,
        paper="cores",
        locus=row.source,
        metric=row.quantity,
        scheme=row.scheme,
        baseline="",
        pattern=row.pattern,
        op=row.op,
        block_size=row.block,
        published=row.published,
        published_text=row.value,
        unit=row.unit,
        kind="exact",
        role=row.role,
        compare="value",
        tolerance=TOLERANCE,
        note=row.note,
        statement=f"{row.metric} of {row.op} of {row.block}, {row.scheme}, {row.threads}: {row.hardware}",
    )


def ledger_for(
    rows: Sequence[CoresRow], simulated: Iterable[Row], parameters: Iterable[Row]
) -> Ledger:
    """Judge result rows against measured ones."""
    found = list(simulated)
    return judge(
        claims_of(rows),
        {row["claim"]: row["value"] for row in found if row["value"] is not None},
        reasons={row["claim"]: row["reason"] for row in found if row["reason"]},
        parameters=parameters,
    )
