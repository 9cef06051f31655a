"""Estimate how much reads and writes slow each other down, from the service times of a block trace."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from stripesim.calibration.ssd.result import Floats, Operation
from stripesim.traces import BlockTrace

COMMANDS_MIN = 30
"""Fewer commands than this have no meaningful mean."""

_COMPANIES = ("alone", "own kind", "other kind")


@dataclass(frozen=True)
class Interference:
    """Service times of one direction by the commands in flight at dispatch."""

    operation: Operation  # Direction of the commands
    company: str
    """Commands in flight on the device: `alone` (none), `own kind` (only of the same direction),
    `other kind` (at least one of the other direction)."""
    commands: int  # Number of such commands
    # Their service times [ns].
    mean_ns: float
    p50_ns: float
    slowdown: float | None
    """Mean time relative to commands of the same size that were alone, or None if there were too few."""
    slowdown_ci95: tuple[float, float] | None  # Bootstrap interval


def fit_interference(trace: BlockTrace, *, seed: int = 1) -> tuple[Interference, ...]:
    """Compare service times by the commands in flight at dispatch.

    Parameters
    ----------
    trace
        Block trace. Without device commands the result is empty.
    seed
        Seed of the bootstrap.

    Notes
    -----
    slowdown = mean of t / m(size), where m is the mean time of commands that were alone and whose size has
    the same nearest power of two. A trace shows correlation, not causes: bursts bring company and, if the
    device slows for another reason, also long times.
    """
    if trace.commands is None:
        return ()
    rows = _with_company(trace.commands)
    rng = np.random.default_rng(seed)
    interferences = []
    operations: tuple[tuple[Operation, bool], ...] = (("read", False), ("write", True))
    for operation, is_write in operations:
        own = rows.filter(pl.col("is_write") == is_write)
        alone = own.filter(pl.col("company") == 0)
        typical = alone.group_by("size_class").agg(
            typical_ns=pl.col("time_ns").mean(), known=pl.len()
        )
        ratios = own.join(
            typical.filter(pl.col("known") >= COMMANDS_MIN),
            on="size_class",
            how="inner",
        )
        for code, company in enumerate(_COMPANIES):
            mine = own.filter(pl.col("company") == code)["time_ns"].to_numpy()
            if len(mine) < COMMANDS_MIN:
                continue
            compared = ratios.filter(pl.col("company") == code)
            factor = (compared["time_ns"] / compared["typical_ns"]).to_numpy()
            slowdown = None
            interval = None
            if len(factor) >= COMMANDS_MIN:
                slowdown = float(factor.mean())
                interval = _interval(factor, rng)
            interferences.append(
                Interference(
                    operation=operation,
                    company=company,
                    commands=len(mine),
                    mean_ns=float(mine.mean()),
                    p50_ns=float(np.median(mine)),
                    slowdown=slowdown,
                    slowdown_ci95=interval,
                )
            )
    return tuple(interferences)


def times_alone(commands: pl.DataFrame, *, is_write: bool) -> tuple[Floats, Floats]:
    """Return sizes and times of the completed commands of one direction that found their device idle.

    Notes
    -----
    Another may have come later. Commands that none joined would be a selection of short ones: the longer a
    command takes, the more likely another comes meanwhile.

    Returns
    -------
    Sizes [B] and times [ns], above 0, in order of dispatch; float64, shape (commands,) each.
    """
    rows = _with_company(commands).filter(company=0, is_write=is_write)
    alone = rows.sort("dispatch_ns")
    sizes = alone["length_bytes"].to_numpy().astype(np.float64)
    return sizes, alone["time_ns"].to_numpy()


def _with_company(commands: pl.DataFrame) -> pl.DataFrame:
    """Add service time, size class and company at dispatch: 0 alone, 1 own kind, 2 other kind."""
    parts = []
    for of_device in commands.partition_by("device", maintain_order=True):
        flown = of_device.drop_nulls("dispatch_ns")
        start = flown["dispatch_ns"].to_numpy()
        # A command that never completed is in flight until the end.
        end = flown["complete_ns"].fill_null(np.iinfo(np.int64).max).to_numpy()
        is_write = flown["is_write"].to_numpy()
        flying = {}
        for write in (False, True):
            begun = np.searchsorted(
                np.sort(start[is_write == write]), start, side="left"
            )
            over = np.searchsorted(np.sort(end[is_write == write]), start, side="right")
            flying[write] = begun - over
        same = np.where(is_write, flying[True], flying[False])
        opposite = np.where(is_write, flying[False], flying[True])
        company = np.where(opposite > 0, 2, np.where(same > 0, 1, 0))
        parts.append(flown.with_columns(pl.Series("company", company)))
    time_ns = (pl.col("complete_ns") - pl.col("dispatch_ns")).cast(pl.Float64)
    classes = pl.col("length_bytes").cast(pl.Float64).log(2).round().cast(pl.Int64)
    rows = pl.concat(parts).drop_nulls("complete_ns")
    return rows.with_columns(time_ns=time_ns, size_class=classes).filter(
        pl.col("time_ns") > 0
    )


def _interval(factor: Floats, rng: np.random.Generator) -> tuple[float, float]:
    means = [float(rng.choice(factor, size=len(factor)).mean()) for _ in range(200)]
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    estimate = float(factor.mean())
    return min(low, estimate), max(high, estimate)
