"""Measure reuse of data: the number of distinct bytes between two accesses to the same block."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stripesim.models.jit import compiled

BLOCK_BYTES = 4096
"""Unit in which reuse is measured: a page of an operating system's cache [B]."""

ACCESSES_MAX = 4_000_000
"""Number of block accesses examined, from the start of a trace."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Reuse:
    """Reuse distances of a trace."""

    distances: Ints
    """Number of other blocks touched since the last access to the same block, or -1 for the first access.

    int64 of shape (accesses,).
    """
    starts: Ints
    """First access of each examined request, int64 of shape (requests,)."""
    blocks: int
    """Number of distinct blocks."""
    hottest_tenth_share: float
    """Share of accesses to the most accessed tenth of the blocks."""

    @property
    def requests(self) -> int:
        """Number of examined requests."""
        return len(self.starts)

    @property
    def accesses(self) -> int:
        """Number of accesses to blocks."""
        return len(self.distances)

    def hit_ratio(self, cache_blocks: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the hit ratio of LRU caches of these sizes [blocks], float64 of the same shape."""
        seen = np.sort(self.distances[self.distances >= 0])
        hits = np.searchsorted(seen, np.asarray(cache_blocks), side="left")
        return np.asarray(hits / max(1, self.accesses), dtype=np.float64)


def reuse(requests: pl.DataFrame) -> Reuse:
    """Return the LRU stack distances of all accesses, in blocks of `BLOCK_BYTES`.

    Parameters
    ----------
    requests
        Requests with the columns of `REQUEST_SCHEMA`. Only the first `ACCESSES_MAX` block accesses are
        examined.

    Notes
    -----
    Reads and writes both count as accesses. With stack distance d, an LRU cache of more than d blocks holds
    the block. The computation is one pass over a Fenwick tree, O(n log n).

    References
    ----------
    Mattson, Gecsei, Slutz, Traiger: Evaluation techniques for storage hierarchies, IBM Systems Journal 1970;
    Bennett, Kruskal: LRU stack processing, IBM J. Res. Dev. 1975 (the tree).
    """
    first = (requests["offset_bytes"] // BLOCK_BYTES).to_numpy()
    last = (
        (requests["offset_bytes"] + requests["length_bytes"] - 1) // BLOCK_BYTES
    ).to_numpy()
    device = requests["device"].rank("dense").to_numpy().astype(np.int64)
    counts = last - first + 1
    kept = max(1, int(np.searchsorted(np.cumsum(counts), ACCESSES_MAX, side="right")))
    # A single request may exceed the number of examined accesses.
    counts = np.minimum(counts[:kept], ACCESSES_MAX)
    starts = np.cumsum(counts) - counts
    within = np.arange(int(counts.sum())) - np.repeat(starts, counts)
    block = np.repeat(first[:kept], counts) + within
    # Block numbers of a device are below 2**50 (offsets are below 2**62), so one integer identifies both.
    key = pl.Series(np.repeat(device[:kept], counts) << 50 | block)
    names = key.rank("dense").to_numpy().astype(np.int64) - 1
    blocks = int(names.max()) + 1
    often = np.sort(np.bincount(names))[::-1]
    hottest = float(often[: max(1, blocks // 10)].sum() / len(names))
    return Reuse(
        distances=stack_distances(names, blocks),
        starts=starts,
        blocks=blocks,
        hottest_tenth_share=hottest,
    )


def first_touch(requests: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Mark requests that start in an untouched block, within the first `ACCESSES_MAX` accesses.

    Returns
    -------
    ndarray
        bool of shape (requests,), False for later requests.
    """
    reused = reuse(requests)
    out = np.zeros(requests.height, dtype=np.bool_)
    out[: reused.requests] = reused.distances[reused.starts] < 0
    return out


@compiled
def stack_distances(names: Ints, blocks: int) -> Ints:
    """Return the number of other distinct names since the last occurrence of each name, or -1 for the first.

    Parameters
    ----------
    names
        Block numbers, 0 to blocks - 1, int64 of shape (n,).
    blocks
        Number of distinct names.

    Returns
    -------
    ndarray
        int64 of shape (n,).
    """
    count = len(names)
    tree = np.zeros(count + 1, np.int64)
    last = np.full(blocks, -1, np.int64)
    out = np.empty(count, np.int64)
    live = 0
    for now in range(count):
        name = names[now]
        before = last[name]
        if before < 0:
            out[now] = -1
            live += 1
        else:
            # Marks are at the last access of each block. Those after `before` are the distinct blocks in
            # between.
            older = 0
            at = before + 1
            while at > 0:
                older += tree[at]
                at -= at & -at
            out[now] = live - older
            at = before + 1
            while at <= count:
                tree[at] -= 1
                at += at & -at
        at = now + 1
        while at <= count:
            tree[at] += 1
            at += at & -at
        last[name] = now
    return out
