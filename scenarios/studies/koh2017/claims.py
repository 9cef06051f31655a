"""The claims of Koh et al. 2017: which result rows each is computed from, and how.

One table, `RULES`, maps claim ids to numbers of the rows; `FIGURES` says which runs (operation, pattern,
image state, bound) each figure is taken from. Everything here is a pure function of the rows.

Decisions on what the paper's words mean, made once and applied to every row:

1. *On average* is the mean over the eight block sizes 1 to 128 KB, each with the same weight, and a ratio
   "on average" is the **ratio of such means**. The paper does not say, but its numbers do: for random writes
   36.8·3.6·3.4 and 28.0·3.2·4.9 give the same 3-replication mean within 3 %, which ratios of means must do
   and means of ratios need not.
2. Only where the figure itself draws a ratio (Fig 18) is "on average" the mean of the drawn ratios.
3. A statement on a few named sizes ("4KB~16KB", "smaller than 32KB") is about each of them: the mean of the
   per-size ratios.
4. *Up to*, *as high as*, *at most* is the extreme over all eight sizes, and over both codes where the paper
   names none; the ratio of an "up to" claim is taken size by size first.
5. *Small* means 1, 2 and 4 KB, the sizes section VII.A sets apart.
6. *Most sizes* is a majority: the smallest bound that more than half of the eight sizes keep.
7. A statement without a pattern (V.B, user-mode shares) pools sequential and random runs, 16 cells.
8. A share of CPU time in user mode is user time over all time of the cells named, not a mean of shares.
9. "RS" without parameters is the mean over RS(6,3) and RS(10,4), for "10~15×" the smaller
   and the larger of the two, as for every published range.
10. MB is 10^6 bytes and KB in a block size 1024 bytes. Nothing in the paper decides the first; the other
    reading moves a throughput by 4.9 %, well inside its 20 % tolerance.
11. *Relative number of context switches* is switches per client byte, as section V.B defines it.

S. Koh et al., "Understanding System Characteristics of Online Erasure Coding on Scalable, Distributed and
Large-Scale SSD Array Systems", IISWC 2017, sections I and III to VII.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Ledger, Observation, Simulated, judge
from stripesim.scenarios.studies.koh2017.cells import (
    BARE,
    CODES,
    KIB_BYTES,
    REP,
    RS63,
    RS104,
    SIZES_BYTES,
    STORAGE,
    Cell,
    NotComputedError,
    Numbers,
    Quantity,
    Recorder,
    RowNumbers,
    average,
    divide,
    trend,
)
from stripesim.scenarios.studies.koh2017.paper import METRIC_GROUPS
from stripesim.scenarios.studies.koh2017.series import SERIES_RULES
from stripesim.scenarios.studies.lookup import CONFIGURATION, claims_of

STUDY = "koh2017"
TREND_TOLERANCE = 0.20
"""Change that a trend ignores; the tolerance the claims file gives its trend rows (a test compares them)."""
PERCENT = 100

#: Quantities in the claims' units: MB/s, ms, % of all storage cores, and per client byte.
THROUGHPUT = Quantity(("throughput_bytes_per_s",), lambda rate, _: rate / 1e6)
LATENCY = Quantity(("latency_mean_ns",), lambda time, _: time / 1e6)
CPU = Quantity(("cpu_utilisation",), lambda used, _: PERCENT * used)
USER_CPU = Quantity(
    ("cpu_utilisation", "cpu_user_fraction"),
    lambda used, user, _: PERCENT * used * user,
)
SWITCHES = Quantity(
    ("context_switches_per_op",), lambda count, size_bytes: count / size_bytes
)
READ = Quantity(("device_read_bytes_per_client_byte",), lambda ratio, _: ratio)
# Without the store's log: the calibration row koh2017-092 says that 3-replication writes exactly three bytes
# per byte above 4 KB, which leaves no room for a log entry per transaction in what the paper counts.
WRITTEN = Quantity(("device_data_write_bytes_per_client_byte",), lambda ratio, _: ratio)
PRIVATE = Quantity(("private_net_bytes_per_client_byte",), lambda ratio, _: ratio)

SMALL = SIZES_BYTES[:3]
ABOVE_4K = SIZES_BYTES[3:]
MIDDLE = SIZES_BYTES[2:5]
BELOW_32K = SIZES_BYTES[:5]
ONLY_1K, ONLY_4K, ONLY_32K = (KIB_BYTES,), (4 * KIB_BYTES,), (32 * KIB_BYTES,)

SWITCH_WRITES, SWITCH_READS = ("11a", "11b"), ("12a", "12b")
SPEED_READS = ("6", "8")
CPU_READS = ("10a", "10b")
CPU_PANELS = ("9a", "9b", "10a", "10b")

#: Claims of one kind: quantity, figures, claim by schemes, and what else the kind takes.
_Claims = tuple[tuple[Any, ...], ...]
#: Claims on a mean; sizes unless all.
_MEANS: _Claims = (
    (THROUGHPUT, "5", {REP: 40, RS63: 41, RS104: 42}),
    (THROUGHPUT, "7", {REP: 126, RS63: 124, RS104: 125}),
    (LATENCY, "5", {REP: 131, RS63: 46, RS104: 47}),
    (LATENCY, "7", {RS63: 127, RS104: 128}),
    (CPU, "9a", {REP: 68, RS63: 69, RS104: 70}),
    (CPU, "9b", {REP: 72, RS63: 73, RS104: 74}),
    (CPU, "10a", {REP: 76}),
    (CPU, "10b", {REP: 79, RS63: 80, RS104: 81, CODES: 82}),
    (READ, "13", {REP: 91}, ONLY_1K),
    (WRITTEN, ("13", "14"), {REP: 92}, ABOVE_4K),
    (READ, "15b", {RS63: 132, RS104: 133}, ONLY_4K),
    (READ, "20-overwrite", {RS63: 134}, ONLY_4K),
    (WRITTEN, "20-overwrite", {RS63: 135, RS104: 136}, ONLY_4K),
)
#: Claims on a ratio of means in the same figure; the other scheme unless REP.
_OVER: _Claims = (
    (LATENCY, "5", {RS63: 44, RS104: 35}),
    (LATENCY, "6", {RS63: 51, RS104: 52}),
    (CPU, "9b", {CODES: 75}),
    (CPU, "10b", {RS104: 36}),
    (SWITCHES, SWITCH_WRITES, {RS63: 86, RS104: 87}),
    (THROUGHPUT, "5", {REP: 129}, RS63),
    (THROUGHPUT, "5", {REP: 130}, RS104),
    (THROUGHPUT, "7", {REP: 56}, RS63),
    (THROUGHPUT, "7", {REP: 57}, RS104),
)
#: Claims on the mean of size-by-size ratios to 3-replication; sizes.
_BY_SIZE: _Claims = (
    (READ, "15b", {RS104: 37}, ONLY_4K),
    (READ, "15b", {RS63: 98, RS104: 99}, ONLY_4K),
    (PRIVATE, "16a", {RS63: 101, RS104: 102}, BELOW_32K),
)
#: Claims on the largest value.
_LARGEST: _Claims = (
    (LATENCY, "6", {REP: 53, RS63: 54, RS104: 55}),
    (CPU, "10a", {RS63: 77, RS104: 78}),
    (READ, "13", {CODES: 93}),
    (WRITTEN, "13", {CODES: 94}),
    (PRIVATE, "17", {RS63: 106, RS104: 107}),
)
#: Claims on the largest size-by-size ratio to 3-replication.
_LARGEST_RATIO: _Claims = (
    (WRITTEN, ("14",), {(RS104,): 38, CODES: 95}),
    (WRITTEN, ("14",), {CODES: 96}),
    (PRIVATE, ("16b",), {(RS63,): 103, (RS104,): 104}),
    (PRIVATE, ("16a", "16b"), {CODES: 121}),
    (SWITCHES, (*SWITCH_WRITES, *SWITCH_READS), {CODES: 122}),
)

Rule = Callable[[Numbers], Simulated]


def _drop(ratio: float) -> float:
    """By how much a value lies below its baseline [%]."""
    return PERCENT * (1 - ratio)


def _gap(ratio: float) -> float:
    """Distance of a value from its baseline, whichever is larger [%]."""
    return PERCENT * abs(ratio - 1)


def _user_share(
    n: Numbers, schemes: str | tuple[str, ...], figures: str | tuple[str, ...]
) -> float:
    """User-mode time over all CPU time of these cells [%]."""
    return PERCENT * divide(
        n.mean(USER_CPU, schemes, figures), n.mean(CPU, schemes, figures)
    )


def _drawn(
    n: Numbers, scheme: str, op: str, sizes: tuple[int, ...] = SIZES_BYTES
) -> list[float]:
    """Fig 18's drawn ratios: random over sequential throughput."""
    random, sequential = ("8", "6") if op == "read" else ("7", "5")
    if scheme == BARE:
        random, sequential = f"18-bare-rand-{op}", f"18-bare-seq-{op}"
    return n.ratios(THROUGHPUT, scheme, random, sizes, than=sequential)


def _drawn_over(
    n: Numbers, scheme: str, baseline: str, op: str, sizes: tuple[int, ...]
) -> float:
    """Mean of Fig 18's ratios of a scheme over that of another."""
    return divide(
        average(_drawn(n, scheme, op, sizes)), average(_drawn(n, baseline, op, sizes))
    )


def _bare(n: Numbers, sizes: tuple[int, ...]) -> list[float]:
    """Fig 18's ratios of the bare SSD, reads then writes."""
    return [ratio for op in ("read", "write") for ratio in _drawn(n, BARE, op, sizes)]


def _most(values: list[float]) -> float:
    """Smallest number that more than half of the values do not exceed: "less than … for most sizes"."""
    return sorted(values)[len(values) // 2]


def _random_above_sequential(n: Numbers) -> Observation:
    ratios = [n.between(THROUGHPUT, scheme, "8", "6") for scheme in STORAGE]
    holds = all(ratio > 1 for ratio in ratios)
    return Observation(
        "random > sequential" if holds else "sequential >= random for a scheme",
        tuple(ratios),
    )


def _latency_trend(n: Numbers, figure: str) -> Observation:
    return trend(
        *(n.of(LATENCY, scheme, figure) for scheme in CODES), tolerance=TREND_TOLERANCE
    )


def _ends(values: Iterable[float]) -> tuple[float, float]:
    """Smallest and largest, for a published range."""
    found = list(values)
    return min(found), max(found)


_SINGLE: dict[int, Rule] = {
    31: lambda n: min(n.of(PRIVATE, REP, ("16a", "16b"))),
    32: lambda n: _drop(n.over(THROUGHPUT, RS104, SPEED_READS)),
    33: lambda n: -_drop(n.over(LATENCY, RS104, SPEED_READS)),
    34: lambda n: _drop(n.over(THROUGHPUT, RS104, "5")),
    39: lambda n: average(
        n.between(THROUGHPUT, scheme, "20-overwrite", "7") for scheme in CODES
    ),
    43: lambda n: average(n.ratios(THROUGHPUT, REP, "5", MIDDLE, baseline=RS63)),
    45: lambda n: _most(n.of(LATENCY, REP, "5")),
    48: lambda n: _latency_trend(n, "5"),
    49: lambda n: _drop(n.over(THROUGHPUT, RS63, "6")),
    50: lambda n: _drop(n.over(THROUGHPUT, RS104, "6")),
    58: lambda n: n.between(THROUGHPUT, RS63, "7", "5"),
    59: lambda n: n.between(THROUGHPUT, RS104, "7", "5"),
    60: lambda n: _drop(n.between(LATENCY, RS63, "7", "5")),
    61: lambda n: _drop(n.between(LATENCY, RS104, "7", "5")),
    62: lambda n: _latency_trend(n, "7"),
    63: lambda n: max(
        _gap(n.over(quantity, RS63, "8")) for quantity in (THROUGHPUT, LATENCY)
    ),
    67: _random_above_sequential,
    71: lambda n: _ends(_user_share(n, scheme, "9a") for scheme in STORAGE),
    83: lambda n: _user_share(n, CODES, CPU_READS),
    84: lambda n: _user_share(n, STORAGE, CPU_PANELS),
    88: lambda n: _drop(n.between(SWITCHES, RS63, SWITCH_READS, SWITCH_WRITES)),
    89: lambda n: _drop(n.between(SWITCHES, RS104, SWITCH_READS, SWITCH_WRITES)),
    90: lambda n: _ends(n.over(SWITCHES, scheme, SWITCH_READS) for scheme in CODES),
    97: lambda n: max(n.of(READ, STORAGE, "15a"), key=lambda ratio: abs(ratio - 1)),
    100: lambda n: average(
        average(n.ratios(READ, scheme, "15b", ONLY_32K)) for scheme in CODES
    ),
    108: lambda n: average(_bare(n, ABOVE_4K)),
    109: lambda n: max(_bare(n, SMALL)),
    110: lambda n: _drawn_over(n, REP, BARE, "read", SMALL),
    111: lambda n: _drawn_over(n, RS63, REP, "read", SMALL),
    112: lambda n: _drawn_over(n, RS104, REP, "read", SMALL),
    113: lambda n: _drawn_over(n, RS63, BARE, "write", SIZES_BYTES),
    114: lambda n: _drawn_over(n, RS104, BARE, "write", SIZES_BYTES),
    123: lambda n: max(
        n.over(CPU, scheme, figure) for scheme in CODES for figure in CPU_PANELS
    ),
}


def _claim_id(claim: int) -> str:
    return f"koh2017-{claim:03d}"


def _apply(
    how: Callable[..., Simulated], where: tuple[Any, ...], n: Numbers
) -> Simulated:
    return how(n, *where)


def _rules() -> dict[str, Rule]:
    tables: tuple[tuple[_Claims, Callable[..., Simulated]], ...] = (
        (_MEANS, Numbers.mean),
        (_OVER, Numbers.over),
        (_BY_SIZE, lambda n, *where: average(n.ratios(*where))),
        (_LARGEST, lambda n, *where: max(n.of(*where))),
        (_LARGEST_RATIO, Numbers.largest_ratio),
    )
    found = dict(_SINGLE)
    for table, how in tables:
        for quantity, figures, claims, *more in table:
            for schemes, claim in claims.items():
                found[claim] = partial(_apply, how, (quantity, schemes, figures, *more))
    return {_claim_id(claim): found[claim] for claim in sorted(found)}


RULES: Mapping[str, Rule] = _rules()
"""Claim id → how its simulated value is computed from rows, in the claim's own unit."""

HEARTBEAT_CLAIM = _claim_id(105)
_TIME_SERIES = "needs the time series of Figs 19 and 20, which these runs do not hold"
NOT_COMPUTED: Mapping[str, str] = {
    **{_claim_id(claim): CONFIGURATION for claim in range(1, 28)},
    **{_claim_id(claim): _TIME_SERIES for claim in range(115, 121)},
    _claim_id(28): "other people's failure statistics, quoted in passing",
    _claim_id(29): "other people's repair statistics, quoted in passing",
    _claim_id(
        30
    ): "repair of a 256 MB chunk at another site: no repair is among these runs",
    _claim_id(64): "a label inside a figure: its direction and sizes are not stated",
    _claim_id(65): "the end of a figure's axis, not a measured value",
    _claim_id(66): "the end of a figure's axis, not a measured value",
    _claim_id(85): "a count over a run whose length is not stated",
    HEARTBEAT_CLAIM: "needs a run with heartbeats, which these runs do not hold",
}
"""Claim id → why no rule computes it from rows; the series and the heartbeats answer some of them."""


def simulate_claims(
    rows: pl.DataFrame,
    *,
    series: pl.DataFrame | None = None,
    heartbeat_bytes_per_s: float | None = None,
) -> tuple[dict[str, Simulated], dict[str, str]]:
    """Compute every claim that result rows can answer; return values and reasons where there is none.

    `rows`: one row per cell: ``scheme`` (``rep:3``, ``rs:6,3``, ``rs:10,4``, ``none``), ``op``, ``pattern``,
      ``image``, ``block_size_bytes`` and the measured columns of the study's results. Cells and columns may
      be missing: the claims that need them are then not computed, with the reason.
    `series`: rows per second of the runs in `stripesim.scenarios.studies.koh2017.series.RUNS`.
    `heartbeat_bytes_per_s`: private traffic of heartbeats while 3-replication reads [B/s].
    """
    numbers = RowNumbers(rows)
    values: dict[str, Simulated] = dict.fromkeys(NOT_COMPUTED)
    reasons = dict(NOT_COMPUTED)
    for key, rule in RULES.items():
        try:
            values[key] = rule(numbers)
        except NotComputedError as why:
            values[key] = None
            reasons[key] = f"not computed from these rows: {why}"
    if series is not None:
        for key, from_series in SERIES_RULES.items():
            try:
                values[key] = from_series(series)
            except NotComputedError as why:
                reasons[key] = f"not computed from these series: {why}"
    if heartbeat_bytes_per_s is not None:
        values[HEARTBEAT_CLAIM] = heartbeat_bytes_per_s / 1e3
    return dict(sorted(values.items())), reasons


def required_cells() -> tuple[Cell, ...]:
    """Cells (scheme, op, pattern, image, block size [bytes]) that the claims are computed from."""
    recorder = Recorder()
    for rule in RULES.values():
        rule(recorder)
    return tuple(sorted(recorder.cells))


def figures_asked(claim_id: str) -> frozenset[str]:
    """Entries of `FIGURES` that a claim is computed from; none where no rule computes it from rows."""
    recorder = Recorder()
    if claim_id in RULES:
        RULES[claim_id](recorder)
    return frozenset(recorder.figures)


def ledger_for(
    rows: pl.DataFrame, parameters: Iterable[Mapping[str, Any]], **further: Any
) -> Ledger:
    """Judge this study's claims against result rows; further see `simulate_claims`."""
    values, reasons = simulate_claims(rows, **further)
    return judge(
        claims_of(STUDY),
        values,
        reasons=reasons,
        parameters=parameters,
        groups=METRIC_GROUPS,
    )
