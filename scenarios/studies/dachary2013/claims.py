"""What the expressions of ``claims.toml`` call: times of measured cases."""

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from stripesim.scenarios.studies.claim_rules import NotComputedError
from stripesim.scenarios.studies.lookup import published, select

STUDY: Final = "dachary2013"
CAUCHY_GOOD: Final = "jerasure:cauchy_good"
#: Where rows come from, the best first: what was asked for, this machine, Ceph's of old.
SOURCES: Final = ("against", "measured", "ceph16")


def vocabulary(rows: pl.DataFrame) -> Mapping[str, Any]:
    """Return the names that expressions know."""

    def scaled(
        reference: str, backend: str, scheme: str, op: str, erasures: int
    ) -> float:
        """Scale our time of a case by published over ours of the reference [s]."""
        seconds = case_seconds(rows, backend, scheme, op, erasures)
        ours = case_seconds(rows, CAUCHY_GOOD, "rs:6,2", "encode", 0)
        return published(STUDY)[reference] * seconds / ours

    return {
        "CAUCHY_GOOD": CAUCHY_GOOD,
        "STAND_IN": "liberasurecode_rs_vand",
        "scaled": scaled,
    }


def case_seconds(
    rows: pl.DataFrame, backend: str, scheme: str, op: str, erasures: int
) -> float:
    """Return the time of one call on 1 MiB, padding included [s]."""
    case = {"backend": backend, "scheme": scheme, "op": op, "erasures": erasures}
    measured = select(rows, **case, buffers="warm", cores=1)
    measured = measured.filter(pl.col("size_bytes").is_between(1 << 20, 1_250_000))
    for source in SOURCES:
        of_source = select(measured, source=source)
        if of_source.height:
            return float(of_source["seconds_median"][0])
    raise NotComputedError(f"not measured: {backend} {scheme} {op} {erasures}")
