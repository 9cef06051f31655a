"""Compute published durability again: chains, combinatorics and splitting."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import comb, expm1, log1p, log10
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.models.problems import NotComputedError
from stripesim.scenarios.studies.base import Setting, Study, StudyResult
from stripesim.scenarios.studies.durability.curves import (
    STUDY_NAME,
    curve_rows,
    curves,
    nines_by_capacity,
    nines_by_pace,
    split_id,
)
from stripesim.scenarios.studies.tasks import Call, Row, Task
from stripesim.sim.durability.bursts import (
    copysets_scattered,
    fixed_window_loss,
    stripe_lost,
)
from stripesim.sim.durability.chain import absorption, birth_death, mean_absorption
from stripesim.sim.durability.probability import any_of
from stripesim.sim.durability.system import YEAR_S, code_of


class Durability(Study):
    """Study without a fit: every row follows from its stated parameters."""

    name = STUDY_NAME

    def parameters(self) -> list[Row]:
        """List the conventions that every row rests on."""
        source = "mlec-sim, src/failure_generator.py"
        return [
            {
                "name": "year_s",
                "value": YEAR_S,
                "unit": "s",
                "provenance": f"published: {source}",
            },
            {
                "name": "detection_s",
                "value": 0.0,
                "unit": "s",
                "provenance": "published: mlec-sim's default",
            },
        ]

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each curve."""
        points: dict[str, list[str]] = {name: [] for name in curves()}
        for _, curve, x in self._curve_points():
            points[curve].append(x)
        return [
            Call(curve, curve_rows, (curve, tuple(listed)), weight=len(listed))
            for curve, listed in points.items()
            if listed
        ]

    def vocabulary(self, rows: pl.DataFrame) -> Mapping[str, Any]:
        """Return the names that expressions know."""
        values: dict[str, float] = dict(rows.select("pattern", "value").iter_rows())

        def on_curve(claim: Claim) -> float:
            if claim.id not in values:
                raise NotComputedError
            return values[claim.id]

        return {
            "any_of": any_of,
            "birth_death": birth_death,
            "comb": comb,
            "copysets_scattered": copysets_scattered,
            "fixed_window_loss": fixed_window_loss,
            "log10": log10,
            "mean_absorption": mean_absorption,
            "mean_time_to_loss": mean_time_to_loss,
            "on_curve": on_curve,
            "scale": scale,
            "stage_reached": stage_reached,
            "stripe_lost": stripe_lost,
            "stripe_lost_at_once": stripe_lost_at_once,
            "stripe_mttdl_hours": stripe_mttdl_hours,
        }

    def figure_tables(self, result: StudyResult) -> dict[str, pl.DataFrame]:
        """Return which claims are points of curves, and nines over repair rate and against capacity."""
        points = pl.DataFrame(
            self._curve_points(), schema=["id", "curve", "x"], orient="row"
        )
        return {
            "curve_points": points.cast({"x": pl.Float64}),
            "paces": pl.DataFrame(nines_by_pace()),
            "capacities": pl.DataFrame(nines_by_capacity(120)),
        }

    def _curve_points(self) -> Iterator[tuple[str, str, str]]:
        """Yield the claims that are points of curves: id, curve, x."""
        for claim in self.claims():
            point = split_id(claim.id)
            if point is not None:
                yield (claim.id, *point)


STUDY = Durability()


def scale(claim: Claim) -> float:
    """Return the factor from a value to a claim's unit, such as ``1e-12 per year``."""
    power = re.match(r"1e-(\d+)", claim.unit)
    return 10.0 ** int(power[1]) if power else 1.0


def mean_time_to_loss(
    width: int, tolerated: int, fail: float, mend: list[float]
) -> float:
    """Return a stripe's mean time to loss, in the unit of time of the rates.

    Parameters
    ----------
    width
        Drives of a stripe [count].
    tolerated
        Failures that it survives [count].
    fail
        Failure rate of a drive.
    mend
        Rate of repair with 1, 2, … drives failed.
    """
    up = [(width - failed) * fail for failed in range(tolerated + 1)]
    return mean_absorption(birth_death(up, mend, [0.0] * len(up)))


def stripe_mttdl_hours(scheme: str, *, at_once: bool) -> float:
    """Return a stripe's mean time to data loss [h]: MTTF 10⁶ h, parallel or serial repairs of 24 h."""
    code = code_of(scheme)
    failures = range(1, code.tolerated + 1)
    mend = [(failed if at_once else 1) / 24 for failed in failures]
    return mean_time_to_loss(code.width, code.tolerated, 1e-6, mend)


def stripe_lost_at_once(scheme: str) -> float:
    """Return the probability that a random stripe is lost with 50 of 5,000 nodes."""
    code = code_of(scheme)
    return stripe_lost(code.width, code.width - code.k, 50, 5000)


def stage_reached(failed: int) -> float:
    """Return the probability that a pool of rs:7,3 reaches this number of failed drives.

    As in mlec-sim's README: 100 drives of 20 TB, AFR 5 %, repairs at 100 MB/s, ten pools, one year.
    """
    rate = -log1p(-0.05) / YEAR_S
    up = [(10 - down) * rate for down in range(failed)]
    rates = birth_death(up, [1e8 / 20e12] * (failed - 1), [0.0] * failed)
    return -expm1(10 * log1p(-absorption(rates, YEAR_S)))
