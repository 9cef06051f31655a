"""Derive the load of an imported pool: request sizes and read fraction from counters, and measured rates."""

import math
from dataclasses import dataclass
from typing import Any, Final

from stripesim.scenarios.clusters.cluster import ImportedCluster, ImportedPool
from stripesim.scenarios.clusters.documents import MeasuredRate
from stripesim.scenarios.clusters.hardware import Derivation
from stripesim.scenarios.clusters.report_schema import PoolCounters
from stripesim.scenarios.clusters.usage import ObjectMean
from stripesim.scenarios.schema.budget import OBJECT_BYTES_MAX
from stripesim.scenarios.schema.keys import OBJECT_BYTES
from stripesim.scenarios.schema.units import (
    bytes_text,
    format_size,
    number_text,
    size_text,
)

_KIB: Final = 1024
_SECTOR_BYTES: Final = 512
_PAGE_BYTES: Final = 4096
_ASSUMED_BYTES: Final = 4096
# An operation touches at most one object, by default 4 MiB.
_REQUEST_MAX: Final = 64 << 20
_QUEUE_DEPTH: Final = 32
# Long enough for thousands of small requests on disks. Loads that end together stay mixed to the end.
_DURATION_S: Final = 2.0
# A run has at least this many requests for each one in flight, also of large ones on a few slow disks.
_REQUESTS_PER_SLOT: Final = 32
_SLOW_SEEK_S: Final = 0.01
_SLOW_BYTES_PER_S: Final = 100e6
# Objects whose mean is within this factor are those of images, which may be sparse.
_IMAGE_OBJECT_FACTOR: Final = 2
#: Minimum share of a cluster's operations for the cluster's rate to count as the pool's.
_MOST: Final = 0.9


@dataclass(frozen=True)
class PoolLoad:
    """Mean requests of a pool's clients. Sizes are None if there were no such requests."""

    read_bytes: int | None
    write_bytes: int | None
    mean_bytes: int
    read_fraction: float
    measured: bool  # True if counters give sizes and the read fraction
    rate: MeasuredRate | None
    duration_s: float  # of a run
    derivations: tuple[Derivation, ...]  # of each key

    @property
    def rate_per_s(self) -> float | None:
        """Measured rate of reads and writes together [1/s]."""
        if self.rate is None:
            return None
        return self.rate.read_per_s + self.rate.write_per_s or None

    def tables(self, image_bytes: int) -> dict[str, Any]:
        """Return the workload tables: one load, or two if reads and writes differ in size."""
        common = {**common_keys(image_bytes), "duration_s": self.duration_s}
        if not self.measured:
            return {
                "workload": {
                    "ops": ["write", "read"],
                    "block_sizes_bytes": ["4k"],
                    **common,
                }
            }
        if self.read_bytes is None:
            return {"workload": {"ops": ["write"], **self._mean_size(), **common}}
        if self.write_bytes is None:
            return {"workload": {"ops": ["read"], **self._mean_size(), **common}}
        if self.read_bytes == self.write_bytes:
            return {"workload": {**self.mixed(), **common}}
        loads = [
            _load_table("reads", "read", self.read_bytes, self.read_fraction),
            _load_table("writes", "write", self.write_bytes, 1 - self.read_fraction),
        ]
        return {"workload": common, "workloads": loads}

    def table_derivations(self) -> tuple[Derivation, ...]:
        """Return the derivations of `tables` beyond those of the load."""
        if (
            self.read_bytes is None
            or self.write_bytes is None
            or self.read_bytes == self.write_bytes
        ):
            return ()
        reads = _in_flight(self.read_fraction)
        writes = _in_flight(1 - self.read_fraction)
        source = (
            "sizes differ, so reads and writes are two [[workloads]]. The counters split "
            f"{_QUEUE_DEPTH} requests in flight between them"
        )
        value = f"{reads} for reads, {writes} for writes"
        return (Derivation("workload, mix", source, value),)

    def mixed(self) -> dict[str, Any]:
        """Return the keys of one mixed load with the mean size of reads and writes."""
        return {"read_fraction": round(self.read_fraction, 4), **self._mean_size()}

    def _mean_size(self) -> dict[str, Any]:
        return {"block_sizes_bytes": [format_size(self.mean_bytes)]}


def object_bytes_of(mean: ObjectMean | None, pool: ImportedPool, load: PoolLoad) -> int:
    """Return the size of simulated objects: 4 MiB, or a mean that is much smaller or larger [B].

    An object is a whole number of the larger mean request. No operation of Ceph reaches beyond its object,
    so none of a simulated image should.
    """
    if mean is None:
        return OBJECT_BYTES
    smallest = OBJECT_BYTES / _IMAGE_OBJECT_FACTOR
    if smallest <= mean.size_bytes <= OBJECT_BYTES * _IMAGE_OBJECT_FACTOR:
        return OBJECT_BYTES
    request_bytes = max(load.read_bytes or 0, load.write_bytes or 0)
    most = OBJECT_BYTES_MAX // request_bytes
    requests = min(max(1, round(mean.size_bytes / request_bytes)), most)
    return max(requests * request_bytes, pool.stripe_unit_bytes)


def object_notes(
    mean: ObjectMean | None, pool: ImportedPool, object_bytes: int
) -> list[str]:
    """Note how the objects of a pool, and the requests to them, differ from those of its scenario."""
    notes = []
    if mean is not None and object_bytes > _IMAGE_OBJECT_FACTOR * mean.size_bytes:
        notes.append(
            f"pool {pool.placed.name}: objects of {bytes_text(mean.size_bytes)} on average become fewer ones "
            f"of {size_text(object_bytes)}, so recovery takes longer than simulated"
        )
    if "rgw" in pool.application.split(", "):
        notes.append(_gateway_note(pool))
    return notes


def _gateway_note(pool: ImportedPool) -> str:
    return (
        f"pool {pool.placed.name} serves RADOS gateways: the load is their operations, on an image, and not "
        'the S3 requests of clients. For those, write [cluster.gateways] and a [workload] of kind = "s3"'
    )


def common_keys(image_bytes: int) -> dict[str, Any]:
    """Return the keys that all loads share, which no file contains."""
    return {
        "patterns": ["rand"],
        "queue_depth": _QUEUE_DEPTH,
        "image_bytes": format_size(image_bytes),
    }


def _load_table(name: str, op: str, size_bytes: int, share: float) -> dict[str, Any]:
    """Return one of two concurrent loads, with its share of requests in flight."""
    return {
        "name": name,
        "ops": [op],
        "block_sizes_bytes": [format_size(size_bytes)],
        "queue_depth": _in_flight(share),
    }


def _in_flight(share: float) -> int:
    return max(1, round(share * _QUEUE_DEPTH))


def load_of(cluster: ImportedCluster, pool: ImportedPool) -> PoolLoad:
    """Derive the load of a pool from its counters, or else from those of all pools."""
    derived: list[Derivation] = []
    rate = _rate(cluster, pool)
    counters = pool.counters
    source = "pool_stats"
    if counters is None or not _requests(counters):
        counters = cluster.all_pools
        source = "pool_sum (all pools)"
    if not _requests(counters):
        assumed = "no counters of requests in the files: 4 KiB writes and reads assumed"
        derived.append(Derivation("workload", assumed, "4 KiB"))
        return PoolLoad(
            _ASSUMED_BYTES,
            _ASSUMED_BYTES,
            _ASSUMED_BYTES,
            0.5,
            measured=False,
            rate=rate,
            duration_s=_duration_s(cluster, pool, _ASSUMED_BYTES),
            derivations=(*derived,),
        )
    reads = _mean_bytes(counters.num_read, counters.num_read_kb)
    writes = _mean_bytes(counters.num_write, counters.num_write_kb)
    both = _mean_bytes(
        _requests(counters), counters.num_read_kb + counters.num_write_kb
    )
    share = counters.num_read / _requests(counters)
    for name, count, kib, size in (
        ("reads", counters.num_read, counters.num_read_kb, reads),
        ("writes", counters.num_write, counters.num_write_kb, writes),
    ):
        if size is not None:
            mean = number_text(kib / count)
            how = f"{source}: {count:,} of {mean} KiB on average"
            derived.append(Derivation(f"workload, {name}", how, size_text(size)))
    total = _requests(counters)
    how = f"{source}: {counters.num_read:,} of {total:,}"
    derived.append(Derivation("workload, share of reads", how, f"{100 * share:.1f} %"))
    how = "not in the files, assumed"
    value = f"random, {_QUEUE_DEPTH} in flight"
    derived.append(Derivation("workload, order and depth", how, value))
    return PoolLoad(
        reads,
        writes,
        both or _ASSUMED_BYTES,
        share,
        measured=True,
        rate=rate,
        duration_s=_duration_s(cluster, pool, max(reads or 0, writes or 0)),
        derivations=(*derived,),
    )


def _duration_s(
    cluster: ImportedCluster, pool: ImportedPool, request_bytes: int
) -> float:
    """Return how long a run has to be for slow disks to complete enough requests [s]."""
    busy_s = pool.placed.size * _SLOW_SEEK_S
    busy_s += request_bytes * pool.overhead / _SLOW_BYTES_PER_S
    busy_s *= _REQUESTS_PER_SLOT * _QUEUE_DEPTH
    osds_count = max(1, len(cluster.osds_of(pool)))
    return max(_DURATION_S, float(math.ceil(busy_s / osds_count)))


def _requests(counters: PoolCounters) -> int:
    return counters.num_read + counters.num_write


def _mean_bytes(count: int, kib: int) -> int | None:
    """Return the mean request size, in whole pages or, below a page, in whole sectors [B]."""
    if not count:
        return None
    mean = kib * _KIB / count
    unit = _PAGE_BYTES
    if mean < _PAGE_BYTES:
        unit = _SECTOR_BYTES
    return min(max(unit, round(mean / unit) * unit), _REQUEST_MAX)


def _rate(cluster: ImportedCluster, pool: ImportedPool) -> MeasuredRate | None:
    """Return the measured rate of a pool, or that of all pools if this one serves most of it."""
    if pool.rate is not None:
        return pool.rate
    served = {
        other.placed.id: _requests(other.counters or PoolCounters())
        for other in cluster.pools
    }
    if len(cluster.pools) == 1 or served[pool.placed.id] >= _MOST * max(
        1, sum(served.values())
    ):
        return cluster.cluster_rate
    return None
