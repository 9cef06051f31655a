"""Define a workload model learnt from a block trace, and draw new traces from it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

from stripesim.models.jit import compiled, inner
from stripesim.models.problems import TraceError
from stripesim.traces import REQUEST_SCHEMA, BlockTrace
from stripesim.traces.locality import BLOCK_BYTES

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TRIES = 8
"""Attempts to place a first touch that must not overlap previously touched data."""


@dataclass(frozen=True)
class WorkloadModel:
    """Parameters learnt from a trace.

    Notes
    -----
    Assumptions: gaps do not depend on requests. Reuse does not depend on the operation, nor does the device
    of a request that does not follow depend on operation and size. A first touch is uniformly distributed in
    its region. The length of a request that returns to an offset is drawn again. Distances between starts
    are therefore not kept beyond the region, and if a trace rewrites the same extents, the synthetic trace
    touches more data.
    """

    requests: int  # Number of fitted requests
    gap_tables_ns: tuple[Floats, ...]
    """Per regime, idlest first: mean gap in equally likely cells [ns], ascending, shape (cells,)."""
    gap_chains: tuple[Floats, ...]
    """Per regime: transition matrix between classes of gaps, float64 of shape (classes, classes)."""
    rate_memory: float  # Correlation of the rates of successive epochs
    epoch_requests: float  # Requests per epoch
    # Operation, and whether a request starts where the last one on its device ended; bool of shape (states,).
    state_is_write: npt.NDArray[np.bool_]
    state_follows: npt.NDArray[np.bool_]
    state_sizes_bytes: tuple[
        Ints, ...
    ]  # Sizes that occur in each state, one entry per occurrence [B]
    state_chain: Floats  # Transition matrix between states of successive requests, shape (states, states)
    reuse_probability: float
    """Probability that a request that does not follow starts where an earlier one did."""
    reuse_depths: tuple[Ints, ...]
    """Per device: LRU stack depths of those requests, in distinct starts on the device; shape (reuses,)."""
    overlap_probability: float
    """Probability that a new start overlaps previously touched data."""
    device_names: tuple[str, ...]  # Names of the devices
    # Shares of devices in requests that follow, and in those that start again, shape (devices,).
    # The sum is 1, or 0 without such requests.
    follower_shares: Floats
    reuse_shares: Floats
    region_weights: (
        Floats  # Distribution of new starts, shape (devices, regions), sum 1
    )
    # Start of each device's range, and length of a region [B], int64 of shape (devices,).
    region_low_bytes: Ints
    region_bytes: Ints
    grain_bytes: int  # Unit of all starts [B]

    @property
    def states_count(self) -> int:
        """Number of states."""
        return len(self.state_is_write)

    @property
    def regimes_count(self) -> int:
        """Number of regimes."""
        return len(self.gap_tables_ns)


def synthesise(model: WorkloadModel, n: int, seed: int) -> BlockTrace:
    """Draw a synthetic trace from a model.

    Parameters
    ----------
    model
        Fitted model.
    n
        Number of requests, at least 1.
    seed
        Seed of all draws.

    Raises
    ------
    TraceError
        If `n` is less than 1.
    """
    if n < 1:
        raise TraceError(f"n: got {n}, wanted at least 1")
    rng = np.random.default_rng(seed)
    issue = _synthetic_arrivals(model, n, rng)
    state = _walk(np.cumsum(model.state_chain, axis=1), n, rng.random(n))
    length = np.empty(n, dtype=np.int64)
    for index, sizes in enumerate(model.state_sizes_bytes):
        mine = np.flatnonzero(state == index)
        length[mine] = rng.choice(sizes, size=len(mine))
    device, offset = _synthetic_places(model, model.state_follows[state], length, rng)
    columns = {
        "issue_ns": issue,
        "dispatch_ns": pl.Series([None] * n, dtype=pl.Int64),
        "complete_ns": pl.Series([None] * n, dtype=pl.Int64),
        "device": np.array(model.device_names, dtype=object)[device].tolist(),
        "offset_bytes": offset,
        "length_bytes": length,
        "is_write": model.state_is_write[state],
    }
    return BlockTrace(
        pl.DataFrame(columns, schema=REQUEST_SCHEMA),
        None,
        "synthetic",
        f"synthetic seed {seed}",
    )


def plain_gaps(
    table: Floats, chain: Floats, n: int, rng: np.random.Generator
) -> Floats:
    """Draw `n` gaps [ns] from a chain: a class, and in it a cell of the table (as in `WorkloadModel`)."""
    classes = _walk(np.cumsum(chain, axis=1), n, rng.random(n))
    at = (classes + rng.random(n)) / len(chain) * len(table)
    out: Floats = table[np.minimum(at.astype(np.int64), len(table) - 1)]
    return out


def _synthetic_arrivals(model: WorkloadModel, n: int, rng: np.random.Generator) -> Ints:
    regimes = len(model.gap_tables_ns)
    epoch = (np.arange(n) / model.epoch_requests).astype(np.int64)
    epochs = int(epoch[-1]) + 1
    noise = rng.normal(size=epochs)
    fresh = np.sqrt(1 - model.rate_memory**2)
    memory = model.rate_memory
    later = scipy.signal.lfilter(
        [fresh], [1, -memory], noise[1:], zi=[memory * noise[0]]
    )[0]
    level = np.concatenate((noise[:1], later))
    # Use ranks, so that each regime has its share of epochs and the mean rate does not depend on few draws.
    regime = np.argsort(np.argsort(level)) * regimes // epochs
    gaps = np.empty(n)
    for index in range(regimes):
        mine = np.flatnonzero(regime[epoch] == index)
        gaps[mine] = plain_gaps(
            model.gap_tables_ns[index], model.gap_chains[index], len(mine), rng
        )
    issue = np.cumsum(gaps)
    whole: Ints = np.rint(issue - issue[0]).astype(np.int64)
    return whole


@compiled
def _walk(cumulative: Floats, n: int, draws: Floats) -> Ints:
    """Walk a Markov chain from its first state."""
    out = np.empty(n, np.int64)
    state = np.int64(0)
    last = cumulative.shape[1] - 1
    for index in range(n):
        state = min(
            np.searchsorted(cumulative[state], draws[index], side="right"), last
        )
        out[index] = state
    return out


def _synthetic_places(
    model: WorkloadModel,
    follows: npt.NDArray[np.bool_],
    length: Ints,
    rng: np.random.Generator,
) -> tuple[Ints, Ints]:
    n = len(length)
    again = ~follows & (rng.random(n) < model.reuse_probability)
    new = ~follows & ~again
    new_shares = model.region_weights.sum(axis=1)
    device = np.zeros(n, dtype=np.int64)
    for mine, shares in (
        (follows, model.follower_shares),
        (again, model.reuse_shares),
        (new, new_shares),
    ):
        draws = np.searchsorted(np.cumsum(shares), rng.random(int(mine.sum())))
        device[mine] = np.minimum(draws, len(shares) - 1)
    offset = np.empty(n, dtype=np.int64)
    ends = np.cumsum(np.bincount(device, minlength=len(new_shares)))
    by_device = np.split(np.argsort(device, kind="stable"), ends[:-1])
    for index, rows in enumerate(by_device):
        drawn = _draws(model, index, follows[rows], again[rows], rng)
        offset[rows] = _place(drawn, length[rows])
    return device, offset


def _draws(
    model: WorkloadModel,
    device: int,
    follows: npt.NDArray[np.bool_],
    again: npt.NDArray[np.bool_],
    rng: np.random.Generator,
) -> "_Draws":
    """Draw how the requests on one device are placed."""
    n = len(follows)
    depth = np.zeros(n, dtype=np.int64)
    if len(model.reuse_depths[device]):
        depth = rng.choice(model.reuse_depths[device], size=n)
    weights = model.region_weights[device]
    region = rng.choice(len(weights), size=(TRIES, n), p=weights / weights.sum())
    width = model.region_bytes[device]
    within = (rng.random((TRIES, n)) * width).astype(np.int64)
    fresh = model.region_low_bytes[device] + region * width + within
    fresh = (fresh - fresh % model.grain_bytes).astype(np.int64)
    clear = rng.random(n) >= model.overlap_probability
    return _Draws(follows, again, depth, clear, fresh)


class _Draws(NamedTuple):
    """Draws for each request on a device: how it is placed, and where if it is placed in that way.

    Attributes
    ----------
    follows
        True if it starts at the end of the last request.
    again, depth
        True if it starts where an earlier request did, and the number of distinct starts used since.
    clear
        True if it must not overlap earlier requests.
    fresh
        Offsets [B] to try in turn, shape (`TRIES`, requests).
    """

    follows: npt.NDArray[np.bool_]
    again: npt.NDArray[np.bool_]
    depth: Ints
    clear: npt.NDArray[np.bool_]
    fresh: Ints


@inner
def _count_use(tree: Ints, start: int, change: int) -> None:
    """Enter a start into the Fenwick tree of last uses (change 1), or remove it (−1)."""
    at = start + 1
    while at < len(tree):
        tree[at] += change
        at += at & -at


@inner
def _start_of_rank(tree: Ints, rank: int) -> int:
    """Return the start that has this rank among the last uses, 1 for the oldest."""
    size = len(tree) - 1
    at = 0
    step = size
    while step > 0:
        if at + step <= size and tree[at + step] < rank:
            at += step
            rank -= tree[at]
        step //= 2
    return at


@inner
def _fresh_attempt(drawn: _Draws, now: int, length: int, touched: set[np.int64]) -> int:
    """Return the number of the first drawn place that touches no used block, or of the last place."""
    attempt = 0
    while drawn.clear[now] and attempt < len(drawn.fresh) - 1:
        first = drawn.fresh[attempt, now] // BLOCK_BYTES
        last = (drawn.fresh[attempt, now] + length - 1) // BLOCK_BYTES
        if first not in touched and last not in touched:
            break
        attempt += 1
    return attempt


@compiled
def _place(drawn: _Draws, length: Ints) -> Ints:
    """Place each request on a device in turn. A Fenwick tree of last uses finds the start at a stack depth.

    The first request is a new start, whatever was drawn.
    """
    n = len(length)
    offset = np.empty(n, np.int64)
    size = 1
    while size < n + 1:
        size *= 2
    tree = np.zeros(size + 1, np.int64)
    last_use = {np.int64(-1): np.int64(-1)}
    live = 0
    touched = {np.int64(-1)}
    end = np.int64(0)
    for now in range(n):
        if drawn.follows[now] and now > 0:
            start = end
        elif drawn.again[now] and live > 0:
            # The start with rank `live - depth` from the oldest, or the oldest one if the stack is too short.
            rank = max(np.int64(1), live - drawn.depth[now])
            start = offset[_start_of_rank(tree, rank)]
        else:
            attempt = _fresh_attempt(drawn, now, length[now], touched)
            start = drawn.fresh[attempt, now]
        if start in last_use:
            _count_use(tree, int(last_use[start]), -1)
        else:
            live += 1
        last_use[start] = np.int64(now)
        _count_use(tree, now, 1)
        offset[now] = start
        end = start + length[now]
        for block in range(start // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1):
            touched.add(np.int64(block))
    return offset
