"""Clay codes: Reed-Solomon's storage and tolerance, but a lost shard is rebuilt from parts of others."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

from stripesim.models.coding.clay_coder import ClayShape
from stripesim.models.coding.errors import require
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.protocol import (
    SHARDS_MAX,
    Repair,
    ShardExtent,
    shard_extents,
)
from stripesim.models.coding.reed_solomon import ReedSolomon

#: A sub-chunk is a multiple of this [B]: the smallest chunk of jerasure's reed_sol_van with two data shards.
SUB_CHUNK_ALIGN_BYTES: Final = 32
#: More sub-chunks than this in a chunk are refused: a chunk would be larger than objects commonly are.
SUB_CHUNKS_MAX: Final = 4096


@dataclass(frozen=True)
class Clay(ReedSolomon):
    r"""A coupled-layer code, written ``clay:k,m,d``.

    Of at least 2 parities m; d shards help to rebuild one lost shard, k + 1 to k + m - 1.

    Notes
    -----
    A chunk is q^t sub-chunks with q = d - k + 1 and t = ceil((k + m) / q). One lost shard is rebuilt from
    the same q^(t-1) sub-chunks of each of d helpers, and so from

    .. math:: \frac{d}{q} = \frac{d}{d - k + 1} \tag{1}

    bytes for each byte lost. They form q^y runs of q^(t-1-y) sub-chunks, with y the column of the lost
    shard: few long runs for the first shards, many short ones for the last. All others of its column
    must help. With two shards lost, one of the column not to be had or fewer than d helpers, k whole
    chunks are read and decoded, as with Reed-Solomon. Any m shards may be lost.

    Reads and writes of clients are those of `ReedSolomon`: whole stripes, also where a shard is missing.

    In the (n, k, d) notation of Vajha et al. ``clay:9,3,11`` is (12, 9, 11).

    References
    ----------
    M. Vajha et al., "Clay Codes: Moulding MDS Codes to Yield an MSR Code", FAST 2018, sections 3 and 4;
    Ceph 16.2, ``src/erasure-code/clay/ErasureCodeClay.cc``, ``is_repair``, ``minimum_to_repair``,
    ``get_repair_subchunks`` and ``get_chunk_size``.

    Examples
    --------
    >>> code = Clay(k=4, m=2, d=5)
    >>> geometry = code.geometry(4096)
    >>> plan = code.plan_repair(lost=frozenset({2}), object_size_bytes=16384, geometry=geometry)
    >>> [(extent.offset_bytes, extent.length_bytes) for extent in plan.reads if extent.shard == 0]
    [(0, 1024), (2048, 1024)]
    >>> sum(extent.length_bytes for extent in plan.reads) / 4096
    2.5
    """

    d: int

    not_optimised_because: ClassVar[str] = (
        "the clay plug-in works on sub-chunks (deprecated in umbrella, removed in vampire)"
    )

    def __post_init__(self) -> None:
        name = self.name
        k = self.k
        m = self.m
        shape = self.shape
        require(k >= 1, f"{name}: k", k, "at least 1")
        require(m >= 2, f"{name}: m", m, "at least 2")
        wanted = f"k + 1 = {k + 1} to k + m - 1 = {k + m - 1}"
        require(k + 1 <= self.d <= k + m - 1, f"{name}: d", self.d, wanted)
        filled = f"{shape.nodes} with those that fill the grid"
        require(
            shape.nodes <= SHARDS_MAX,
            f"{name}: shards",
            filled,
            f"at most {SHARDS_MAX}",
        )
        wanted = f"at most {SUB_CHUNKS_MAX} (a d nearer to k + m - 1 gives fewer)"
        require(
            shape.sub_chunks <= SUB_CHUNKS_MAX,
            f"{name}: sub-chunks",
            f"{shape.q}^{shape.t}",
            wanted,
        )

    @property
    def name(self) -> str:
        """``clay:k,m,d``."""
        return f"clay:{self.k},{self.m},{self.d}"

    @cached_property
    def shape(self) -> ClayShape:
        """The grid of nodes and sub-chunks."""
        return ClayShape(self.k, self.m, self.d)

    def geometry(self, stripe_unit_bytes: int) -> StripeGeometry:
        """Return stripes of k chunks, the unit [B] padded to 32-byte sub-chunks: 5184 for 4096 and 9,3,11."""
        align = self.shape.sub_chunks * SUB_CHUNK_ALIGN_BYTES
        # A unit of 0 or less stays so, and is refused there.
        return StripeGeometry(
            k=self.k, stripe_unit_bytes=-(-stripe_unit_bytes // align) * align
        )

    def _repair_reads(self, repair: Repair) -> tuple[tuple[ShardExtent, ...], int]:
        """Return the needed sub-chunks of d helpers, or k whole chunks; no two runs of a shard touch."""
        helpers = self.helpers(repair.lost, repair.unavailable)
        if not helpers:
            extents = shard_extents(repair.sources, ((0, repair.shard_bytes),))
            return extents, len(repair.lost | repair.unavailable)
        (shard,) = repair.lost
        unit = repair.geometry.stripe_unit_bytes
        sub_chunk_bytes = unit // self.shape.sub_chunks
        runs = [
            (chunk + first * sub_chunk_bytes, chunk + (first + count) * sub_chunk_bytes)
            for chunk in range(0, repair.shard_bytes, unit)
            for first, count in self.shape.repair_runs(shard)
        ]
        return shard_extents(helpers, runs), 1

    def helpers(
        self, lost: frozenset[int], unavailable: frozenset[int] = frozenset()
    ) -> list[int]:
        """Return the d shards that rebuild a lost one from parts, its column first; empty: a whole decode."""
        if len(lost) != 1:
            return []
        (shard,) = lost
        column = self.shape.column(shard)
        others = [
            s for s in range(self.width) if s not in {shard, *column, *unavailable}
        ]
        if unavailable & set(column) or len(column) + len(others) < self.d:
            return []
        return sorted([*column, *others][: self.d])

    def _check_geometry(self, geometry: StripeGeometry) -> None:
        super()._check_geometry(geometry)
        unit = geometry.stripe_unit_bytes
        sub_chunks = self.shape.sub_chunks
        wanted = f"a multiple of {sub_chunks} sub-chunks"
        require(
            unit % sub_chunks == 0,
            f"{self.name}: geometry: stripe_unit_bytes",
            unit,
            wanted,
        )
