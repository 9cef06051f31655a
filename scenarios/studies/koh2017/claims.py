"""The names that expressions in ``claims.toml`` call: quantities, block sizes, and numbers of cells.

The expressions also say which runs claims need: `required_cells` evaluates them on a recorder of cells.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import polars as pl

from stripesim.calibration.ledger.verdicts import Observation
from stripesim.models.problems import NotComputedError
from stripesim.scenarios.studies.claim_rules import (
    Reasons,
    Values,
    evaluate,
    public_methods,
    simulate_claims,
)
from stripesim.scenarios.studies.koh2017 import series as courses
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
    CellNumbers,
    Names,
    Numbers,
    Recorder,
    RowFormula,
    average,
    divide,
    trend,
)
from stripesim.scenarios.studies.lookup import claims_of

STUDY: Final = "koh2017"
#: Relative change that a trend ignores, as the tolerance of trend rows in the claims file (see the tests).
TREND_TOLERANCE: Final = 0.20
PERCENT: Final = 100

#: Names of quantities, schemes, block sizes and figures. Quantities have the claims' units: MB/s, ms, % of
#: all storage cores, and per client byte. Device writes exclude the store's log: by the calibration row
#: koh2017-092 3-replication writes exactly three bytes per byte above 4 KB, so the paper does not count a log
#: entry per transaction.
CONSTANTS: Final[Mapping[str, Any]] = {
    "THROUGHPUT": RowFormula(("throughput_bytes_per_s",), lambda rate, _: rate / 1e6),
    "LATENCY": RowFormula(("latency_mean_ns",), lambda time, _: time / 1e6),
    "CPU": RowFormula(("cpu_utilisation",), lambda used, _: PERCENT * used),
    "USER_CPU": RowFormula(
        ("cpu_utilisation", "cpu_user_fraction"),
        lambda used, user, _: PERCENT * used * user,
    ),
    "SWITCHES": RowFormula(
        ("context_switches_per_op",), lambda count, size_bytes: count / size_bytes
    ),
    "READ": RowFormula(("device_read_bytes_per_client_byte",), lambda ratio, _: ratio),
    "WRITTEN": RowFormula(
        ("device_data_write_bytes_per_client_byte",), lambda ratio, _: ratio
    ),
    "PRIVATE": RowFormula(
        ("private_net_bytes_per_client_byte",), lambda ratio, _: ratio
    ),
    "REP": REP,
    "RS63": RS63,
    "RS104": RS104,
    "BARE": BARE,
    "CODES": CODES,
    "STORAGE": STORAGE,
    "SIZES_BYTES": SIZES_BYTES,
    "SMALL": SIZES_BYTES[:3],
    "ABOVE_4K": SIZES_BYTES[3:],
    "MIDDLE": SIZES_BYTES[2:5],
    "BELOW_32K": SIZES_BYTES[:5],
    "ONLY_1K": (KIB_BYTES,),
    "ONLY_4K": (4 * KIB_BYTES,),
    "ONLY_32K": (32 * KIB_BYTES,),
    "SWITCH_WRITES": ("11a", "11b"),
    "SWITCH_READS": ("12a", "12b"),
    "SPEED_READS": ("6", "8"),
    "CPU_PANELS": ("9a", "9b", "10a", "10b"),
}
THROUGHPUT: Final = CONSTANTS["THROUGHPUT"]


def koh_claims(rows: pl.DataFrame) -> tuple[Values, Reasons]:
    """Compute every claim that result rows can answer.

    Parameters
    ----------
    rows
        One row per cell: ``scheme`` (``rep:3``, ``rs:6,3``, ``rs:10,4``, ``none``), ``op``, ``pattern``,
        ``image``, ``block_size_bytes`` and the measured columns of the study's results. Claims whose cells or
        columns are missing are not computed.

    Returns
    -------
    tuple[Values, Reasons]
        Values by claim id, and why a claim has none.
    """
    return simulate_claims(STUDY, vocabulary(CellNumbers(rows)))


def required_cells() -> tuple[Cell, ...]:
    """Return the cells (scheme, op, pattern, image, block size [bytes]) that the claims are computed from."""
    cells: set[Cell] = set()
    for claim in claims_of(STUDY):
        cells |= cells_of(claim.id)
    return tuple(sorted(cells))


def cells_of(claim_id: str) -> set[Cell]:
    """Return the cells that one claim is computed from."""
    return _recorded(claim_id).cells


def figures_asked(claim_id: str) -> frozenset[str]:
    """Return the entries of `FIGURES` that a claim is computed from, or none if it needs no rows."""
    return frozenset(_recorded(claim_id).figures)


def _recorded(claim_id: str) -> Recorder:
    recorder = Recorder()
    (claim,) = (claim for claim in claims_of(STUDY) if claim.id == claim_id)
    with suppress(NotComputedError):
        evaluate(STUDY, claim, vocabulary(recorder))
    return recorder


def vocabulary(
    numbers: Numbers,
    series: pl.DataFrame | None = None,
    heartbeat_bytes_per_s: float | None = None,
) -> Mapping[str, Any]:
    """Return the names that expressions know."""

    def of_series(function: Callable[..., Any], *arguments: Any) -> Any:
        if series is None:
            raise NotComputedError
        return function(series, *arguments)

    def heartbeats_kb_per_s() -> float:
        if heartbeat_bytes_per_s is None:
            raise NotComputedError
        return heartbeat_bytes_per_s / 1e3

    return {
        **CONSTANTS,
        **public_methods(numbers),
        **public_methods(DrawnRatios(numbers)),
        "average": average,
        "drop": drop,
        "gap": gap,
        "most": most,
        "ends": ends,
        "farthest_from_one": farthest_from_one,
        "heartbeats_kb_per_s": heartbeats_kb_per_s,
        "dips": partial(of_series, courses.dips_of),
        "pristine_over_overwrites": partial(
            of_series, courses.pristine_over_overwrites
        ),
        "convergence_s": partial(of_series, courses.convergence_s),
    }


class DrawnRatios:
    """Ratios that the paper draws, and statements about several quantities."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def user_share(self, schemes: Names, figures: Names) -> float:
        """Return user-mode time over all CPU time of these cells [%]."""
        user = self._numbers.mean(CONSTANTS["USER_CPU"], schemes, figures)
        used = self._numbers.mean(CONSTANTS["CPU"], schemes, figures)
        return PERCENT * divide(user, used)

    def drawn(
        self, scheme: str, op: str, sizes: tuple[int, ...] = SIZES_BYTES
    ) -> list[float]:
        """Return Fig 18's drawn ratios: random over sequential throughput."""
        random, sequential = ("8", "6") if op == "read" else ("7", "5")
        if scheme == BARE:
            random = f"18-bare-rand-{op}"
            sequential = f"18-bare-seq-{op}"
        return self._numbers.ratios(THROUGHPUT, scheme, random, sizes, than=sequential)

    def drawn_over(
        self, scheme: str, baseline: str, op: str, sizes: tuple[int, ...]
    ) -> float:
        """Return the mean of Fig 18's ratios of a scheme over that of another."""
        mean = average(self.drawn(scheme, op, sizes))
        return divide(mean, average(self.drawn(baseline, op, sizes)))

    def bare_ratios(self, sizes: tuple[int, ...]) -> list[float]:
        """Return Fig 18's ratios of the bare SSD, reads then writes."""
        return self.drawn(BARE, "read", sizes) + self.drawn(BARE, "write", sizes)

    def random_above_sequential(self) -> Observation:
        """State whether random or sequential reads are faster."""
        ratios = [
            self._numbers.between(THROUGHPUT, scheme, "8", "6") for scheme in STORAGE
        ]
        if all(ratio > 1 for ratio in ratios):
            return Observation("random > sequential", tuple(ratios))
        return Observation("sequential >= random for a scheme", tuple(ratios))

    def latency_trend(self, figure: str) -> Observation:
        """Return the trend of latency over block sizes under both codes."""
        latency = CONSTANTS["LATENCY"]
        lists = [self._numbers.of(latency, scheme, figure) for scheme in CODES]
        return trend(*lists, tolerance=TREND_TOLERANCE)


def drop(ratio: float) -> float:
    """Return the drop of a value below its baseline [%]."""
    return PERCENT * (1 - ratio)


def gap(ratio: float) -> float:
    """Return the distance of a value from its baseline, above or below [%]."""
    return PERCENT * abs(ratio - 1)


def most(values: list[float]) -> float:
    """Return the smallest bound that more than half of the values keep."""
    return sorted(values)[len(values) // 2]


def ends(values: Iterable[float]) -> tuple[float, float]:
    """Return the smallest and the largest value, for a published range."""
    listed = list(values)
    return min(listed), max(listed)


def farthest_from_one(ratios: Iterable[float]) -> float:
    """Return the ratio that differs most from 1."""
    return max(ratios, key=lambda ratio: abs(ratio - 1))
