"""Requests of a client on its image: synthetic (as a load generator makes them) or replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from stripesim.sim.engine.graph import IntArray


@dataclass(frozen=True)
class Requests:
    """Requests in order of issue.

    Parameters
    ----------
    is_write : ndarray of bool, shape (n,)
    images : ndarray of int64, shape (n,)
        Image (device) that each request addresses, from 0.
    offsets_bytes, lengths_bytes : ndarray of int64, shape (n,)
        Extent in the image [B].
    arrivals_ns : ndarray of int64, shape (n,), optional
        Issue times [ns]; None for a closed loop.
    """

    is_write: npt.NDArray[np.bool_]
    images: IntArray
    offsets_bytes: IntArray
    lengths_bytes: IntArray
    arrivals_ns: IntArray | None = None

    def __len__(self) -> int:
        return len(self.is_write)

    def rows(self, start: int, stop: int) -> Requests:
        """Return a slice."""
        return Requests(
            self.is_write[start:stop],
            self.images[start:stop],
            self.offsets_bytes[start:stop],
            self.lengths_bytes[start:stop],
            None if self.arrivals_ns is None else self.arrivals_ns[start:stop],
        )


class Workload(Protocol):
    """A source of requests.

    Attributes
    ----------
    depth : int
        Requests outstanding (closed loop), or 0 for an open loop.
    """

    depth: int

    def take(self, count: int) -> Requests:
        """Return the next `count` requests, fewer at the end, none after it."""
        ...


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """What a load generator such as fio is told.

    Parameters
    ----------
    pattern : str
        ``seq``: one block after the other, from the image's start, around its end.
        ``rand``: any block of the image, each draw independent (``norandommap``).
    block_bytes : int
        Size of every request [B].
    image_bytes : int
        Size of the image [B]; at least one block.
    read_fraction : float
        Share of reads, 0 to 1; drawn per request.
    requests : int, optional
        How many; None: as many as the run takes.
    queue_depth : int
        Requests outstanding; 0 for an open loop.
    rate_per_s : float, optional
        Poisson arrivals of an open loop [1/s].
    seed : int
        Of offsets, directions and arrivals.
    """

    pattern: str
    block_bytes: int
    image_bytes: int
    read_fraction: float
    requests: int | None
    queue_depth: int
    rate_per_s: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pattern not in ("seq", "rand"):
            raise ValueError(f"workload: pattern: got {self.pattern!r}, wanted seq or rand")
        if not 0 < self.block_bytes <= self.image_bytes:
            raise ValueError(
                f"workload: block_bytes: got {self.block_bytes}, wanted 1 to the image's {self.image_bytes}"
            )
        if not 0 <= self.read_fraction <= 1:
            raise ValueError(f"workload: read_fraction: got {self.read_fraction}, wanted 0 to 1")
        if (self.queue_depth > 0) == (self.rate_per_s is not None):
            raise ValueError("workload: wanted either a queue depth (closed loop) or a rate (open loop)")

    def start(self) -> SyntheticStream:
        """Begin the stream of requests."""
        return SyntheticStream(self)


class SyntheticStream:
    """A running `Synthetic` workload."""

    def __init__(self, workload: Synthetic) -> None:
        self.workload = workload
        self.depth = workload.queue_depth
        self._taken = 0
        self._clock_ns = 0.0
        # Streams of their own, so that the direction mix does not disturb the offsets: the
        # same seed gives the same offsets to every scheme and to reads and writes.
        self._offsets, self._directions, self._gaps = (
            np.random.default_rng([workload.seed, index]) for index in range(3)
        )

    def take(self, count: int) -> Requests:
        """Return the next `count` requests."""
        told = self.workload
        if told.requests is not None:
            count = min(count, told.requests - self._taken)
        numbers = np.arange(self._taken, self._taken + count, dtype=np.int64)
        self._taken += count
        blocks = told.image_bytes // told.block_bytes
        index = numbers % blocks if told.pattern == "seq" else self._offsets.integers(0, blocks, count)
        arrivals = None
        if told.rate_per_s is not None:
            gaps_ns = self._gaps.exponential(1e9 / told.rate_per_s, count)
            times_ns = self._clock_ns + np.cumsum(gaps_ns)
            self._clock_ns = float(times_ns[-1]) if count else self._clock_ns
            arrivals = np.rint(times_ns).astype(np.int64)
        return Requests(
            is_write=self._directions.random(count) >= told.read_fraction,
            images=np.zeros(count, dtype=np.int64),
            offsets_bytes=(index * told.block_bytes).astype(np.int64),
            lengths_bytes=np.full(count, told.block_bytes, dtype=np.int64),
            arrivals_ns=arrivals,
        )


class Replay:
    """A recorded trace, at its times (scaled) or as a closed loop in its order.

    Parameters
    ----------
    requests : Requests
        The whole trace, `arrivals_ns` ascending from 0.
    speed : float
        Recorded time over simulated time; 2 replays twice as fast. Open loop only.
    queue_depth : int
        0: open loop at the recorded times; above: closed loop of that depth.
    limit : int, optional
        Stop after so many requests.
    """

    def __init__(
        self, requests: Requests, *, speed: float = 1.0, queue_depth: int = 0, limit: int | None = None
    ) -> None:
        if not speed > 0:
            raise ValueError(f"workload: speed: got {speed}, wanted above 0")
        self.depth = queue_depth
        self._at = 0
        requests = requests.rows(0, len(requests) if limit is None else limit)
        arrivals = requests.arrivals_ns
        if queue_depth == 0:
            assert arrivals is not None
            arrivals = np.rint(arrivals / speed).astype(np.int64)
        self._all = Requests(
            requests.is_write,
            requests.images,
            requests.offsets_bytes,
            requests.lengths_bytes,
            arrivals if queue_depth == 0 else None,
        )

    def take(self, count: int) -> Requests:
        """Return the next `count` requests."""
        start, self._at = self._at, min(len(self._all), self._at + count)
        return self._all.rows(start, self._at)
