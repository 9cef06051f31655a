"""The published curves of durability: which system each point is, and how it is computed."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import expm1, log1p, log10
from typing import Any, Final

import numpy as np
import polars as pl

from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.durability.chain import chain_of
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

STUDY_NAME: Final = "durability"
_TB: Final = 1e12

#: Weibull and exponential curves of mlec-sim have lost the same share of drives at this age [years].
_SAME_LOSS_YEARS: Final = 5.0


@dataclass(frozen=True)
class DurabilityCurve:
    """One of mlec-sim's curves, a row of ``curves.csv``.

    The policy "shared" is mlec-sim's repair scheme 1 (all failed drives of a pool share one pace), "parallel"
    its scheme 0. A curve over the Weibull shape has a fixed annual failure rate `afr`. All others are curves
    over that rate.
    """

    scheme: str
    placement: Placement
    drives: int
    drive_tb: float
    pace_mb_per_s: float
    policy: Policy
    afr: float | None

    def system_at(self, x: float) -> System:
        """Return the system at one point, a failure rate [percent] or a Weibull shape."""
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
    table = pl.read_csv((study_folder(STUDY_NAME) / "curves.csv").read_bytes())
    return {
        row.pop("curve"): DurabilityCurve(**row) for row in table.iter_rows(named=True)
    }


def _weibull(afr: float, shape: float) -> Lifetime:
    """Return the Weibull lifetimes that match the five-year losses of an exponential of that rate."""
    years = _SAME_LOSS_YEARS
    scale_years = years / (-years * log1p(-afr)) ** (1 / shape)
    return Lifetime.weibull(scale_years * YEAR_S, shape, YEAR_S)


def split_id(claim: str) -> tuple[str, str] | None:
    """Split the id of a curve's point into curve and point. Other claims give None."""
    match = re.fullmatch(r"(.+)-([\d.]+)", claim)
    return (match[1], match[2]) if match and match[1] in curves() else None


def curve_rows(curve: str, points: tuple[str, ...]) -> Iterator[Row]:
    """Compute the points of one curve: the web calculator's by the chain, simulated ones by splitting."""
    for point in points:
        system = curves()[curve].system_at(float(point))
        method = "splitting"
        if "web" in curve and system.lifetime.constant:
            method = "markov"
            # Calculators treat the mean time to loss as that of a constant rate.
            nines = low = high = -log10(-expm1(-YEAR_S / chain_of(system).mttdl_s))
        else:
            nines, low, high = split(system, batches=10).nines
        yield {
            "scheme": curves()[curve].scheme,
            "op": method,
            "pattern": f"{curve}-{point}",
            "block_size_bytes": None,
            "value": nines,
            "low": low,
            "high": high,
        }


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
    """Return nines of a few codes on 60 drives by repair rate [B/s], AFR 2 %."""
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
    """Return usable share and nines of codes by placement, for AFR 2 % and repairs at 100 MB/s."""
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
