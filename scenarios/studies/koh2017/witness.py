"""A second witness: what a real Ceph 16.2 measured for the ratios that this study gets wrong."""

import polars as pl

from stripesim.calibration.ledger.verdicts import Ledger
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.studies.base import Table
from stripesim.scenarios.studies.ceph16.measured import load
from stripesim.scenarios.studies.ceph16.runs import COLUMNS, CPU_COLUMNS
from stripesim.scenarios.studies.koh2017.cells import KEYS
from stripesim.scenarios.studies.koh2017.claims import koh_claims

HEADING = "Wrong rows, and what a real Ceph 16.2 measured"
# Processor time is a share of another machine, rates and latencies are noise there: counts alone testify.
_COUNTED = {
    **COLUMNS,
    "context_switches_per_op": CPU_COLUMNS["context_switches_per_op"],
}


def measured_rows() -> pl.DataFrame:
    """Return the counts of the study `ceph16` as rows of this one, one of each kind of run."""
    found: dict[tuple[object, ...], dict[str, object]] = {}
    for run in load().runs:
        image = "pristine" if run.op == "write" else "prefilled"
        op = "read" if run.op == "read" else "write"
        cell = (run.coded.name, op, run.pattern, image, run.block_bytes)
        if run.run_id.startswith("main-"):
            counts = {
                column: run.measured[metric] for metric, column in _COUNTED.items()
            }
            found[cell] = {**dict(zip(KEYS, cell, strict=True)), **counts}
    return pl.DataFrame(list(found.values()))


def witness_table(ledger: Ledger) -> Table:
    """Column names and rows: each held-out claim that is wrong, and the same rule on measured rows."""
    measured, _ = koh_claims(measured_rows())
    columns = (
        "claim",
        "of",
        "scheme",
        "published",
        "simulated",
        "Ceph 16.2.15, measured",
    )
    wrong = [
        one
        for one in ledger.entries
        if one.verdict == "wrong" and one.claim.role == "held-out"
    ]
    rows = []
    for entry in wrong:
        claim = entry.claim
        value = measured.get(entry.claim.id)
        what = " ".join(
            word
            for word in (claim.metric.replace("_", " "), claim.pattern, claim.op)
            if word
        )
        texts = [
            number_text(one) if isinstance(one, float) else "–"
            for one in (entry.simulated, value)
        ]
        rows.append(
            (
                claim.id,
                what,
                claim.scheme,
                f"{claim.published_text} {claim.unit}",
                *texts,
            )
        )
    return columns, rows
