"""The claims of Dachary 2013 and 2014: which measured case each is compared with, and how.

Decisions, made once:

1. The source's seconds belong to a processor of 2012. What it claims is how its cases compare on one machine,
   so each case here is our own time multiplied by published over ours of *one* reference case, encoding
   with 6 + 2. A reference says nothing about itself: its own rows are not computed, and count against us.
2. 2013 and 2014 have a reference each, for the library changed between them.
3. ``cauchy_good`` with packet size 3072 is Jerasure's own function, called on the same machine and in the
   same run as the other cases, with losses drawn from all eight chunks, as the source's benchmark draws them;
   where it was not measured, and where Ceph's benchmark is given, the plugin's rows are taken. ``example``
   2 + 1, which no longer exists, is stood in for by liberasurecode's Reed-Solomon 2 + 1 through pyeclib,
   whole calls.
4. A rate is 1 GiB over the time (the source's GB/s are GiB/s).
"""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from stripesim.scenarios.studies.lookup import CONFIGURATION, published, select

STUDY = "dachary2013"


class Case(NamedTuple):
    """One measured case: what was called, on which code."""

    backend: str
    scheme: str
    op: str
    erasures: int


CAUCHY_GOOD = "jerasure:cauchy_good"
STAND_IN = "liberasurecode_rs_vand"
ENCODE = Case(CAUCHY_GOOD, "rs:6,2", "encode", 0)
DECODE_1 = Case(CAUCHY_GOOD, "rs:6,2", "decode", 1)
DECODE_2 = Case(CAUCHY_GOOD, "rs:6,2", "decode", 2)

#: Claim → case and the claim of its reference, for times.
TIMES: Mapping[str, tuple[Case, str]] = {
    "dachary2013-142": (DECODE_1, "dachary2013-141"),
    "dachary2013-143": (DECODE_2, "dachary2013-141"),
    "dachary2013-144": (Case(STAND_IN, "rs:2,1", "encode", 0), "dachary2013-141"),
    "dachary2013-145": (Case(STAND_IN, "rs:2,1", "decode", 1), "dachary2013-141"),
    "dachary2014-155": (DECODE_1, "dachary2014-154"),
    "dachary2014-156": (DECODE_2, "dachary2014-154"),
}
#: Claim of a rate → claim of the time it is computed from.
RATES: Mapping[str, str] = {
    "dachary2013-147": "dachary2013-142",
    "dachary2013-148": "dachary2013-143",
    "dachary2013-149": "dachary2013-143",
    "dachary2013-150": "dachary2013-144",
    "dachary2013-151": "dachary2013-145",
}
#: Where rows come from: what was asked for first, then this machine, then Ceph's of old.
SOURCES = ("against", "measured", "ceph16")
_REFERENCE = "the reference: it sets the scale between the source's machine and ours, so it predicts nothing"
NOT_COMPUTED: Mapping[str, str] = {
    **{f"dachary2013-{number}": CONFIGURATION for number in range(137, 141)},
    "dachary2013-141": _REFERENCE,
    "dachary2013-146": _REFERENCE,
    "dachary2014-154": _REFERENCE,
    "dachary2013-152": "a profile of ten calls, most of it set-up: no cost per byte can be had from it",
    "dachary2013-153": "against the storage hardware of 2013, which the source does not name",
}


def case_seconds(rows: pl.DataFrame, case: Case) -> float | None:
    """Time of one call of a case on 1 MiB, padding included [s]; None where it was not measured."""
    found = select(rows, **case._asdict(), buffers="warm", cores=1)
    found = found.filter(pl.col("size_bytes").is_between(1 << 20, 1_250_000))
    by_source = {
        row["source"]: row["seconds_median"] for row in reversed(found.to_dicts())
    }
    return next(
        (float(by_source[source]) for source in SOURCES if source in by_source), None
    )


def simulate_claims(
    rows: pl.DataFrame,
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Compute every claim that measured rows can answer; return values and reasons where there is none."""
    values: dict[str, float | None] = {}
    reasons = dict(NOT_COMPUTED)
    reference_s = case_seconds(rows, ENCODE)
    for key, (case, reference) in TIMES.items():
        seconds = case_seconds(rows, case)
        if seconds is None or reference_s is None:
            values[key], reasons[key] = (
                None,
                f"not measured: {' '.join(map(str, case))}",
            )
        else:
            values[key] = published(STUDY)[reference] * seconds / reference_s
    for key, time in RATES.items():
        seconds = values[time]
        values[key] = None if seconds is None else 1 / seconds
        if seconds is None:
            reasons[key] = reasons[time]
    return values, reasons
