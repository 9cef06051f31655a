"""Fit service times of an SSD to a block trace: a line in size, a spread around it, and channels."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy

from stripesim.calibration.ssd.concurrency import fit_concurrency
from stripesim.calibration.ssd.interference import times_alone
from stripesim.calibration.ssd.line import COMMANDS_MIN, fit_line
from stripesim.calibration.ssd.result import (
    FactorDistribution,
    Floats,
    MeanLine,
    Operation,
    Score,
    ServiceFit,
    TimeKind,
)
from stripesim.models.problems import TraceError
from stripesim.traces import BlockTrace

TABLE_POINTS = 256
"""Cells of the factor table. With the calibration trace, three commands fall into each."""

# Distinct mean times of which the model's distribution consists. More are represented by so many of them.
_SIZES_MAX = 4096

KS_CRITICAL_5_PERCENT = 1.358
"""Times 1 / sqrt(n), the Kolmogorov distance that independent draws exceed once in twenty times."""


@dataclass(frozen=True)
class TimedCommands:
    """Times to fit, ordered by start."""

    # Shape (commands,), float64 [ns], [ns], [B].
    start_ns: Floats
    end_ns: Floats
    size_bytes: Floats
    zeros: int  # Times of 0, left out

    @property
    def times_ns(self) -> Floats:
        """Durations [ns]."""
        return self.end_ns - self.start_ns


def fit_times(
    trace: BlockTrace,
    *,
    operation: Operation = "read",
    quantity: TimeKind = "service",
    seed: int = 1,
    bootstrap: int = 200,
) -> ServiceFit:
    """Fit the recorded times of one direction.

    Parameters
    ----------
    trace
        Block trace.
    operation
        ``read`` or ``write``.
    quantity
        ``service``: from dispatch to completion of a device command, including any wait for other commands
        inside the device, which `isolated_line` and `concurrency` separate. ``response``: from issue to
        completion of a request, including the host's queue. The MSR format records only responses, and they
        are never used as service times unless requested.
    seed
        Seed of the bootstrap.
    bootstrap
        Number of resamplings, at least 20.

    Returns
    -------
    ServiceFit
        Line, factor table, intervals and scores.

    Raises
    ------
    TraceError
        If the trace has fewer than 64 such times, or `bootstrap` is too small.

    Notes
    -----
    The model is T = (b + a·size) · F, with F independent of size and E[F] = 1. The direction of the line is
    fitted robustly (soft L1 of log residuals), because a single 13 ms read among reads of 0.14 ms would turn
    a least-squares line. Line and F are then scaled such that the model's mean is that of the data. The table
    holds the mean of F in equally likely cells, so its mean is exact, but the spread within the last cell
    (0.4 %) is lost.

    The first half of the commands, by start, is fitted. The second half is only scored. Intervals come from a
    moving-block bootstrap, since neighbouring commands of a trace are similar.
    """
    if bootstrap < 20:
        raise TraceError(f"bootstrap: got {bootstrap}, wanted at least 20")
    sample = sample_of(trace, operation, quantity)
    half = len(sample.start_ns) // 2
    size = sample.size_bytes
    times = sample.times_ns
    line = fit_line(size[:half], times[:half], seed, bootstrap)
    factor = times[:half] / line.mean_ns(size[:half])
    table = factor_table(factor)
    slowest = np.sort(times[:half])[-max(1, half // 100) :]
    concurrency = None
    isolated_line, isolated_factors = None, None
    if quantity == "service" and trace.commands is not None:
        concurrency = fit_concurrency(trace)
        alone = times_alone(trace.commands, is_write=operation == "write")
        if len(alone[0]) >= COMMANDS_MIN:
            isolated_line, isolated_factors = _isolated(*alone, seed, bootstrap)
    return ServiceFit(
        source=Path(trace.source).name,
        operation=operation,
        quantity=quantity,
        line=line,
        isolated_line=isolated_line,
        isolated_factors=isolated_factors,
        factor_table=tuple(table.tolist()),
        slowest_share=float(slowest[-1] / times[:half].sum()),
        slowest_percent_share=float(slowest.sum() / times[:half].sum()),
        candidates=_candidates(factor, times[half:] / line.mean_ns(size[half:])),
        train=_score("train", line, table, size[:half], times[:half]),
        held_out=_score("held-out", line, table, size[half:], times[half:]),
        concurrency=concurrency,
        zeros=sample.zeros,
        seed=seed,
        bootstrap=bootstrap,
    )


def _isolated(
    size: Floats, times: Floats, seed: int, bootstrap: int
) -> tuple[MeanLine, tuple[float, ...]]:
    """Return line and factors of commands that found the device idle."""
    line = fit_line(size, times, seed, bootstrap)
    return line, tuple(factor_table(times / line.mean_ns(size)).tolist())


def sample_of(
    trace: BlockTrace, operation: Operation, quantity: TimeKind
) -> TimedCommands:
    """Return the completed commands (service) or requests (response) of one direction with non-zero times.

    Raises
    ------
    TraceError
        If there are fewer than 64.
    """
    start = "dispatch_ns" if quantity == "service" else "issue_ns"
    rows = trace.commands if quantity == "service" else trace.requests
    count = 0
    zeros = 0
    if rows is not None:
        rows = rows.filter(rows["is_write"] == (operation == "write")).drop_nulls(
            [start, "complete_ns"]
        )
        # The clock of a trace may be too coarse for a cached read, and a time of 0 has no logarithm.
        is_timed = rows["complete_ns"] > rows[start]
        zeros = int((~is_timed).sum())
        rows = rows.filter(is_timed)
        count = rows.height
    if rows is None or count < COMMANDS_MIN:
        if trace.commands is None:
            hint = " (the format records no service times, only responses)"
        else:
            hint = ""
        if zeros:
            hint += f" and {zeros} with a time of 0"
        raise TraceError(
            f"{trace.source}: got {count} completed {operation}s with a {quantity} time{hint}, "
            f"wanted at least {COMMANDS_MIN}"
        )
    start_ns, end_ns, size_bytes = (
        rows[name].to_numpy().astype(np.float64)
        for name in (start, "complete_ns", "length_bytes")
    )
    return TimedCommands(start_ns, end_ns, size_bytes, zeros)


def factor_table(factor: Floats, points: int = TABLE_POINTS) -> Floats:
    """Return the mean of a positive sample in each of `points` equally likely cells, scaled to mean 1.

    Notes
    -----
    With L(p) the integral of the empirical quantile function from 0 to p, cell j holds
    points·(L((j+1)/points) - L(j/points)). Quantiles at cell centres would drop the largest values and with
    them part of the mean.

    Examples
    --------
    >>> factor_table(np.array([1.0, 1.0, 2.0, 4.0]), 2).tolist()
    [0.5, 1.5]
    """
    ordered = np.sort(factor)
    integral = np.concatenate(([0.0], np.cumsum(ordered))) / len(ordered)
    at = np.interp(
        np.linspace(0, 1, points + 1), np.linspace(0, 1, len(ordered) + 1), integral
    )
    # Rounding may put equal neighbours out of order by one unit in the last place.
    cells: Floats = np.maximum.accumulate(np.diff(at) * points)
    scaled: Floats = cells / cells.mean()
    return scaled


@dataclass(frozen=True)
class ModelTimes:
    """Distribution of the model's times at the sizes of a sample."""

    times_ns: Floats  #: Possible times [ns], ascending, shape (times,)
    share_at_most: Floats  #: Share of commands that take at most each of them, the last 1, shape (times,)
    mean_ns: float

    def quantile_ns(self, levels: npt.ArrayLike) -> Floats:
        """Return the times that these shares of commands do not exceed [ns], float64 of the same shape."""
        at = np.searchsorted(self.share_at_most, np.asarray(levels) - 1e-12)
        quantiles: Floats = self.times_ns[np.minimum(at, len(self.times_ns) - 1)]
        return quantiles

    def distance(self, times_ns: Floats) -> float:
        """Return the Kolmogorov-Smirnov distance from a sample of times [ns]."""
        ordered = np.sort(times_ns)
        at = np.concatenate((ordered, self.times_ns))
        of_sample = np.searchsorted(ordered, at, side="right") / len(ordered)
        shares = np.concatenate(([0.0], self.share_at_most))
        of_model = shares[np.searchsorted(self.times_ns, at, side="right")]
        return float(np.abs(of_sample - of_model).max())


def model_times(line: MeanLine, table: Floats, size_bytes: Floats) -> ModelTimes:
    """Return the distribution of the model's times at the sizes of a sample.

    Parameters
    ----------
    line
        Mean time by size.
    table
        Equally likely factors of mean 1, shape (cells,).
    size_bytes
        Sizes [B], shape (n,).
    """
    means_ns, counts = np.unique(line.mean_ns(size_bytes), return_counts=True)
    if len(means_ns) > _SIZES_MAX:
        at = (np.arange(_SIZES_MAX) + 0.5) / _SIZES_MAX
        means_ns = np.quantile(np.repeat(means_ns, counts), at)
        counts = np.ones(_SIZES_MAX, dtype=np.int64)
    times_ns = np.outer(means_ns, table).ravel()
    order = np.argsort(times_ns)
    shares = np.cumsum(np.repeat(counts, len(table))[order])
    return ModelTimes(
        times_ns[order],
        shares / shares[-1],
        float(np.average(means_ns, weights=counts) * np.mean(table)),
    )


def _candidates(train: Floats, held_out: Floats) -> tuple[FactorDistribution, ...]:
    candidates = []
    for name, family in (
        ("lognormal", scipy.stats.lognorm),
        ("gamma", scipy.stats.gamma),
    ):
        shape, _, scale = family.fit(train, floc=0)
        fitted = family(shape, scale=scale)
        aic = float(2 * 2 - 2 * fitted.logpdf(train).sum())
        distances = [
            float(scipy.stats.kstest(part, fitted.cdf).statistic)
            for part in (train, held_out)
        ]
        candidates.append(
            FactorDistribution(name, float(shape), float(scale), aic, *distances)
        )
    return tuple(candidates)


def _score(
    part: str, line: MeanLine, table: Floats, size: Floats, times: Floats
) -> Score:
    model = model_times(line, table, size)
    levels = [0.5, 0.9, 0.99]
    errors = (model.quantile_ns(levels) / np.quantile(times, levels) - 1).tolist()
    critical = float(KS_CRITICAL_5_PERCENT / np.sqrt(len(times)))
    return Score(
        part,
        len(times),
        model.distance(times),
        critical,
        float(model.mean_ns / times.mean() - 1),
        *errors,
    )
