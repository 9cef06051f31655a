"""Client requests on images, generated synthetically or replayed from a trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from stripesim.sim.engine.columns import Columns
from stripesim.sim.engine.graph import IntArray


@dataclass(frozen=True)
class Requests(Columns):
    """Requests in order of issue."""

    is_write: npt.NDArray[np.bool_]  #: shape (n,)
    images: IntArray  #: Target image (device) of each request, from 0, shape (n,)
    offsets_bytes: IntArray  #: Beginning of each request in its image [B], shape (n,)
    lengths_bytes: IntArray  #: Length of each request [B], shape (n,)
    #: Issue times [ns], or None in a closed loop, shape (n,)
    arrivals_ns: IntArray | None = None
    #: Client that issues each request, from 0, or None if the first client issues all, shape (n,)
    clients: IntArray | None = None

    def __len__(self) -> int:
        return len(self.is_write)


class Workload(Protocol):
    """A source of requests."""

    queue_depth: int  # Requests in flight of a closed loop, or 0 for an open loop.

    def take(self, count: int) -> Requests:
        """Return the next `count` requests, or the remaining ones if fewer are left."""


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """A job of a load generator such as fio."""

    #: ``seq`` reads or writes consecutive blocks from the image's start and wraps around at its end. ``rand``
    #: draws each block independently from the whole image (fio's ``norandommap``).
    pattern: str
    block_bytes: int  #: Size of every request [B]
    image_bytes: int  #: Size of the image, at least one block [B]
    read_fraction: float  #: Probability that a request is a read, 0 to 1
    requests: int | None  #: Number of requests, or None for an endless stream
    queue_depth: int  #: Requests in flight, or 0 for an open loop
    rate_per_s: float | None = None  #: Poisson arrivals of an open loop [1/s]
    seed: int = 0  #: Seed of offsets, directions and arrivals
    #: Number of clients, each with a separate image. `requests` and `rate_per_s` are totals over all clients.
    #: `queue_depth` applies to each client.
    clients: int = 1
    first_client: int = 0  #: Index of the first client in the cluster
    first_byte: int = 0  #: Start of the first image in the pool's image space [B]
    image_stride_bytes: int = 0  #: Distance between the starts of images [B]
    #: Blocks of each client's first requests, or None to draw them normally, shape (clients, queue depth)
    first_blocks: IntArray | None = None

    def __post_init__(self) -> None:
        if self.pattern not in ("seq", "rand"):
            raise ValueError(
                f"workload: pattern: got {self.pattern!r}, wanted seq or rand"
            )
        if not 0 < self.block_bytes <= self.image_bytes:
            raise ValueError(
                f"workload: block_bytes: got {self.block_bytes}, wanted 1 to the image's {self.image_bytes}"
            )
        if not 0 <= self.read_fraction <= 1:
            raise ValueError(
                f"workload: read_fraction: got {self.read_fraction}, wanted 0 to 1"
            )
        if (self.queue_depth > 0) == (self.rate_per_s is not None):
            raise ValueError(
                f"workload: got a queue depth of {self.queue_depth} and a rate of {self.rate_per_s}, "
                "wanted either a queue depth (closed loop) or a rate (open loop)"
            )

    def start(self) -> SyntheticStream | SyntheticLoops:
        """Start the request stream, or one closed loop for each of several clients."""
        if self.clients > 1 and self.queue_depth:
            return SyntheticLoops(self)
        return SyntheticStream(self)

    def requests_of(
        self,
        numbers: IntArray,
        offsets: np.random.Generator,
        directions: np.random.Generator,
        clients: IntArray | None,
    ) -> Requests:
        """Draw requests, given the sequence number of each request within its client."""
        blocks = self.image_bytes // self.block_bytes
        count = len(numbers)
        index = numbers % blocks
        if self.pattern == "rand":
            index = offsets.integers(0, blocks, count)
        if clients is None:
            clients = np.zeros(count, dtype=np.int64)
        if self.first_blocks is not None:
            is_first = numbers < self.queue_depth
            index[is_first] = self.first_blocks[clients[is_first], numbers[is_first]]
        image_bytes = self.first_byte + clients * np.int64(self.image_stride_bytes)
        return Requests(
            is_write=directions.random(count) >= self.read_fraction,
            images=np.zeros(count, dtype=np.int64),
            offsets_bytes=image_bytes + index * self.block_bytes,
            lengths_bytes=np.full(count, self.block_bytes, dtype=np.int64),
            clients=self.first_client + clients,
        )


class SyntheticStream:
    """A running `Synthetic` workload."""

    def __init__(self, workload: Synthetic) -> None:
        self.workload = workload
        self.queue_depth = workload.queue_depth
        #: Number of requests that a run has taken, of each client in loops
        self.taken = 0
        self._clock_ns = 0.0
        # Separate random streams keep the offsets independent of the read-write mix: one
        # seed gives the same offsets for every scheme and for reads and writes.
        self._offsets, self._directions, self._gaps, self._clients = (
            np.random.default_rng([workload.seed, index]) for index in range(4)
        )
        self._issued = np.zeros(workload.clients, dtype=np.int64)

    def take(self, count: int) -> Requests:
        """Return the next `count` requests."""
        load = self.workload
        if load.requests is not None:
            count = min(count, load.requests - self.taken)
        clients = None
        numbers = np.arange(self.taken, self.taken + count, dtype=np.int64)
        self.taken += count
        if load.clients > 1:
            # The superposition of Poisson arrivals is Poisson, and each arrival is from a random client.
            clients = self._clients.integers(0, load.clients, count)
            numbers = next_numbers(clients, self._issued)
        requests = load.requests_of(numbers, self._offsets, self._directions, clients)
        if load.rate_per_s is None:
            return requests
        gaps_ns = self._gaps.exponential(1e9 / load.rate_per_s, count)
        times_ns = self._clock_ns + np.cumsum(gaps_ns)
        if count:
            self._clock_ns = float(times_ns[-1])
        return replace(requests, arrivals_ns=np.rint(times_ns).astype(np.int64))


def next_numbers(clients: IntArray, issued: IntArray) -> IntArray:
    """Number requests within their clients, after those issued, which are counted on in place.

    >>> issued = np.array([5, 0])
    >>> next_numbers(np.array([0, 1, 0]), issued).tolist(), issued.tolist()
    ([5, 0, 6], [7, 1])
    """
    order = np.argsort(clients, kind="stable")
    counts = np.bincount(clients, minlength=len(issued))
    ranks = np.empty(len(clients), dtype=np.int64)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    ranks[order] = np.arange(len(clients)) - starts
    numbers: IntArray = issued[clients] + ranks
    issued += counts
    return numbers


class SyntheticLoops:
    """A `Synthetic` workload as closed loops of several clients, each of its own `queue_depth`."""

    def __init__(self, workload: Synthetic) -> None:
        self.workload = workload
        self.queue_depth = workload.queue_depth
        self.clients = workload.clients
        self.first_client = workload.first_client
        #: Number of requests that a run has taken, of each client in loops
        self.taken = 0
        self._offsets, self._directions = (
            np.random.default_rng([workload.seed, index]) for index in range(2)
        )

    def take(self, rounds: int) -> Requests:
        """Return the next `rounds` requests of each client, in turn, or all that remain if fewer."""
        load = self.workload
        clients = np.tile(np.arange(self.clients, dtype=np.int64), rounds)
        numbers = np.repeat(
            np.arange(self.taken, self.taken + rounds, dtype=np.int64), self.clients
        )
        self.taken += rounds
        requests = load.requests_of(numbers, self._offsets, self._directions, clients)
        if load.requests is None:
            return requests
        # The remainder goes to the first clients, one request each.
        each, more = divmod(load.requests, self.clients)
        return requests.at(np.flatnonzero(numbers < each + (clients < more)))


class Replay:
    """Replay a recorded trace, at its (scaled) times or as a closed loop in recorded order.

    Parameters
    ----------
    requests
        The complete trace, with `arrivals_ns` ascending from 0.
    speed
        Recorded time over simulated time, in an open loop only: 2 replays at double speed.
    queue_depth
        Requests in flight of a closed loop, or 0 for an open loop at the recorded times.
    limit
        Maximum number of requests to replay.
    clients
        Number of clients. The trace's devices are assigned to them round-robin.
    image_bytes
        Size of each image [B], one for each device. Default: up to the end of the last request on any device.
    """

    def __init__(
        self,
        requests: Requests,
        *,
        speed: float = 1.0,
        queue_depth: int = 0,
        limit: int | None = None,
        clients: int = 1,
        image_bytes: int | None = None,
    ) -> None:
        if not speed > 0:
            raise ValueError(f"workload: speed: got {speed}, wanted above 0")
        self.queue_depth = queue_depth
        #: Number of requests that a run has taken, of each client in loops
        self.taken = 0
        requests = requests.at(slice(limit))
        arrivals = None
        if queue_depth == 0:
            assert requests.arrivals_ns is not None
            arrivals = np.rint(requests.arrivals_ns / speed).astype(np.int64)
        self._all = replace(
            requests, arrivals_ns=arrivals, clients=requests.images % clients
        )
        #: Size of each image [B]
        self.image_bytes = self.end_bytes if image_bytes is None else image_bytes

    @property
    def images(self) -> int:
        """Number of images, one for each device of the trace."""
        return int(self._all.images.max(initial=0)) + 1

    @property
    def end_bytes(self) -> int:
        """End of the last request on any device [B]."""
        ends = self._all.offsets_bytes + self._all.lengths_bytes
        return int(ends.max(initial=1))

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self._all)

    def take(self, count: int) -> Requests:
        """Return the next `count` requests."""
        start = self.taken
        self.taken = min(len(self._all), start + count)
        return self._all.at(slice(start, self.taken))
