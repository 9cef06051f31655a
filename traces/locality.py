"""Reuse of data: how many distinct bytes lie between two accesses to the same place."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stripesim.models.jit import compiled

BLOCK_BYTES = 4096
"""Grain at which reuse is looked at: the page of an operating system's cache."""

ACCESSES_MAX = 4_000_000
"""Block accesses looked at; a longer trace is judged by its first ones."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Reuse:
    """Reuse distances of a trace."""

    distances: Ints
    """Shape (accesses,), int64: distinct other blocks touched since the last access to the same block; -1 at
    the first."""
    blocks: int  # Distinct blocks
    requests: int  # Requests looked at
    hottest_tenth_share: (
        float  # Share of accesses that go to the most accessed tenth of the blocks
    )

    @property
    def accesses(self) -> int:
        """Return the number of accesses to blocks."""
        return len(self.distances)

    def hit_ratio(self, cache_blocks: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the share of accesses that LRU caches of given sizes [blocks] serve."""
        seen = np.sort(self.distances[self.distances >= 0])
        hits = np.searchsorted(seen, np.asarray(cache_blocks), side="left")
        return np.asarray(hits / max(1, self.accesses), dtype=np.float64)


def reuse(requests: pl.DataFrame) -> Reuse:
    """Return the LRU stack distances of all accesses, at a grain of `BLOCK_BYTES`.

    Reads and writes both count as accesses. A stack distance d means that an LRU cache of more than d blocks
    holds the block. One pass over a Fenwick tree, O(n log n).

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
    # One request alone may be longer than all that is looked at.
    counts = np.minimum(counts[:kept], ACCESSES_MAX)
    starts = np.cumsum(counts) - counts
    within = np.arange(int(counts.sum())) - np.repeat(starts, counts)
    block = np.repeat(first[:kept], counts) + within
    # Blocks of a device are numbered below 2**50, offsets are below 2**62: one number names both.
    key = pl.Series(np.repeat(device[:kept], counts) << 50 | block)
    names = key.rank("dense").to_numpy().astype(np.int64) - 1
    blocks = int(names.max()) + 1
    often = np.sort(np.bincount(names))[::-1]
    hottest = float(often[: max(1, blocks // 10)].sum() / len(names))
    return Reuse(stack_distances(names, blocks), blocks, kept, hottest)


def first_touch(requests: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Mark requests that start in a block untouched before; none past the first `ACCESSES_MAX` accesses."""
    reused = reuse(requests)
    rows = requests.head(reused.requests)
    first = (rows["offset_bytes"] // BLOCK_BYTES).to_numpy()
    last = ((rows["offset_bytes"] + rows["length_bytes"] - 1) // BLOCK_BYTES).to_numpy()
    counts = last - first + 1
    out = np.zeros(requests.height, dtype=np.bool_)
    out[: rows.height] = reused.distances[(np.cumsum(counts) - counts)] < 0
    return out


@compiled
def stack_distances(names: Ints, blocks: int) -> Ints:
    """Return, for names from 0, how many other names came since each one's last access; -1 at the first."""
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
            # Marks are at each block's last access; those after `before` are the distinct blocks between.
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
