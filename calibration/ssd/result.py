"""Define the result of a service-time fit: line, distribution, scores and provenance."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy

from stripesim.models.documents import Documented

Floats = npt.NDArray[np.float64]
Operation = Literal["read", "write"]
TimeKind = Literal["service", "response"]

POOR_ERROR = {"mean": 0.25, "p50": 0.25, "p90": 0.25, "p99": 0.5}
"""Errors on the unseen half above which a fit is called poor. The tail of half a trace is itself noisy."""


@dataclass(frozen=True)
class MeanLine:
    """Mean time as an affine function of size, `base_ns + ns_per_byte * size_bytes`."""

    # Intercept [ns] and slope [ns/B], both at least 0.
    base_ns: float
    ns_per_byte: float
    # Bootstrap intervals, 2.5 to 97.5 %, extended to include the estimate.
    base_ns_ci95: tuple[float, float]
    ns_per_byte_ci95: tuple[float, float]
    commands: int  # Number of fitted commands
    slope_identified: (
        bool  # False if all commands have one size, so that the slope is set to 0
    )

    def mean_ns(self, size_bytes: npt.ArrayLike) -> Floats:
        """Return the mean time of commands of these sizes [ns], float64 of the same shape."""
        mean: Floats = self.base_ns + self.ns_per_byte * np.asarray(
            size_bytes, dtype=np.float64
        )
        return mean


@dataclass(frozen=True)
class FactorDistribution:
    """A parametric distribution of the factor, for comparison with the table."""

    name: str  # `lognormal` or `gamma`
    # SciPy's parameters, with location 0.
    shape: float
    scale: float
    aic: float  # Akaike's criterion on the fitted half; lower is better
    # Kolmogorov-Smirnov distance of time / line.
    ks_train: float
    ks_held_out: float


@dataclass(frozen=True)
class Score:
    """Agreement between the model's times and one half of the data."""

    part: str  # `train` or `held-out`
    commands: int  # Number of commands
    ks: float  # Largest distance between the two distribution functions
    ks_critical_5_percent: float
    """Distance that independent draws exceed once in twenty times.

    Commands are not independent, and on the fitted half the distance is too small by construction."""
    # model / data - 1.
    mean_error: float
    p50_error: float
    p90_error: float
    p99_error: float

    def poor(self) -> str | None:
        """Return a sentence about errors that are too large, or None for a good fit."""
        errors = {
            "mean": self.mean_error,
            "p50": self.p50_error,
            "p90": self.p90_error,
            "p99": self.p99_error,
        }
        off = [
            f"{name} is {100 * abs(error):.0f} % too {'high' if error > 0 else 'low'}"
            for name, error in errors.items()
            if abs(error) > POOR_ERROR[name]
        ]
        if off:
            return f"poor fit: {', '.join(off)}"
        return None


@dataclass(frozen=True)
class Concurrency:
    """Commands in flight, and the number of channels that they imply."""

    in_flight_max: int  # Largest number of commands in flight on one device
    in_flight_mean_busy: float  # Mean number while at least one was in flight
    busy_share: (
        float  # Share of time with at least one, from first dispatch to last completion
    )
    # Time [s] with n = 1, 2, … commands in flight, and completions at that level.
    level_seconds: tuple[float, ...]
    level_completions: tuple[int, ...]
    channels: float | None
    """Effective number of servers, of which min(n, channels) are busy while n commands are in flight.

    None if commands never overlapped."""
    channels_ci95: tuple[float, float] | None  # Interval of 95 %
    channels_at_bound: bool
    """True if the interval reaches the largest number in flight: no limit shows, and more may be there."""
    service_ns: float | None  # Service time for this number of channels [ns]


@dataclass(frozen=True)
class ServiceFit(Documented):
    """Result of a fit: time = line(size) × factor, with the factor drawn from `factor_table`."""

    # Trace file, `read` or `write`, `service` or `response`.
    source: str
    operation: Operation
    quantity: TimeKind
    line: MeanLine  # Mean of the first half of the commands
    isolated_line: MeanLine | None
    """Mean of all commands that found the device idle, or None if there were too few."""
    isolated_factors: tuple[float, ...] | None
    """Factor around that line, as `factor_table`."""
    factor_table: tuple[float, ...]
    """Mean of the factor in equally likely cells, ascending, with mean 1."""
    # Shares of the slowest command and of the slowest 1 % in the mean of the fitted half, which show how much
    # it depends on a few commands.
    slowest_share: float
    slowest_percent_share: float
    candidates: tuple[FactorDistribution, ...]  # Lognormal and gamma
    # Agreement with the first half (fitted) and the second half (unseen).
    train: Score
    held_out: Score
    concurrency: (
        Concurrency | None
    )  # Channels estimated from overlap, or None for responses
    zeros: int  # Times of 0, left out because they have no logarithm
    # Seed and number of resamplings for the intervals.
    seed: int
    bootstrap: int

    @property
    def drive_times(self) -> tuple[MeanLine, tuple[float, ...]]:
        """Line and factors of commands that found the device idle, or of the fitted half if too few did."""
        if self.isolated_line is None or self.isolated_factors is None:
            return self.line, self.factor_table
        return self.isolated_line, self.isolated_factors

    def summary(self) -> str:
        """Return several lines for a terminal."""
        line = self.line
        score = self.held_out
        base = [v / 1e3 for v in (line.base_ns, *line.base_ns_ci95)]
        slope = [v * 1024 for v in (line.ns_per_byte, *line.ns_per_byte_ci95)]
        listed = [
            f"{self.operation} {self.quantity} time, first {self.train.commands} of "
            f"{self.train.commands + score.commands} fitted",
            f"  mean = {base[0]:.4g} µs (95 % {base[1]:.4g} to {base[2]:.4g}) "
            f"+ {slope[0]:.4g} ns/KiB (95 % {slope[1]:.4g} to {slope[2]:.4g})",
            f"  held out: KS {score.ks:.3f} ({score.ks_critical_5_percent:.3f} by chance at 5 %), mean "
            f"{100 * score.mean_error:+.1f} %, p50 {100 * score.p50_error:+.1f} %, "
            f"p99 {100 * score.p99_error:+.1f} %",
        ]
        if self.zeros:
            total = self.zeros + self.train.commands + score.commands
            listed.append(
                f"  {self.zeros} of {total} times are 0 and left out, because the clock is too coarse: "
                "the true mean is shorter"
            )
        if poor := score.poor():
            listed.append(f"  {poor} on the half that was not fitted")
        if (
            self.concurrency
            and self.concurrency.channels
            and self.concurrency.channels_ci95
        ):
            low, high = self.concurrency.channels_ci95
            listed.append(
                f"  {self.concurrency.channels:.1f} effective channels (95 % {low:.1f} to {high:.1f})"
            )
        return "\n".join(listed)

    in_document: ClassVar = ("*", ("poor", "held_out.poor"), "provenance")

    @property
    def provenance(self) -> dict[str, str]:
        """Kind, source, rows and objective of the fit."""
        train = self.train.commands
        total = train + self.held_out.commands
        return {
            "kind": "fitted",
            "source": self.source,
            "rows": f"first {train} of {total} completed {self.operation}s by start, {self.quantity} time",
            "objective": "soft L1 of log(time / line), line and factor then scaled to the mean",
            "intervals": f"moving-block bootstrap, {self.bootstrap} resamplings, seed {self.seed}",
            "tool": f"scipy {scipy.__version__}",
        }
