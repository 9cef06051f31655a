"""S3 requests of clients: operations on objects of drawn sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stripesim.sim.ceph.clients.workload import Requests, Synthetic
from stripesim.sim.engine.graph import IntArray


@dataclass(frozen=True)
class S3Requests(Requests):
    """Requests for objects, in order of issue. `offsets_bytes` are the places of the objects."""

    #: Index of each request's operation in the load's `ops`, shape (n,)
    ops: IntArray = None  # type: ignore[assignment]
    #: Size of each request's object, or number of keys that a LIST returns, shape (n,)
    sizes: IntArray = None  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class S3Load(Synthetic):
    """A load on buckets. `block_bytes` is the mean size of its objects, `image_bytes` that of all objects."""

    ops: tuple[str, ...]  #: Operations, such as ``put``
    op_shares: tuple[float, ...]  #: Share of each operation, in sum 1
    sizes_bytes: tuple[int, ...]  #: Sizes of objects [B]
    size_shares: tuple[float, ...]  #: Share of each size among the objects, in sum 1
    list_keys: int  #: Keys that a LIST returns [count]
    slots: int  #: Distinct places of objects on placement groups [count]
    tls: bool

    def requests_of(
        self,
        numbers: IntArray,
        offsets: np.random.Generator,
        directions: np.random.Generator,
        clients: IntArray | None,
    ) -> S3Requests:
        """Draw requests: an operation, an object's place, and its size."""
        count = len(numbers)
        if clients is None:
            clients = np.zeros(count, dtype=np.int64)
        ops = _drawn(directions, self.op_shares, count)
        drawn_sizes = _drawn(offsets, self.size_shares, count)
        slots = offsets.integers(0, self.slots, count)
        return self._requests(ops, drawn_sizes, slots, clients)

    def kinds(self) -> S3Kinds:
        """Return a request of each operation and size, and its share."""
        pairs = [
            (op, size, op_share * size_share)
            for op, op_share in enumerate(self.op_shares)
            for size, size_share in enumerate(self.size_shares)
        ]
        ops, sizes, shares = zip(*pairs, strict=True)
        total = sum(shares)
        return S3Kinds(
            self._requests(
                np.array(ops, dtype=np.int64),
                np.array(sizes, dtype=np.int64),
                np.zeros(len(pairs), dtype=np.int64),
                np.zeros(len(pairs), dtype=np.int64),
            ),
            tuple(share / total for share in shares),
        )

    def _requests(
        self, ops: IntArray, drawn_sizes: IntArray, slots: IntArray, clients: IntArray
    ) -> S3Requests:
        """Return requests, given the indices of their operations and sizes."""
        sizes = np.array(self.sizes_bytes, dtype=np.int64)[drawn_sizes]
        names = np.array(self.ops)[ops]
        sizes[names == "list"] = self.list_keys
        has_data = np.isin(names, ("put", "get"))
        return S3Requests(
            is_write=names == "put",
            images=np.zeros(len(ops), dtype=np.int64),
            offsets_bytes=slots,
            lengths_bytes=np.where(has_data, sizes, 0),
            clients=self.first_client + clients,
            ops=ops,
            sizes=sizes,
        )


class S3Kinds(NamedTuple):
    """Kinds of requests of a load: one request of each, and its share of all requests."""

    requests: S3Requests
    shares: tuple[float, ...]


def _drawn(
    draws: np.random.Generator, shares: tuple[float, ...], count: int
) -> IntArray:
    """Draw an index for each request by shares."""
    ends = np.cumsum(np.array(shares))
    found = np.searchsorted(ends / ends[-1], draws.random(count), side="right")
    return np.minimum(found, len(shares) - 1).astype(np.int64)
