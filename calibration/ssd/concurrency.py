"""Estimate the number of commands that an SSD serves in parallel from overlapping commands."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from stripesim.calibration.ssd.interference import times_alone
from stripesim.calibration.ssd.line import COMMANDS_MIN, line_through
from stripesim.calibration.ssd.result import Concurrency, Floats
from stripesim.traces import BlockTrace
from stripesim.traces.statistics import in_flight


def fit_concurrency(trace: BlockTrace) -> Concurrency:
    """Estimate the number of channels from the work done at each number of commands in flight.

    Notes
    -----
    While n commands are in flight, min(n, c) of c equal servers are busy. Over the trace their busy time is
    the work of all commands,

    sum_n min(n, c) T_n = W,

    with T_n the time with n in flight. Commands that found the device idle took their own time, the others
    take the mean of those by direction and size. This holds for any arrivals and any distribution of times.
    The interval is that of W, with the deviations of commands from their mean taken as independent.

    Where fewer than 64 commands of a direction found the device idle, as under a constant load, completions
    at each level are taken as Poisson, with rate min(n, c) / S, and c has the largest likelihood,

    log L = sum_n C_n log(min(n, c) / S) - min(n, c) T_n / S,

    with S = sum_n min(n, c) T_n / sum_n C_n at its maximum. The interval covers values for which
    2 (log L_max - log L) is less than the 95 % point of chi-squared with one degree of freedom. Times that
    vary less than exponential ones bias this estimate upwards (from 4 to about 5).

    c is searched between 1 and the largest number in flight. It is an effective number for the sizes in the
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
        work = _work(trace)
        if work:
            channels, interval = _channels_by_work(levels, seconds, work)
        else:
            channels, interval = _channels_by_rates(levels, seconds, completions)
        at_bound = bool(interval[1] >= levels[-1])
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


class _Work(NamedTuple):
    """Time that one server would need for all commands."""

    seconds: float
    deviation_s: float  #: Standard deviation


def _work(trace: BlockTrace) -> _Work | None:
    """Return the work of all completed commands, or None if too few of a direction found the device idle.

    That of commands which found it idle is their own time. The others take the mean of their size.
    """
    assert trace.commands is not None
    completed = trace.commands.drop_nulls(["dispatch_ns", "complete_ns"])
    seconds = 0.0
    variance = 0.0
    for is_write in (False, True):
        size = completed.filter(is_write=is_write)["length_bytes"].to_numpy()
        if not len(size):
            continue
        alone_size, alone_ns = times_alone(trace.commands, is_write=is_write)
        count = len(alone_size)
        if count < COMMANDS_MIN:
            return None
        alone_s = alone_ns / 1e9
        base, slope = line_through(alone_size, alone_s)
        of_alone_s = base + slope * alone_size
        others_s = float((base + slope * size).sum() - of_alone_s.sum())
        scale = float(alone_s.sum() / of_alone_s.sum())
        seconds += float(alone_s.sum()) + scale * others_s
        # The scale is uncertain, and so is the work of the others around their mean.
        residual = float((alone_s - scale * of_alone_s).var())
        of_scale = count * (others_s / float(of_alone_s.sum())) ** 2
        variance += residual * (of_scale + len(size) - count)
    return _Work(seconds, math.sqrt(variance))


def _channels_by_work(
    levels: npt.NDArray[np.int64], seconds: Floats, work: _Work
) -> tuple[float, tuple[float, float]]:
    """Return the number of servers whose busy time is the work, and its interval."""
    # Busy time is piecewise linear in the servers, with corners at whole numbers.
    longer_s = seconds.sum() - np.cumsum(seconds)
    busy_s = np.cumsum(levels * seconds) + levels * longer_s
    normal = float(scipy.stats.norm.ppf(0.975))
    possible_s = work.seconds + work.deviation_s * np.array([-normal, 0, normal])
    low, best, high = np.interp(possible_s, busy_s, levels).tolist()
    return best, (low, high)


def _channels_by_rates(
    levels: npt.NDArray[np.int64], seconds: Floats, completions: Floats
) -> tuple[float, tuple[float, float]]:
    """Return the number of servers that makes the completions at each level most likely, and its interval."""
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
    return best, (min([*inside, best]), max([*inside, best]))
