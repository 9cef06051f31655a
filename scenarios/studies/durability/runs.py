"""What the study computes: for each claim the system it is about, or the formula, and a method."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import comb, expm1, log1p, log10
from typing import Any, Final

import numpy as np
import polars as pl

from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.durability.bursts import (
    copysets_scattered,
    fixed_window_loss,
    stripe_lost,
)
from stripesim.sim.durability.chain import (
    absorption,
    birth_death,
    chain_of,
    mean_absorption,
)
from stripesim.sim.durability.probability import any_of
from stripesim.sim.durability.splitting import split
from stripesim.sim.durability.system import (
    YEAR_S,
    DriveRepair,
    Lifetime,
    Placement,
    Policy,
    System,
    code_of,
)

_HOUR_S: Final = 3600.0
_TB: Final = 1e12

#: Age by which the Weibull curves and the exponential one have lost the same share [years]: mlec-sim's own.
_SAME_LOSS_YEARS: Final = 5.0


@dataclass(frozen=True)
class DurabilityCurve:
    """One of mlec-sim's curves, as ``curves.csv`` has it.

    Of the policies "shared" is mlec-sim's repair scheme 1 (all failed drives of a pool share one pace),
    "parallel" its scheme 0. A curve over the Weibull shape has an annual failure rate; others are over that.
    """

    scheme: str
    placement: Placement
    drives: int
    drive_tb: float
    pace_mb_per_s: float
    policy: Policy
    afr: float | None

    def system_at(self, x: float) -> System:
        """Return the system of one point; x is its failure rate [percent], or Weibull shape."""
        lifetime = Lifetime.exponential(x / 100)
        if self.afr is not None:
            lifetime = _weibull(self.afr, x)
        return System(
            code=code_of(self.scheme),
            placement=self.placement,
            drives=self.drives,
            drive_bytes=self.drive_tb * _TB,
            lifetime=lifetime,
            repair=DriveRepair(self.pace_mb_per_s * 1e6, self.policy, detection_s=0.0),
        )


@cache
def curves() -> Mapping[str, DurabilityCurve]:
    """Return all curves by the beginning of their claims' ids."""
    table = pl.read_csv((files(__package__) / "curves.csv").read_bytes())
    return {
        row.pop("curve"): DurabilityCurve(**row) for row in table.iter_rows(named=True)
    }


def _weibull(afr: float, shape: float) -> Lifetime:
    """Lifetimes that lose as many drives within five years as an exponential of that rate."""
    years = _SAME_LOSS_YEARS
    scale_years = years / (-years * log1p(-afr)) ** (1 / shape)
    return Lifetime.weibull(scale_years * YEAR_S, shape, YEAR_S)


def series_rows(series: str, points: tuple[str, ...]) -> Iterator[Row]:
    """Compute the points of one curve: the web calculator's by the chain, simulated ones by splitting."""
    for point in points:
        system = curves()[series].system_at(float(point))
        chain = "web" in series and system.lifetime.constant
        if chain:
            # Calculators take the mean time to loss for that of a constant rate.
            nines = low = high = -log10(-expm1(-YEAR_S / chain_of(system).mttdl_s))
        else:
            nines, low, high = split(system, batches=10).nines
        yield _row(
            f"{series}-{point}", nines, "markov" if chain else "splitting", low, high
        )


def _row(
    claim: str,
    value: float,
    method: str,
    low: float | None = None,
    high: float | None = None,
) -> Row:
    curve = split_id(claim)
    return {
        "scheme": "" if curve is None else curves()[curve[0]].scheme,
        "op": method,
        "pattern": claim,
        "block_size_bytes": None,
        "value": value,
        "low": value if low is None else low,
        "high": value if high is None else high,
    }


def anchors() -> Iterator[Row]:
    """Compute the claims that one formula answers."""
    yield from _chains()
    yield from _bursts()
    yield from _windows()
    yield from _papers()
    yield from _stages()


def _mean(n: int, tolerated: int, fail: float, mend: list[float]) -> float:
    up = [(n - i) * fail for i in range(tolerated + 1)]
    return mean_absorption(birth_death(up, mend, [0.0] * len(up)))


def _chains() -> Iterator[Row]:
    for number, scheme in enumerate(
        ("rep:2", "rep:3", "rs:4,2", "rs:6,3", "rs:8,3", "rs:10,4"), start=1
    ):
        code = code_of(scheme)
        for suffix, side_by_side in (("p", True), ("s", False)):
            mend = [
                (i if side_by_side else 1) / 24 for i in range(1, code.tolerated + 1)
            ]
            yield _row(
                f"ctmc-{number}{suffix}",
                _mean(code.width, code.tolerated, 1e-6, mend),
                "markov",
            )


def _bursts() -> Iterator[Row]:
    scales = {1: 1e7, 2: 1e6, 3: 1e5, 4: 1e8, 5: 1e7, 6: 1e11}
    schemes = ("rep:3", "rs:6,3", "rs:4,2", "rs:8,4", "rs:10,4", "rs:9,6")
    for number, scheme in enumerate(schemes, start=1):
        code = code_of(scheme)
        one = stripe_lost(code.width, code.width - code.k, 50, 5000)
        yield _row(f"hyper-{number}", one * scales[number], "burst")
        yield _row(
            f"hyper1e7-{number}",
            any_of(one, 1e7) * (1e4 if number == 6 else 1),
            "burst",
        )
    three = stripe_lost(3, 2, 50, 5000)
    by_copyset = any_of(three, copysets_scattered(5000, 2, 3))
    yield _row("copysets2013-1", any_of(three, 5000 * 8000 / 3), "burst")
    yield _row("copysets2013-2", by_copyset * 1e3, "burst")
    yield _row("copysets2013-5", copysets_scattered(5000, 10, 3), "burst")
    # Every pair of the ten partners, with each node.
    yield _row("copysets2013-6", 5000 * comb(10, 2), "burst")
    yield _row("copysets2013-7", 1 / by_copyset, "burst")


def _windows() -> Iterator[Row]:
    scales = {1: 1e2, 2: 1e5, 3: 1e8, 4: 1e12, 5: 1e15}
    for threshold, scale in scales.items():
        lost = fixed_window_loss(20, threshold - 1, 0.00405, 6.5)
        yield _row(
            f"backblaze-{threshold}", lost * (scale if threshold > 1 else 1), "binomial"
        )


def _papers() -> Iterator[Row]:
    """Azure and Xorbas as their copied tables give them, and mlec-sim's notebooks on both."""
    fail = 0.25 / 8760
    first = 0.1 * 399 / (8 * 16_000) * _HOUR_S
    later = 2.0
    yield _row("azure2012-1", _mean(3, 2, fail, [first, later]) / 8760, "markov")
    yield _row(
        "azure2012-2", _mean(9, 3, fail, [first / 6, later, later]) / 8760, "markov"
    )
    for claim, decodable in (("azure2012-3", 0.86), ("mlecnb-1", 0.857)):
        up = [i * fail for i in (10, 9, 8, 7, 6)]
        rates = birth_death(
            up, [first / 3.6, later, later, later], [0, 0, 0, 1 - decodable, 0]
        )
        yield _row(claim, mean_absorption(rates) / 8760, "markov")
    # Sathiamoorthy et al.: a stripe is rebuilt block by block at 1 Gbit/s, and there are 30 PB of stripes.
    daily = 0.25 / 365
    blocks_a_day = 125e6 * 86_400 / 256e6
    for number, (scheme, reads) in enumerate(
        (("rep:3", [1] * 2), ("rs:10,4", [10] * 4), ("lrc:10,6,5", [5, 10, 10, 10]))
    ):
        width = code_of(scheme).width
        stripe_days = _mean(
            width, len(reads), daily, [blocks_a_day / blocks for blocks in reads]
        )
        yield _row(
            f"xorbas2013-{number + 1}",
            stripe_days / (30e15 / (width * 256e6)),
            "markov",
        )
    # mlec-sim's notebooks on it, as they stand: repairs a year beside failures a day.
    yearly = 125e6 * 365 * 86_400 / (10 * _TB)
    yield _row(
        "mlecnb-2",
        _mean(14, 4, daily, [14 * yearly / 10] * 4) / (30e15 / 256e6),
        "markov",
    )
    yield _row("mlecnb-3", _mean(3, 2, daily, [yearly] * 2) / 3000, "markov")
    yield _row("mlecnb-4", _mean(14, 4, daily, [yearly / 10] * 4) / 3000, "markov")


def _stages() -> Iterator[Row]:
    """The stages that mlec-sim's README prints for rs:7,3 on 100 drives, at its default rate of 5 %."""
    rate = -log1p(-0.05) / YEAR_S
    mend = 1e8 / (20 * _TB)
    reached = []
    for level in (2, 3, 4):
        rates = birth_death(
            [(10 - i) * rate for i in range(level)], [mend] * (level - 1), [0.0] * level
        )
        reached.append(-expm1(10 * log1p(-absorption(rates, YEAR_S))))
    yield _row("mlec-split-1", -log10(reached[0]), "markov")
    yield _row("mlec-split-2", -log10(reached[1] / reached[0]), "markov")
    yield _row("mlec-split-3", -log10(reached[2] / reached[1]), "markov")
    yield _row("mlec-split-4", -log10(reached[2]), "markov")


# What the figures show beside the claims.


def _nines(
    scheme: str, placement: Placement, drives: int, afr: float, pace: float
) -> float:
    system = System(
        code=code_of(scheme),
        placement=placement,
        drives=drives,
        drive_bytes=20 * _TB,
        lifetime=Lifetime.exponential(afr),
        repair=DriveRepair(pace, "parallel", detection_s=0.0),
    )
    return abs(-log10(chain_of(system).loss_probability(YEAR_S)))


def nines_by_pace() -> list[dict[str, Any]]:
    """Return nines of a few codes on 60 drives by pace of repair [B/s], AFR 2 %."""
    schemes = ("rep:3", "rs:4,2", "rs:8,2", "rs:9,3", "rs:8,4")
    return [
        {
            "scheme": scheme,
            "pace": pace,
            "nines": _nines(scheme, "clustered", 60, 0.02, pace),
        }
        for scheme in schemes
        for pace in np.geomspace(1e7, 2e9, 24).tolist()
    ]


def nines_by_capacity(drives: int) -> list[dict[str, Any]]:
    """Return usable share and nines of codes on some drives, by placement, AFR 2 %, 100 MB/s."""
    schemes = (
        "rep:2",
        "rep:3",
        "rs:4,2",
        "rs:6,3",
        "rs:8,2",
        "rs:8,3",
        "rs:8,4",
        "rs:10,4",
        "rs:17,3",
    )
    return [
        {
            "scheme": scheme,
            "placement": placement,
            "usable": code_of(scheme).k / code_of(scheme).width,
            "nines": _nines(scheme, placement, drives, 0.02, 1e8),
        }
        for scheme in schemes
        for placement in ("clustered", "declustered")
    ]


def split_id(claim: str) -> tuple[str, str] | None:
    """Split the id of a curve's point into the curve and the point; None for other claims."""
    match = re.fullmatch(r"(.+)-([\d.]+)", claim)
    return (match[1], match[2]) if match and match[1] in curves() else None
