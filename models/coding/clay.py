"""Clay codes: the storage and tolerance of Reed-Solomon, with cheaper repair of a single shard."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

from stripesim.models.coding.clay_coder import ClayShape
from stripesim.models.coding.errors import require
from stripesim.models.coding.geometry import StripeGeometry, padded_unit_bytes
from stripesim.models.coding.protocol import (
    SHARDS_MAX,
    ObjectRepair,
    ShardExtent,
    shard_extents,
)
from stripesim.models.coding.reed_solomon import ReedSolomon

#: Largest number of sub-chunks per chunk. Beyond it, a chunk exceeds common object sizes.
SUB_CHUNKS_MAX: Final = 4096


@dataclass(frozen=True)
class Clay(ReedSolomon):
    r"""A coupled-layer code, written ``clay:k,m,d``.

    m is at least 2. d shards, k + 1 to k + m - 1, help to rebuild one lost shard.

    Notes
    -----
    A chunk consists of q^t sub-chunks with q = d - k + 1 and t = ceil((k + m) / q). Repair of one lost shard
    reads the same q^(t-1) sub-chunks from each of d helpers, that is,

    .. math:: \frac{d}{q} = \frac{d}{d - k + 1} \tag{1}

    bytes per byte lost. These sub-chunks form q^y runs of q^(t-1-y) sub-chunks, where y is the column of the
    lost shard: a few long runs for the first shards, many short ones for the last. All other shards of the
    column must help. If two shards are lost, a shard of the column is unavailable, or there are fewer than d
    helpers, repair reads and decodes k whole chunks, as with Reed-Solomon. The code tolerates the loss of any
    m shards.

    Client reads and writes work as in `ReedSolomon`: in whole stripes, including degraded ones.

    In the (n, k, d) notation of Vajha et al., ``clay:9,3,11`` is (12, 9, 11).

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
        """Name in the form ``clay:k,m,d``."""
        return f"clay:{self.k},{self.m},{self.d}"

    @cached_property
    def shape(self) -> ClayShape:
        """Grid of nodes and sub-chunks."""
        return ClayShape(self.k, self.m, self.d)

    def geometry(self, stripe_unit_bytes: int) -> StripeGeometry:
        """Return stripes of k chunks with the unit [B] padded to 32-byte sub-chunks (9,3,11: 4096 → 5184)."""
        # StripeGeometry rejects a unit of 0 or less, which stays so here.
        unit_bytes = padded_unit_bytes(stripe_unit_bytes, self.shape.sub_chunks)
        return StripeGeometry(k=self.k, stripe_unit_bytes=unit_bytes)

    def _repair_reads(
        self, repair: ObjectRepair
    ) -> tuple[tuple[ShardExtent, ...], int]:
        """Return the needed sub-chunks of d helpers, or k whole chunks. Runs of one shard never touch."""
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
        """Return the d shards that rebuild a lost shard from parts; none if it takes a full decode.

        Parameters
        ----------
        lost, unavailable
            Shards to rebuild, and further shards that cannot be read.

        Returns
        -------
        list of int
            Shards, ascending. They include every other shard in the column of the lost one.
        """
        if len(lost) != 1:
            return []
        (shard,) = lost
        column = self.shape.column(shard)
        outside = [
            s for s in range(self.width) if s not in {shard, *column, *unavailable}
        ]
        if unavailable & set(column) or len(column) + len(outside) < self.d:
            return []
        return sorted([*column, *outside][: self.d])

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
