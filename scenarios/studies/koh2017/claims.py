"""The claims of Koh et al. 2017: which result rows each is computed from, and how.

One table, `RULES`, maps claim ids to compositions of the reducers; `FIGURES` says which runs (operation,
pattern, image state, bound) each figure is taken from. Everything here is a pure function of the rows.

Notes
-----
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

References
----------
S. Koh et al., "Understanding System Characteristics of Online Erasure Coding on Scalable, Distributed and
Large-Scale SSD Array Systems", IISWC 2017, sections I and III to VII.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, Ledger, Observation, judge, load_claims
from stripesim.scenarios.studies.koh2017.paper import FIGURES, METRIC_GROUPS
from stripesim.scenarios.studies.koh2017.reducers import (
    KIB_BYTES,
    SIZES_BYTES,
    Cell,
    CellRecorder,
    NotComputedError,
    NumberRule,
    Quantity,
    RowTable,
    Rule,
    Runs,
    always_above_one,
    as_series,
    average_of,
    drop_percent,
    farthest_from,
    gap_percent,
    joined,
    largest,
    largest_of,
    majority_bound,
    mean,
    of,
    ratio,
    ratios,
    rise_percent,
    smallest,
    span,
    trend,
)
from stripesim.scenarios.studies.koh2017.series import SERIES_RULES

REP, RS63, RS104, BARE = "rep:3", "rs:6,3", "rs:10,4", "none"
CODES = (RS63, RS104)
STORAGE = (REP, *CODES)

TREND_TOLERANCE = 0.20
"""Change that a trend ignores; the tolerance the claims file gives its trend rows (a test compares them)."""

NS_PER_MS = 1e6
BYTES_PER_MB = 1e6
PERCENT = 100

THROUGHPUT = Quantity("throughput [MB/s]", ("throughput_bytes_per_s",), lambda v, _: v[0] / BYTES_PER_MB)
LATENCY = Quantity("latency [ms]", ("latency_mean_ns",), lambda v, _: v[0] / NS_PER_MS)
CPU = Quantity("CPU [% of all storage cores]", ("cpu_utilisation",), lambda v, _: PERCENT * v[0])
USER_CPU = Quantity(
    "user-mode CPU [% of all storage cores]",
    ("cpu_utilisation", "cpu_user_fraction"),
    lambda v, _: PERCENT * v[0] * v[1],
)
SWITCHES = Quantity(
    "context switches per client byte", ("context_switches_per_op",), lambda v, size_bytes: v[0] / size_bytes
)
DEVICE_READ = Quantity("device reads per byte", ("device_read_bytes_per_client_byte",), lambda v, _: v[0])
# Without the store's log: the calibration row koh2017-092 says that 3-replication writes exactly three bytes
# per byte above 4 KB, which leaves no room for a log entry per transaction in what the paper counts.
DEVICE_WRITE = Quantity(
    "device writes per byte", ("device_data_write_bytes_per_client_byte",), lambda v, _: v[0]
)
PRIVATE = Quantity("private traffic per byte", ("private_net_bytes_per_client_byte",), lambda v, _: v[0])

ALL = SIZES_BYTES
SMALL = tuple(size for size in ALL if size <= 4 * KIB_BYTES)
ABOVE_4K = tuple(size for size in ALL if size > 4 * KIB_BYTES)
MIDDLE = tuple(size for size in ALL if 4 * KIB_BYTES <= size <= 16 * KIB_BYTES)
BELOW_32K = tuple(size for size in ALL if size < 32 * KIB_BYTES)
ONLY_1K, ONLY_4K, ONLY_32K = (KIB_BYTES,), (4 * KIB_BYTES,), (32 * KIB_BYTES,)

WRITES, READS = ("11a", "11b"), ("12a", "12b")
SPEED_READS = ("6", "8")
CPU_READS = ("10a", "10b")
CPU_PANELS = ("9a", "9b", "10a", "10b")


def _means_ratio(quantity: Quantity, scheme: str, figures: str | tuple[str, ...]) -> NumberRule:
    """Mean of a code over the mean of 3-replication, in the same figure."""
    return ratio(mean(of(quantity, scheme, figures)), mean(of(quantity, REP, figures)))


def _sizes_ratio(quantity: Quantity, scheme: str, figure: str, sizes_bytes: tuple[int, ...]) -> NumberRule:
    """Mean over some sizes of a code over 3-replication, the ratio taken size by size."""
    return mean(ratios(of(quantity, scheme, figure, sizes_bytes), of(quantity, REP, figure, sizes_bytes)))


def _largest_ratio(quantity: Quantity, schemes: tuple[str, ...], figures: tuple[str, ...]) -> NumberRule:
    """Largest size-by-size ratio of the codes over 3-replication, over all cells named."""
    return largest(
        joined(
            *(
                ratios(of(quantity, scheme, figure), of(quantity, REP, figure))
                for scheme in schemes
                for figure in figures
            )
        )
    )


def _user_share(schemes: str | tuple[str, ...], figures: str | tuple[str, ...]) -> NumberRule:
    """User-mode time over all CPU time of these cells [%]."""
    share = ratio(mean(of(USER_CPU, schemes, figures)), mean(of(CPU, schemes, figures)))
    return lambda lookup: PERCENT * share(lookup)


def _random_over_sequential(scheme: str, op: str, sizes_bytes: tuple[int, ...]) -> NumberRule:
    """Mean of Fig 18's drawn ratios, random over sequential throughput, over some sizes."""
    if scheme == BARE:
        random, sequential = f"18-bare-rand-{op}", f"18-bare-seq-{op}"
    else:
        random, sequential = ("8", "6") if op == "read" else ("7", "5")
    drawn = ratios(
        of(THROUGHPUT, scheme, random, sizes_bytes), of(THROUGHPUT, scheme, sequential, sizes_bytes)
    )
    return mean(drawn)


def _bare_ratios(sizes_bytes: tuple[int, ...]) -> Any:
    """Fig 18's drawn ratios of the bare SSD, reads then writes."""
    return joined(
        *(
            ratios(
                of(THROUGHPUT, BARE, f"18-bare-rand-{op}", sizes_bytes),
                of(THROUGHPUT, BARE, f"18-bare-seq-{op}", sizes_bytes),
            )
            for op in ("read", "write")
        )
    )


def _overwrite_gain(scheme: str) -> NumberRule:
    """Throughput of random overwrites over that of random writes on a pristine image."""
    return ratio(mean(of(THROUGHPUT, scheme, "20-overwrite")), mean(of(THROUGHPUT, scheme, "7")))


def _switch_ratio(scheme: str, figures: tuple[str, ...]) -> NumberRule:
    return _means_ratio(SWITCHES, scheme, figures)


_SPEED: dict[int, Rule] = {
    32: drop_percent(mean(of(THROUGHPUT, RS104, SPEED_READS)), mean(of(THROUGHPUT, REP, SPEED_READS))),
    33: rise_percent(mean(of(LATENCY, RS104, SPEED_READS)), mean(of(LATENCY, REP, SPEED_READS))),
    34: drop_percent(mean(of(THROUGHPUT, RS104, "5")), mean(of(THROUGHPUT, REP, "5"))),
    35: _means_ratio(LATENCY, RS104, "5"),
    39: average_of(*(_overwrite_gain(scheme) for scheme in CODES)),
    40: mean(of(THROUGHPUT, REP, "5")),
    41: mean(of(THROUGHPUT, RS63, "5")),
    42: mean(of(THROUGHPUT, RS104, "5")),
    43: mean(ratios(of(THROUGHPUT, REP, "5", MIDDLE), of(THROUGHPUT, RS63, "5", MIDDLE))),
    44: _means_ratio(LATENCY, RS63, "5"),
    45: majority_bound(of(LATENCY, REP, "5")),
    46: mean(of(LATENCY, RS63, "5")),
    47: mean(of(LATENCY, RS104, "5")),
    48: trend(*(of(LATENCY, scheme, "5") for scheme in CODES), tolerance=TREND_TOLERANCE),
    49: drop_percent(mean(of(THROUGHPUT, RS63, "6")), mean(of(THROUGHPUT, REP, "6"))),
    50: drop_percent(mean(of(THROUGHPUT, RS104, "6")), mean(of(THROUGHPUT, REP, "6"))),
    51: _means_ratio(LATENCY, RS63, "6"),
    52: _means_ratio(LATENCY, RS104, "6"),
    53: largest(of(LATENCY, REP, "6")),
    54: largest(of(LATENCY, RS63, "6")),
    55: largest(of(LATENCY, RS104, "6")),
    56: ratio(mean(of(THROUGHPUT, REP, "7")), mean(of(THROUGHPUT, RS63, "7"))),
    57: ratio(mean(of(THROUGHPUT, REP, "7")), mean(of(THROUGHPUT, RS104, "7"))),
    58: ratio(mean(of(THROUGHPUT, RS63, "7")), mean(of(THROUGHPUT, RS63, "5"))),
    59: ratio(mean(of(THROUGHPUT, RS104, "7")), mean(of(THROUGHPUT, RS104, "5"))),
    60: drop_percent(mean(of(LATENCY, RS63, "7")), mean(of(LATENCY, RS63, "5"))),
    61: drop_percent(mean(of(LATENCY, RS104, "7")), mean(of(LATENCY, RS104, "5"))),
    62: trend(*(of(LATENCY, scheme, "7") for scheme in CODES), tolerance=TREND_TOLERANCE),
    63: largest_of(
        gap_percent(mean(of(THROUGHPUT, RS63, "8")), mean(of(THROUGHPUT, REP, "8"))),
        gap_percent(mean(of(LATENCY, RS63, "8")), mean(of(LATENCY, REP, "8"))),
    ),
    67: always_above_one(
        as_series(*(ratio(mean(of(THROUGHPUT, s, "8")), mean(of(THROUGHPUT, s, "6"))) for s in STORAGE)),
        "random > sequential",
        "sequential >= random for a scheme",
    ),
    108: mean(_bare_ratios(ABOVE_4K)),
    109: largest(_bare_ratios(SMALL)),
    110: ratio(_random_over_sequential(REP, "read", SMALL), _random_over_sequential(BARE, "read", SMALL)),
    111: ratio(_random_over_sequential(RS63, "read", SMALL), _random_over_sequential(REP, "read", SMALL)),
    112: ratio(_random_over_sequential(RS104, "read", SMALL), _random_over_sequential(REP, "read", SMALL)),
    113: ratio(_random_over_sequential(RS63, "write", ALL), _random_over_sequential(BARE, "write", ALL)),
    114: ratio(_random_over_sequential(RS104, "write", ALL), _random_over_sequential(BARE, "write", ALL)),
    124: mean(of(THROUGHPUT, RS63, "7")),
    125: mean(of(THROUGHPUT, RS104, "7")),
    126: mean(of(THROUGHPUT, REP, "7")),
    127: mean(of(LATENCY, RS63, "7")),
    128: mean(of(LATENCY, RS104, "7")),
    129: ratio(mean(of(THROUGHPUT, REP, "5")), mean(of(THROUGHPUT, RS63, "5"))),
    130: ratio(mean(of(THROUGHPUT, REP, "5")), mean(of(THROUGHPUT, RS104, "5"))),
    131: mean(of(LATENCY, REP, "5")),
}

_COMPUTE: dict[int, Rule] = {
    36: _means_ratio(CPU, RS104, "10b"),
    68: mean(of(CPU, REP, "9a")),
    69: mean(of(CPU, RS63, "9a")),
    70: mean(of(CPU, RS104, "9a")),
    71: span(*(_user_share(scheme, "9a") for scheme in STORAGE)),
    72: mean(of(CPU, REP, "9b")),
    73: mean(of(CPU, RS63, "9b")),
    74: mean(of(CPU, RS104, "9b")),
    75: ratio(mean(of(CPU, CODES, "9b")), mean(of(CPU, REP, "9b"))),
    76: mean(of(CPU, REP, "10a")),
    77: largest(of(CPU, RS63, "10a")),
    78: largest(of(CPU, RS104, "10a")),
    79: mean(of(CPU, REP, "10b")),
    80: mean(of(CPU, RS63, "10b")),
    81: mean(of(CPU, RS104, "10b")),
    82: mean(of(CPU, CODES, "10b")),
    83: _user_share(CODES, CPU_READS),
    84: _user_share(STORAGE, CPU_PANELS),
    86: _switch_ratio(RS63, WRITES),
    87: _switch_ratio(RS104, WRITES),
    88: drop_percent(mean(of(SWITCHES, RS63, READS)), mean(of(SWITCHES, RS63, WRITES))),
    89: drop_percent(mean(of(SWITCHES, RS104, READS)), mean(of(SWITCHES, RS104, WRITES))),
    90: span(_switch_ratio(RS63, READS), _switch_ratio(RS104, READS)),
    122: _largest_ratio(SWITCHES, CODES, (*WRITES, *READS)),
    123: largest_of(*(_means_ratio(CPU, scheme, figure) for scheme in CODES for figure in CPU_PANELS)),
}

_TRAFFIC: dict[int, Rule] = {
    31: smallest(of(PRIVATE, REP, ("16a", "16b"))),
    37: _sizes_ratio(DEVICE_READ, RS104, "15b", ONLY_4K),
    38: _largest_ratio(DEVICE_WRITE, (RS104,), ("14",)),
    91: mean(of(DEVICE_READ, REP, "13", ONLY_1K)),
    92: mean(of(DEVICE_WRITE, REP, ("13", "14"), ABOVE_4K)),
    93: largest(of(DEVICE_READ, CODES, "13")),
    94: largest(of(DEVICE_WRITE, CODES, "13")),
    95: _largest_ratio(DEVICE_WRITE, CODES, ("14",)),
    96: _largest_ratio(DEVICE_WRITE, CODES, ("14",)),
    97: farthest_from(1.0, of(DEVICE_READ, STORAGE, "15a")),
    98: _sizes_ratio(DEVICE_READ, RS63, "15b", ONLY_4K),
    99: _sizes_ratio(DEVICE_READ, RS104, "15b", ONLY_4K),
    100: average_of(*(_sizes_ratio(DEVICE_READ, scheme, "15b", ONLY_32K) for scheme in CODES)),
    101: _sizes_ratio(PRIVATE, RS63, "16a", BELOW_32K),
    102: _sizes_ratio(PRIVATE, RS104, "16a", BELOW_32K),
    103: _largest_ratio(PRIVATE, (RS63,), ("16b",)),
    104: _largest_ratio(PRIVATE, (RS104,), ("16b",)),
    106: largest(of(PRIVATE, RS63, "17")),
    107: largest(of(PRIVATE, RS104, "17")),
    121: _largest_ratio(PRIVATE, CODES, ("16a", "16b")),
    132: mean(of(DEVICE_READ, RS63, "15b", ONLY_4K)),
    133: mean(of(DEVICE_READ, RS104, "15b", ONLY_4K)),
    134: mean(of(DEVICE_READ, RS63, "20-overwrite", ONLY_4K)),
    135: mean(of(DEVICE_WRITE, RS63, "20-overwrite", ONLY_4K)),
    136: mean(of(DEVICE_WRITE, RS104, "20-overwrite", ONLY_4K)),
}


def _claim_id(number: int) -> str:
    return f"koh2017-{number:03d}"


RULES: Mapping[str, Rule] = {
    _claim_id(number): rule for number, rule in sorted({**_SPEED, **_COMPUTE, **_TRAFFIC}.items())
}
"""Claim id → how its simulated value is computed, in the claim's own unit."""

HEARTBEAT_CLAIM = _claim_id(105)
BYTES_PER_KB = 1e3
_CONFIGURATION = "part of the configuration: an input to the simulation, not a result of it"
_TIME_SERIES = "needs the time series of Figs 19 and 20, which these runs do not hold"
NOT_COMPUTED: Mapping[str, str] = {
    **{_claim_id(number): _CONFIGURATION for number in range(1, 28)},
    **{_claim_id(number): _TIME_SERIES for number in range(115, 121)},
    _claim_id(28): "other people's failure statistics, quoted in passing",
    _claim_id(29): "other people's repair statistics, quoted in passing",
    _claim_id(30): "repair of a 256 MB chunk at another site: no repair is among these runs",
    _claim_id(64): "a label inside a figure: its direction and sizes are not stated",
    _claim_id(65): "the end of a figure's axis, not a measured value",
    _claim_id(66): "the end of a figure's axis, not a measured value",
    _claim_id(85): "a count over a run whose length is not stated",
    HEARTBEAT_CLAIM: "needs a run with heartbeats, which these runs do not hold",
}
"""Claim id → why no rule computes it from rows; the series and the heartbeats answer some of them."""


class SimulatedClaims(NamedTuple):
    """Values by claim id (None where nothing was computed) and the reasons for the latter."""

    values: dict[str, float | tuple[float, ...] | Observation | None]
    reasons: dict[str, str]


def load() -> tuple[Claim, ...]:
    """The claims of this study as they ship with the package."""
    folder = files("stripesim.scenarios.studies.koh2017")
    return load_claims(folder / "claims.csv", disputed=folder / "disputed.csv")


def simulate_claims(
    rows: pl.DataFrame,
    *,
    figures: Mapping[str, Runs] = FIGURES,
    series: pl.DataFrame | None = None,
    heartbeat_bytes_per_s: float | None = None,
) -> SimulatedClaims:
    """Compute every claim that result rows can answer.

    Parameters
    ----------
    rows
        One row per cell: ``scheme`` (``rep:3``, ``rs:6,3``, ``rs:10,4``, ``none``), ``op``, ``pattern``,
        ``image``, ``block_size_bytes`` and the measured columns of the study's results. Cells and columns
        may be missing: the claims that need them are then not computed, with the reason.
    figures
        Figure → runs; pass another mapping to see what an image state changes.
    series
        Rows per second of the runs in `stripesim.scenarios.studies.koh2017.series.RUNS`.
    heartbeat_bytes_per_s
        Private traffic of heartbeats while 3-replication reads [B/s].

    Raises
    ------
    RowsError
        If a key column is missing or a cell has two rows.
    """
    table = RowTable(rows, figures)
    values: dict[str, float | tuple[float, ...] | Observation | None] = dict.fromkeys(NOT_COMPUTED)
    reasons = dict(NOT_COMPUTED)
    for key, rule in RULES.items():
        try:
            values[key] = rule(table)
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
        values[HEARTBEAT_CLAIM] = heartbeat_bytes_per_s / BYTES_PER_KB
    return SimulatedClaims(dict(sorted(values.items())), reasons)


def required_cells(figures: Mapping[str, Runs] = FIGURES) -> tuple[Cell, ...]:
    """Cells (scheme, op, pattern, image, block size [bytes]) that the claims are computed from."""
    recorder = CellRecorder(figures)
    for rule in RULES.values():
        rule(recorder)
    return tuple(sorted(recorder.cells))


def figures_asked(claim_id: str) -> frozenset[str]:
    """Entries of `FIGURES` that a claim is computed from; none where no rule computes it from rows."""
    if claim_id not in RULES:
        return frozenset()
    recorder = CellRecorder(FIGURES)
    RULES[claim_id](recorder)
    return frozenset(recorder.figures)


def ledger_for(
    rows: pl.DataFrame,
    parameters: Iterable[Mapping[str, Any]],
    *,
    figures: Mapping[str, Runs] = FIGURES,
    series: pl.DataFrame | None = None,
    heartbeat_bytes_per_s: float | None = None,
) -> Ledger:
    """Judge this study's claims against result rows.

    Parameters
    ----------
    rows
        See `simulate_claims`.
    parameters
        The parameter set the rows were simulated with, each with name, value, unit and provenance.
    figures
        Figure → runs.
    series, heartbeat_bytes_per_s
        See `simulate_claims`.
    """
    simulated = simulate_claims(
        rows, figures=figures, series=series, heartbeat_bytes_per_s=heartbeat_bytes_per_s
    )
    return judge(
        load(), simulated.values, reasons=simulated.reasons, parameters=parameters, groups=METRIC_GROUPS
    )
