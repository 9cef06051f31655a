"""S3 requests of clients: operations on objects of drawn sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from stripesim.sim.ceph.clients.workload import Requests, Synthetic
from stripesim.sim.engine.graph import IntArray

#: Parts of a PUT or GET of a large object, which follow the operations of a load.
PART_OPS = ("part", "complete", "range")
PART, COMPLETE, RANGE = range(3)
# Distance of the places of two parts of an object: a prime, so that they are all over the cluster.
_STEP = 7919


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
    #: Objects of this size and above are stored in parts and read in ranges, or None for none [B]
    multipart_threshold_bytes: int | None = None
    part_bytes: int = 16 << 20  #: Size of a part or range [B]

    def op_name(self, number: int) -> str:
        """Return the operation with a number: one of `ops`, or a part of one."""
        return (*self.ops, *PART_OPS)[number]

    @property
    def part_sizes_bytes(self) -> set[int]:
        """Sizes of parts and ranges, and 0 for the completion of an upload [B]."""
        threshold = self.multipart_threshold_bytes
        if threshold is None:
            return set()
        large = [size for size in self.sizes_bytes if size >= threshold]
        part_sizes = {min(self.part_bytes, size) for size in large}
        return {0} | part_sizes | {size % self.part_bytes for size in large}

    def in_parts(self, requests: S3Requests) -> tuple[S3Requests, IntArray]:
        """Split PUTs and GETs of large objects into parts, and return them with the request of each.

        A client sends all parts at the same time. The completion of an upload is sent with them, while Ceph
        needs the parts before. So counts are those of an upload, and its latency lacks one small request.
        """
        threshold = self.multipart_threshold_bytes
        owners = np.arange(len(requests), dtype=np.int64)
        names = np.array(self.ops)[requests.ops]
        has_parts = np.isin(names, ("put", "get"))
        if threshold is None or not (has_parts & (requests.sizes >= threshold)).any():
            return requests, owners
        has_parts &= requests.sizes >= threshold
        parts = np.where(has_parts, -(-requests.sizes // self.part_bytes), 1)
        completes = has_parts & (names == "put")
        counts = parts + completes
        owners = np.repeat(owners, counts)
        number = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        split = requests.at(owners)
        is_part = has_parts[owners]
        is_last = completes[owners] & (number == parts[owners])
        first = number * self.part_bytes
        sizes = np.clip(split.sizes - first, 0, self.part_bytes)
        ops = len(self.ops) + np.where(names[owners] == "put", PART, RANGE)
        ops[is_last] = len(self.ops) + COMPLETE
        # Each part has a place of its own.
        slots = (split.offsets_bytes + number * _STEP) % self.slots
        return replace(
            split,
            ops=np.where(is_part, ops, split.ops),
            sizes=np.where(is_part, sizes, split.sizes),
            lengths_bytes=np.where(is_part, sizes, split.lengths_bytes),
            offsets_bytes=np.where(is_part, slots, split.offsets_bytes),
        ), owners

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
    indices = np.searchsorted(ends / ends[-1], draws.random(count), side="right")
    return np.minimum(indices, len(shares) - 1).astype(np.int64)
