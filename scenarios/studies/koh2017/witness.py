"""Measurements of a real Ceph 16.2 for the ratios that this study gets wrong."""

import polars as pl

from stripesim.calibration.ledger.verdicts import Ledger
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.studies.ceph16.measured import load
from stripesim.scenarios.studies.ceph16.runs import COLUMNS, CPU_COLUMNS
from stripesim.scenarios.studies.koh2017.cells import KEYS
from stripesim.scenarios.studies.koh2017.claims import koh_claims

_HEADING = "Wrong rows, with measurements of a real Ceph 16.2"
# Only counts compare: processor time is a share of another machine, and rates and latencies are noise there.
_COUNTED = {
    **COLUMNS,
    "context_switches_per_op": CPU_COLUMNS["context_switches_per_op"],
}


def measured_rows() -> pl.DataFrame:
    """Return the counts of the study `ceph16` as rows of this study, one of each kind of run."""
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for run in load().runs:
        image = "pristine" if run.op == "write" else "prefilled"
        op = "read" if run.op == "read" else "write"
        cell = (run.coded.name, op, run.pattern, image, run.block_bytes)
        if run.run_id.startswith("main-"):
            counts = {
                column: run.measured[metric] for metric, column in _COUNTED.items()
            }
            rows[cell] = {**dict(zip(KEYS, cell, strict=True)), **counts}
    return pl.DataFrame(list(rows.values()))


def witness_table(ledger: Ledger) -> Table:
    """Return each wrong held-out claim, with the same rule applied to measured rows."""
    measured, _ = koh_claims(measured_rows())
    columns = (
        "claim",
        "of",
        "scheme",
        "published",
        "simulated",
        "Ceph 16.2.15, measured",
    )
    rows = []
    for entry in ledger.entries:
        claim = entry.claim
        if entry.verdict != "wrong" or claim.role != "held-out":
            continue
        metric = claim.metric.replace("_", " ")
        quantity = " ".join(filter(None, (metric, claim.pattern, claim.op)))
        published = f"{claim.published_text} {claim.unit}"
        numbers = (entry.simulated, measured.get(claim.id))
        texts = [number_text(n) if isinstance(n, float) else "–" for n in numbers]
        rows.append((claim.id, quantity, claim.scheme, published, *texts))
    return Table(_HEADING, columns, rows, form="stack", numeric=False)
