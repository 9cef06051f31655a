"""Estimate the number of commands that an SSD serves in parallel from overlapping commands."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from stripesim.traces import BlockTrace
from stripesim.traces.statistics import in_flight

Floats = npt.NDArray[np.float64]


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
    """Effective number of servers, with completions at rate min(n, channels) / service.

    None if commands never overlapped."""
    channels_ci95: tuple[float, float] | None  # Profile-likelihood interval
    channels_at_bound: bool
    """True if the estimate equals the largest number in flight, and so is only a lower bound."""
    service_ns: float | None  # Service time for this number of channels [ns]


def fit_concurrency(trace: BlockTrace) -> Concurrency:
    """Estimate the number of channels from completion rates at each number of commands in flight.

    Notes
    -----
    With n commands in flight, a device of c equal servers completes commands at rate min(n, c) / S. The C_n
    completions at level n during time T_n are taken as Poisson, so

    log L = sum_n C_n log(min(n, c) / S) - min(n, c) T_n / S,

    with S = sum_n min(n, c) T_n / sum_n C_n at its maximum. c is searched between 1 and the largest number in
    flight. The interval covers values for which 2 (log L_max - log L) is less than the 95 % point of
    chi-squared with one degree of freedom. The true interval is narrower if service times vary less than
    exponentially, and wider for bursts of similar commands. c is an effective number for the sizes in the
    trace: a shared bus makes it smaller for larger commands.
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
    """Return time [s] and completions by number in flight, from 1, and the observed time [s]."""
    assert trace.commands is not None
    totals: list[tuple[Floats, Floats]] = []
    span_s = 0.0
    for device in trace.commands["device"].unique(maintain_order=True):
        spans = trace.commands.filter(trace.commands["device"] == device).drop_nulls(
            ["dispatch_ns", "complete_ns"]
        )
        if not spans.height:
            continue
        start_ns = spans["dispatch_ns"].to_numpy()
        end_ns = spans["complete_ns"].to_numpy()
        held, ended = in_flight(start_ns, end_ns)
        totals.append((held[1:], ended[1:]))
        span_s += float(np.ptp(np.concatenate((start_ns, end_ns)))) / 1e9
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
