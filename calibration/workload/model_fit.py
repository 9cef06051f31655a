"""Fit a workload model (arrivals, sizes, offsets) to a block trace, and score its synthetic traces."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from stripesim.calibration.workload.model import (
    Floats,
    Ints,
    WorkloadModel,
    plain_gaps,
    synthesise,
)
from stripesim.calibration.workload.score import WorkloadScore, score_workload
from stripesim.models.documents import Documented
from stripesim.models.problems import TraceError
from stripesim.traces import BlockTrace
from stripesim.traces.locality import first_touch, stack_distances
from stripesim.traces.statistics import follows_before

REQUESTS_MIN = 200
"""With fewer requests, halves, chains and quantiles are meaningless."""

GAP_CLASSES = 12
"""Classes of gaps in the chain: enough to distinguish gaps within a burst, at its end, and idle times."""

GAP_CELLS = 512
"""Cells of the table of gaps."""

RATE_EPOCHS = 64
"""Epochs with equal numbers of requests, whose rates show slow changes."""

REGIMES = 8
"""Groups of epochs, from the idlest to the busiest eighth, each with its own gaps."""

SIZES_KEPT = 24
"""Pairs of operation and size with separate states. Rarer pairs share one state per operation."""

REGIONS_MAX = 1024
WEIGHTS_MAX = 1 << 18
"""Regions of equal length per device, for offsets touched the first time; and the limit for all devices."""


@dataclass(frozen=True)
class WorkloadFit(Documented):
    """A model fitted to the first half of a trace, with scores of a synthetic trace."""

    model: WorkloadModel  # The model
    scores: tuple[WorkloadScore, ...]  # One per characteristic
    source: str  # Name of the trace
    seed: int  # Seed of the scored synthetic trace

    in_document: ClassVar = (
        "source",
        ("requests_fitted", "model.requests"),
        ("states", "model.states_count"),
        ("regimes", "model.regimes_count"),
        ("rate_memory", "model.rate_memory"),
        ("reuse_probability", "model.reuse_probability"),
        "seed",
        "scores",
    )

    def summary(self) -> str:
        """Return a table for a terminal."""
        first = f"workload model, fitted to the first {self.model.requests} requests"
        lines = [f"{first} (synthetic seed {self.seed})"]
        lines.append(f"  {'':<26} {'fitted':>11} {'synthetic':>11} {'held out':>11}")
        for score in self.scores:
            mark = "" if score.passes else "  outside the tolerance"
            numbers = " ".join(
                f"{value:>11.4g}"
                for value in (score.fitted, score.synthetic, score.held_out)
            )
            lines.append(f"  {score.name:<26} {numbers}{mark}")
        outside = sum(not score.passes for score in self.scores)
        if outside:
            lines.append(
                f"  poor fit: {outside} of {len(self.scores)} outside the tolerance"
            )
        return "\n".join(lines)


def fit_workload(trace: BlockTrace, *, seed: int = 1) -> WorkloadFit:
    """Fit a model to the first half of a trace, and score a synthetic trace on both halves.

    Parameters
    ----------
    trace
        Block trace.
    seed
        Seed of the synthetic trace.

    Raises
    ------
    TraceError
        If the trace has fewer than 400 requests, or no usable times.
    """
    half = len(trace) // 2
    if half < REQUESTS_MIN:
        raise TraceError(
            f"{trace.source}: got {len(trace)} requests, wanted at least {2 * REQUESTS_MIN}"
        )
    first = _part(trace, 0, half)
    rest = _part(trace, half, len(trace) - half)
    model = model_of(first)
    synthetic = synthesise(model, half, seed)
    return WorkloadFit(
        model, score_workload(first, rest, synthetic), trace.source, seed
    )


def model_of(trace: BlockTrace) -> WorkloadModel:
    """Fit a workload model to a whole trace.

    Raises
    ------
    TraceError
        If the trace has fewer than 200 requests, or all arrive at one time.

    Notes
    -----
    Arrivals: epochs with equal numbers of requests are grouped into regimes by rate, and follow each other in
    random order with the autocorrelation of the recorded rates. Within a regime, gaps follow a Markov chain
    over equally frequent classes, with an empirical distribution in each class. If rates vary no more than
    one such chain explains, there is only one regime.

    Operations and sizes: a Markov chain over (operation, size, follows). Offsets: a request that does not
    follow the previous one starts at an earlier start, by LRU stack depth, or at a new one, by region.

    References
    ----------
    Ganger: Generating representative synthetic workloads, CMG 1995 (limits of such models); Mattson et al.:
    Evaluation techniques for storage hierarchies, IBM Systems Journal 1970 (stack distances).
    """
    requests = trace.requests
    issue = requests["issue_ns"].to_numpy()
    if len(issue) < REQUESTS_MIN:
        raise TraceError(
            f"{trace.source}: got {len(issue)} requests, wanted at least {REQUESTS_MIN}"
        )
    if issue[-1] == issue[0]:
        raise TraceError(
            f"{trace.source}: got {len(issue)} requests at one time, wanted arrival times: "
            "this trace has none, or its clock is too coarse"
        )
    follows = follows_before(requests).to_numpy()
    states, is_write, state_follows, sizes = _states(requests, follows)
    return WorkloadModel(
        requests=len(issue),
        **_arrivals(issue),
        state_is_write=is_write,
        state_follows=state_follows,
        state_sizes_bytes=sizes,
        state_chain=_chain(states, len(sizes)),
        **_places(requests, follows),
    )


def _part(trace: BlockTrace, start: int, count: int) -> BlockTrace:
    rows = trace.requests.slice(start, count)
    zero = int(rows["issue_ns"][0])
    return replace(
        trace, requests=rows.with_columns(pl.col("issue_ns") - zero), commands=None
    )


def _arrivals(issue: Ints) -> dict[str, Any]:
    gaps = np.diff(issue).astype(np.float64)
    epochs = min(RATE_EPOCHS, max(1, len(issue) // 64))
    rate = _log_rates(gaps, epochs)
    regimes = REGIMES if _changes_slowly(rate, gaps) else 1
    rank = np.argsort(np.argsort(rate, kind="stable"), kind="stable")
    regime = (rank * regimes // epochs)[np.arange(len(gaps)) * epochs // len(gaps)]
    parts = [_gap_chain(gaps[regime == index]) for index in range(regimes)]
    if regimes > 1:
        memory = float(np.corrcoef(rank[1:], rank[:-1])[0, 1])
    else:
        memory = 0.0
    return {
        "gap_tables_ns": tuple(table for table, _ in parts),
        "gap_chains": tuple(chain for _, chain in parts),
        "rate_memory": min(0.99, max(0.0, memory)),
        "epoch_requests": len(gaps) / epochs,
    }


def _changes_slowly(rate: Floats, gaps: Floats) -> bool:
    """Return True if the rates of epochs vary at least twice as much as one chain of gaps explains."""
    if len(rate) < REGIMES:
        return False
    own = _log_rates(
        plain_gaps(*_gap_chain(gaps), 4 * len(gaps), np.random.default_rng(0)),
        4 * len(rate),
    )
    return float(rate.var()) > 2 * float(own.var())


def _log_rates(gaps: Floats, epochs: int) -> Floats:
    """Return the logarithm of each epoch's rate. Epochs have equal numbers of requests."""
    means = np.array([part.mean() for part in np.array_split(gaps, epochs)])
    # All requests of an epoch may arrive at one time.
    out: Floats = -np.log(np.maximum(means, gaps.mean() * 1e-6) / gaps.mean())
    return out


def _gap_chain(gaps: Floats) -> tuple[Floats, Floats]:
    cells = np.array_split(np.sort(gaps), min(GAP_CELLS, len(gaps)))
    table = np.array([cell.mean() for cell in cells])
    # Break ties by order, so that all classes are equally frequent.
    rank = np.argsort(np.argsort(gaps, kind="stable"), kind="stable")
    return table, _chain(
        (rank * GAP_CLASSES // len(gaps)).astype(np.int64), GAP_CLASSES
    )


def _states(
    requests: pl.DataFrame, follows: npt.NDArray[np.bool_]
) -> tuple[Ints, npt.NDArray[np.bool_], npt.NDArray[np.bool_], tuple[Ints, ...]]:
    rows = requests.select("is_write", "length_bytes").with_columns(
        pl.Series("follows", follows)
    )
    often = rows.group_by("is_write", "length_bytes").len()
    often = often.sort(
        "len", "length_bytes", "is_write", descending=[True, False, False]
    ).head(SIZES_KEPT)
    kept = rows.join(
        often, on=["is_write", "length_bytes"], how="left", maintain_order="left"
    )
    label = kept.with_columns(
        pl.when(pl.col("len").is_not_null())
        .then("length_bytes")
        .otherwise(0)
        .alias("size_class")
    )
    states = label.select(
        pl.struct("is_write", "size_class", "follows").rank("dense").alias("state")
    )
    state = states["state"].to_numpy().astype(np.int64) - 1
    is_write = rows["is_write"].to_numpy()
    length = rows["length_bytes"].to_numpy()
    members = [np.flatnonzero(state == index) for index in range(int(state.max()) + 1)]
    firsts = [int(mine[0]) for mine in members]
    return (
        state,
        is_write[firsts],
        follows[firsts],
        tuple(length[mine] for mine in members),
    )


def _chain(states: Ints, count: int) -> Floats:
    """Count transitions. The last state is followed by the first, so that every state has a successor."""
    flat = np.bincount(states * count + np.roll(states, -1), minlength=count * count)
    table = flat.reshape(count, count).astype(np.float64)
    total = table.sum(axis=1, keepdims=True)
    out: Floats = np.divide(
        table, total, out=np.full_like(table, 1 / count), where=total > 0
    )
    return out


def _places(requests: pl.DataFrame, follows: npt.NDArray[np.bool_]) -> dict[str, Any]:
    names = sorted(requests["device"].unique().to_list())
    codes = pl.DataFrame({"device": names, "code": np.arange(len(names))})
    device = requests.join(codes, on="device", how="left", maintain_order="left")[
        "code"
    ].to_numpy()
    offset = requests["offset_bytes"].to_numpy()
    depths = np.full(len(offset), -1, dtype=np.int64)
    jumps = ~follows
    for code in range(len(names)):
        mine = np.flatnonzero(device == code)
        starts, number = np.unique(offset[mine], return_inverse=True)
        depths[mine] = stack_distances(number, len(starts))
    again = jumps & (depths >= 0)
    fresh = jumps & (depths < 0)
    low = np.zeros(len(names), dtype=np.int64)
    width = np.ones(len(names), dtype=np.int64)
    regions = max(1, min(REGIONS_MAX, WEIGHTS_MAX // len(names)))
    weights = np.zeros((len(names), regions))
    grain = int(np.gcd.reduce(offset)) or 1
    for code in range(len(names)):
        mine = offset[device == code]
        low[code] = mine.min()
        width[code] = max(
            grain, -(-(int(mine.max()) - int(mine.min()) + grain) // regions)
        )
        new = offset[(device == code) & fresh]
        weights[code] = np.bincount((new - low[code]) // width[code], minlength=regions)
    touched = first_touch(requests)
    return {
        "overlap_probability": float((~touched & fresh).sum() / max(1, fresh.sum())),
        "reuse_probability": float(again.sum() / max(1, jumps.sum())),
        "reuse_depths": tuple(
            depths[again & (device == code)] for code in range(len(names))
        ),
        "device_names": tuple(names),
        "follower_shares": _shares(device[follows], len(names)),
        "reuse_shares": _shares(device[again], len(names)),
        "region_weights": weights / weights.sum(),
        "region_low_bytes": low,
        "region_bytes": width,
        "grain_bytes": grain,
    }


def _shares(device: Ints, devices: int) -> Floats:
    counts = np.bincount(device, minlength=devices)
    out: Floats = counts / max(1, counts.sum())
    return out
