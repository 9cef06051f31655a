"""Plan requests of optimised erasure-coded pools: only the touched shards, in 4 KiB pages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.optimised import extents
from stripesim.models.coding.optimised.extents import ByteRuns
from stripesim.models.coding.policy import PAGE_BYTES
from stripesim.models.coding.protocol import (
    ObjectRequest,
    ReadPlan,
    ShardExtent,
    WritePlan,
    shard_extents,
)

ShardRuns = dict[int, ByteRuns]


@dataclass(frozen=True)
class ShardMap:
    """Layout of an object in an optimised pool with `width` data and parity shards."""

    geometry: StripeGeometry
    width: int

    @property
    def parities(self) -> range:
        """Indices of the parity shards."""
        return range(self.geometry.k, self.width)

    def shards_of(self, offset_bytes: int, stop_bytes: int) -> ShardRuns:
        """Return the run of each data shard that holds bytes ``[offset, stop)`` of the object.

        >>> ShardMap(StripeGeometry(k=4, stripe_unit_bytes=16384), 6).shards_of(14336, 18432)
        {0: ((14336, 16384),), 1: ((0, 2048),)}
        """
        k = self.geometry.k
        unit = self.geometry.stripe_unit_bytes
        if stop_bytes <= offset_bytes:
            return {}
        first = offset_bytes // unit
        last = (stop_bytes - 1) // unit
        runs_by_shard: ShardRuns = {}
        for shard in range(k):
            # Chunks of the object are numbered row by row. These are the first and last chunks on this shard.
            low = first + (shard - first) % k
            high = last - (last - shard) % k
            if low > high:
                continue
            start = low // k * unit + (offset_bytes % unit if low == first else 0)
            stop = high // k * unit + (
                (stop_bytes - 1) % unit + 1 if high == last else unit
            )
            runs_by_shard[shard] = ((start, stop),)
        return runs_by_shard

    def stored(self, object_size_bytes: int) -> ShardRuns:
        """Return the runs that each shard stores of an object: whole pages without padding to a stripe."""
        shards = self.shards_of(0, _pages_up(object_size_bytes))
        longest = max((runs[-1][1] for runs in shards.values()), default=0)
        if longest:
            shards |= dict.fromkeys(self.parities, ((0, longest),))
        return shards

    def sources(
        self,
        wanted: ShardRuns,
        *,
        stored: ShardRuns,
        missing: frozenset[int],
        granule_bytes: int = PAGE_BYTES,
    ) -> tuple[ShardRuns, ByteRuns]:
        """Return the runs to read so that the wanted runs become known, and the runs to decode.

        If a wanted shard is missing, the first k available shards are read at the offsets of its wanted runs,
        in addition to their own wanted runs.

        Parameters
        ----------
        wanted
            Wanted runs by shard.
        stored
            Runs that each shard stores.
        missing
            Unreachable shards.
        granule_bytes
            Unit of shard reads [B].

        References
        ----------
        Ceph main (0009f3f5), ``src/osd/ECCommon.cc`` (``get_min_avail_to_read_shards``).
        """
        lost = extents.union(
            run for shard in wanted if shard in missing for run in wanted[shard]
        )
        readable: Iterable[int] = wanted
        if lost:
            readable = [shard for shard in range(self.width) if shard not in missing][
                : self.geometry.k
            ]
        runs_by_shard = {}
        for shard in readable:
            runs = extents.union([*lost, *wanted.get(shard, ())])
            runs = extents.intersect(
                extents.align(runs, granule_bytes), stored.get(shard, ())
            )
            if runs:
                runs_by_shard[shard] = runs
        return runs_by_shard, lost


def plan_read(shard_map: ShardMap, request: ObjectRequest) -> ReadPlan:
    """Plan a read of the columns, chunks or pages that hold wanted bytes, according to `EcPolicy.reads`."""
    unit = shard_map.geometry.stripe_unit_bytes
    pages = request.policy.reads == "pages"
    touched = shard_map.shards_of(
        request.offset_bytes, request.offset_bytes + request.returned_bytes
    )
    wanted = {
        shard: extents.align(runs, PAGE_BYTES if pages else unit)
        for shard, runs in touched.items()
    }
    if request.policy.reads == "columns":
        first, stop = shard_map.geometry.stripe_range(
            request.offset_bytes, request.returned_bytes
        )
        wanted = dict.fromkeys(touched, ((first * unit, stop * unit),))
    stored = shard_map.stored(request.object_size_bytes)
    if not request.policy.optimised:
        # A classic object is padded to whole stripes.
        shard_bytes = shard_map.geometry.shard_size_bytes(request.object_size_bytes)
        stored = dict.fromkeys(range(shard_map.width), ((0, shard_bytes),))
    reads, lost = shard_map.sources(
        wanted,
        stored=stored,
        missing=request.missing,
        granule_bytes=PAGE_BYTES if pages else unit,
    )
    slices = len(lost) if pages else extents.length(lost) // unit
    return ReadPlan(
        reads=_extents(reads),
        decode_stripes=slices,
        decode_data_bytes=shard_map.geometry.k * extents.length(lost),
        erasures=sum(shard in request.missing for shard in wanted),
        returned_bytes=request.returned_bytes,
    )


def plan_write(shard_map: ShardMap, request: ObjectRequest) -> WritePlan:
    """Plan a write of the touched data shards and the parities, in pages.

    The parity pages written are those of any touched data shard. Their new content is computed

    - from the written data alone, if it covers all data shards that exist there (``full stripe``);
    - together with the same pages of the untouched data shards (``reconstruct``);
    - from the old content of the written extents, parities included (``parity delta``).

    Pages written in part are always read first. A parity delta is considered if the object keeps its size, is
    not cached and something must be read. It is rejected if it reads k shards or more, or needs a missing
    shard. It is chosen if reconstruction lacks a shard. Otherwise the method that reads fewer shards wins,
    and `EcPolicy.tie` decides ties.

    Data shard 0 and the parities always get a transaction. If the object's size changes, every shard does;
    otherwise unwritten shards get none. A hole before the write is neither filled nor encoded.

    References
    ----------
    Ceph main (0009f3f5), ``src/osd/ECTransaction.cc`` (``WritePlanObj``, ``Generate``).
    """
    k = shard_map.geometry.k
    missing = request.missing
    end_bytes = request.end_bytes
    stored = shard_map.stored(request.object_size_bytes)
    touched = shard_map.shards_of(request.offset_bytes, end_bytes)
    rows = extents.align((run for runs in touched.values() for run in runs), PAGE_BYTES)
    data = {shard: extents.align(runs, PAGE_BYTES) for shard, runs in touched.items()}
    parities = {shard: rows for shard in shard_map.parities if shard not in missing}
    grows = end_bytes > request.object_size_bytes

    rest = _rest(shard_map, request, rows, data)
    old = {**data, **parities}
    method = _method(old, rest, k, request)
    reads, lost = shard_map.sources(
        old if method == "parity delta" else rest, stored=stored, missing=missing
    )
    writes = {shard: runs for shard, runs in old.items() if shard not in missing}
    informed = range(shard_map.width) if grows else (0, *shard_map.parities)
    if method == "parity delta":
        encoded = data
    else:
        encoded = dict.fromkeys(range(k), rows)
    return WritePlan(
        reads=_extents(reads),
        writes=_extents(writes),
        read_stripes=(),
        write_stripes=shard_map.geometry.stripe_range(
            request.offset_bytes, request.length_bytes
        ),
        encode_stripes=len(rows),
        encode_data_bytes=sum(extents.length(runs) for runs in encoded.values()),
        decode_stripes=len(lost),
        decode_data_bytes=k * extents.length(lost),
        erasures=sum(shard in missing for shard in rest) if lost else 0,
        metadata_shards=tuple(
            shard for shard in informed if shard not in missing and shard not in writes
        ),
        method=method,
    )


WriteMethod = Literal["full stripe", "reconstruct", "parity delta"]


def _rest(
    shard_map: ShardMap,
    request: ObjectRequest,
    rows: ByteRuns,
    data: Mapping[int, ByteRuns],
) -> dict[int, ByteRuns]:
    """Return the stored runs of `rows` that a reconstruction reads, because the request does not write them.

    Pages that the request covers only in part are among them.
    """
    stored = shard_map.stored(request.object_size_bytes)
    rest = {
        shard: extents.subtract(rows, data.get(shard, ()))
        for shard in range(shard_map.geometry.k)
    }
    for page in _partial_pages(request):
        for shard, runs in shard_map.shards_of(page, page + PAGE_BYTES).items():
            rest[shard] = extents.union([*rest[shard], *runs])
    rest = {
        shard: extents.intersect(runs, stored.get(shard, ()))
        for shard, runs in rest.items()
    }
    return {shard: runs for shard, runs in rest.items() if runs}


def _method(
    old: Mapping[int, ByteRuns],
    rest: Mapping[int, ByteRuns],
    k: int,
    request: ObjectRequest,
) -> WriteMethod:
    if not rest:
        return "full stripe"
    grows = request.end_bytes > request.object_size_bytes
    if grows or request.in_cache or not _takes_delta(old, rest, k, request):
        return "reconstruct"
    return "parity delta"


def _takes_delta(
    old: Mapping[int, ByteRuns],
    rest: Mapping[int, ByteRuns],
    k: int,
    request: ObjectRequest,
) -> bool:
    if len(old) >= k or request.missing & old.keys():
        return False
    if request.missing & rest.keys():
        return True
    return len(old) < len(rest) or (
        len(old) == len(rest) and request.policy.tie == "delta"
    )


def _partial_pages(request: ObjectRequest) -> list[int]:
    """Return the object offsets [B] of pages that a request covers only in part."""
    ends = (request.offset_bytes, request.end_bytes)
    return [end // PAGE_BYTES * PAGE_BYTES for end in ends if end % PAGE_BYTES]


def _pages_up(size_bytes: int) -> int:
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES


def _extents(found: Mapping[int, ByteRuns]) -> tuple[ShardExtent, ...]:
    return tuple(
        extent
        for shard in sorted(found)
        for extent in shard_extents((shard,), found[shard])
    )
