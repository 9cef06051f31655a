"""Estimate from overlapping commands how many an SSD serves in parallel."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from stripesim.traces import BlockTrace

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Concurrency:
    """Commands in flight, and the channels they imply."""

    in_flight_max: int  # Most commands in flight on one device
    in_flight_mean_busy: float  # Mean number while there was any
    busy_share: float  # Share of the time, first dispatch to last completion, with any
    # Time [s] spent with n = 1, 2, … commands in flight and completions seen there.
    level_seconds: tuple[float, ...]
    level_completions: tuple[int, ...]
    channels: float | None
    """Effective number of servers: completions come at rate min(n, channels) / service. None when commands
    never overlapped."""
    channels_ci95: tuple[float, float] | None  # Profile-likelihood interval
    channels_at_bound: bool
    """True when the estimate is the most commands ever in flight, so only a lower bound."""
    service_ns: float | None  # Service time that goes with `channels` [ns]


def fit_concurrency(trace: BlockTrace) -> Concurrency:
    """Estimate channels from the rate of completions at each number of commands in flight.

    With n in flight a device of c equal servers completes commands at rate min(n, c) / S. Completions C_n at
    level n in time T_n are taken as Poisson, so log L = sum_n C_n log(min(n, c) / S) - min(n, c) T_n / S,
    with S = sum_n min(n, c) T_n / sum_n C_n at its maximum; c is found on [1, most in flight]. The interval
    is where 2 (log L_max - log L) stays below chi-squared's 95 % point (one degree of freedom). Service times
    that vary less than exponentially make the true interval narrower, bursts of like commands wider. c is an
    effective number for the sizes in the trace: a shared bus makes it smaller for larger commands.
    """
    seconds, completions, span_s = _levels(trace)
    levels = np.arange(1, len(seconds) + 1)
    busy_s = float(seconds.sum())
    channels: float | None = None
    interval: tuple[float, float] | None = None
    service_ns: float | None = None
    at_bound = False
    if len(levels) > 1 and completions.sum() > 0:
        channels, interval, at_bound = _channels(levels, seconds, completions)
        served = np.minimum(levels, channels) * seconds
        service_ns = float(served.sum() / completions.sum() * 1e9)
    return Concurrency(
        in_flight_max=len(levels),
        in_flight_mean_busy=float((levels * seconds).sum() / busy_s) if busy_s else 0.0,
        busy_share=busy_s / span_s if span_s else 0.0,
        level_seconds=tuple(seconds.tolist()),
        level_completions=tuple(int(count) for count in completions),
        channels=channels,
        channels_ci95=interval,
        channels_at_bound=at_bound,
        service_ns=service_ns,
    )


def _levels(trace: BlockTrace) -> tuple[Floats, Floats, float]:
    """Return seconds and completions by number in flight (from 1), and the time observed [s]."""
    assert trace.commands is not None
    totals: list[tuple[Floats, Floats]] = []
    span_s = 0.0
    for device in trace.commands["device"].unique(maintain_order=True):
        spans = trace.commands.filter(trace.commands["device"] == device).drop_nulls(
            ["dispatch_ns", "complete_ns"]
        )
        if not spans.height:
            continue
        times = np.concatenate(
            (spans["complete_ns"].to_numpy(), spans["dispatch_ns"].to_numpy())
        )
        steps = np.repeat([-1, 1], spans.height)
        # A completion at the instant of a dispatch comes first, except for a command of no length.
        order = np.lexsort((steps, times))
        times = times[order]
        steps = steps[order]
        level = np.maximum(np.cumsum(steps), 0)
        before = np.concatenate(([0], level[:-1]))
        length = int(level.max()) + 1
        gaps = np.concatenate(([0], np.diff(times))) / 1e9
        held: Floats = np.bincount(before, weights=gaps, minlength=length).astype(
            np.float64
        )
        ended: Floats = np.bincount(before[steps < 0], minlength=length).astype(
            np.float64
        )
        totals.append((held[1:], ended[1:]))
        span_s += float(times[-1] - times[0]) / 1e9
    length = max((len(held) for held, _ in totals), default=0)
    seconds = np.zeros(length)
    completions = np.zeros(length)
    for held, ended in totals:
        seconds[: len(held)] += held
        completions[: len(ended)] += ended
    return seconds, completions, span_s


def _channels(
    levels: npt.NDArray[np.int64], seconds: Floats, completions: Floats
) -> tuple[float, tuple[float, float], bool]:
    top = float(levels[-1])

    def loss(c: float) -> float:
        servers = np.minimum(levels, c)
        service_s = (servers * seconds).sum() / completions.sum()
        # The term linear in time is constant once the service time is at its maximum.
        return -float(scipy.special.xlogy(completions, servers / service_s).sum())

    grid = np.linspace(1.0, top, 64 * len(levels))
    best = float(grid[int(np.argmin([loss(c) for c in grid]))])
    step = grid[1] - grid[0]
    minimum = scipy.optimize.minimize_scalar(
        loss,
        bounds=(max(1.0, best - step), min(top, best + step)),
        method="bounded",
        options={"xatol": 1e-4},
    )
    best = min((best, float(minimum.x)), key=loss)
    allowed = loss(best) + float(scipy.stats.chi2.ppf(0.95, 1)) / 2
    inside = [float(c) for c in grid if loss(c) <= allowed]
    interval = (min([*inside, best]), max([*inside, best]))
    return best, interval, bool(top - best < step)
