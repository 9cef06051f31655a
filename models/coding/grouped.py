"""What codes with repair groups share: exact decodability, and repairs from groups smaller than k."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb

import numpy as np

from stripesim.models.coding.errors import SchemeError
from stripesim.models.coding.galois import Bytes
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.linear import columns_independent, independent_rows, patterns_independent
from stripesim.models.coding.protocol import (
    RepairPlan,
    ShardExtent,
    check_extent,
    check_shards,
    data_loss,
)
from stripesim.models.coding.reed_solomon import ReedSolomon

Group = frozenset[int]

#: Above so many patterns of one size `failures_tolerated` is given by its proven lower bound.
PATTERNS_MAX = 300_000


@dataclass(frozen=True)
class GroupedCode(ReedSolomon):
    """A systematic linear code with groups of shards of which any one follows from the others.

    Parameters
    ----------
    k, m : int
        Data and parity shards.

    Notes
    -----
    Stripes are written and read as those of `ReedSolomon`; only the choice of sources differs.
    """

    @property
    @abstractmethod
    def groups(self) -> tuple[Group, ...]:
        """Sets of shards of which any one is a linear combination of the others."""

    @property
    @abstractmethod
    def generator(self) -> Bytes:
        """The generator matrix, shape (k + m, k): the identity above the parity rows."""

    @property
    def parity_order(self) -> Sequence[int]:
        """Parities in the order in which a decode prefers them."""
        return range(self.k, self.width)

    @property
    def surely_tolerated(self) -> int:
        """Any so many shards may be lost, as is known without trying."""
        return 0

    @cached_property
    def parity_check(self) -> Bytes:
        """A parity-check matrix, shape (m, k + m): its product with the shards is zero."""
        return np.concatenate([self.generator[self.k :], np.eye(self.m, dtype=np.uint8)], axis=1)

    @cached_property
    def failures_tolerated(self) -> int:
        """Any so many shards may be lost; some larger sets may be too, see `can_decode`.

        Notes
        -----
        From `surely_tolerated` on all patterns of a size are tried, as long as there are at most
        300,000; beyond, the last size that is known to be safe is given.
        """
        size = self.surely_tolerated + 1
        while comb(self.width, size) <= PATTERNS_MAX and self.decodable_patterns(size) == comb(
            self.width, size
        ):
            size += 1
        return size - 1

    def can_decode(self, missing: frozenset[int]) -> bool:
        """Whether the shards that are left have rank k."""
        check_shards(self.name, self.width, missing)
        return _rank_suffices(self, frozenset(missing))

    def _decodes(self, missing: frozenset[int]) -> bool:
        """Whether the data survives; `can_decode` remembers the answer."""
        return bool(columns_independent(self.parity_check[None, :, sorted(missing)])[0])

    def decodable_patterns(self, size: int) -> int:
        """How many sets of so many missing shards leave the data readable.

        Parameters
        ----------
        size : int
            Shards missing, 0 to k + m.

        Returns
        -------
        int
            Of the binomial(k + m, size) sets.

        Raises
        ------
        SchemeError
            If the size is out of range.
        """
        if not 0 <= size <= self.width:
            raise SchemeError(f"{self.name}: size: got {size}, wanted 0 to {self.width}")
        if size > self.m:
            return 0
        return self._count(size)

    def _count(self, size: int) -> int:
        return sum(int(batch.sum()) for batch in patterns_independent(self.parity_check, size))

    def plan_repair(
        self,
        *,
        lost: frozenset[int],
        object_size_bytes: int,
        geometry: StripeGeometry,
        unavailable: frozenset[int] = frozenset(),
    ) -> RepairPlan:
        """Mend shard by shard inside groups where that does, else decode; see the protocol.

        Raises
        ------
        SchemeError
            For a negative size, an unknown shard or a geometry of another k.
        DataLossError
            If the shards left do not determine the data.

        Notes
        -----
        A shard mended in one group may help to mend another in a second group. Where some shard
        cannot be mended so, or it would take more than k sources, k independent shards are read and
        the stripe is decoded, the unavailable shards being erasures as well.
        """
        check_extent(offset_bytes=0, length_bytes=1, object_size_bytes=object_size_bytes)
        self._check_geometry(geometry)
        decoding = self._sources(lost | unavailable)
        stripes = geometry.stripe_count(object_size_bytes)
        if not lost or stripes == 0:
            return RepairPlan(reads=(), writes=(), decode_stripes=0, decode_data_bytes=0, erasures=0)
        sources, erasures = self._local_sources(lost, unavailable), len(lost)
        if sources is None or len(sources) > len(decoding):
            sources, erasures = decoding, len(lost | unavailable)
        shard_bytes = stripes * geometry.stripe_unit_bytes
        return RepairPlan(
            reads=tuple(ShardExtent(shard, 0, shard_bytes) for shard in sources),
            writes=tuple(ShardExtent(shard, 0, shard_bytes) for shard in sorted(lost)),
            decode_stripes=stripes,
            decode_data_bytes=shard_bytes * len(sources),
            erasures=erasures,
        )

    def _local_sources(self, lost: frozenset[int], unavailable: frozenset[int]) -> list[int] | None:
        """Shards from which the lost ones can be mended group by group; None if they cannot."""
        sources: set[int] = set()
        waiting = set(lost)
        while waiting:
            candidates = [
                (len(group - lost - sources), shard, group)
                for shard in sorted(waiting)
                for group in self.groups
                if group & (waiting | unavailable) == {shard}
            ]
            if not candidates:
                return None
            _, shard, group = min(candidates, key=lambda candidate: candidate[:2])
            sources |= group - lost
            waiting.remove(shard)
        return sorted(sources)

    def _sources(self, missing: frozenset[int]) -> list[int]:
        """The k shards to read: data first, then parities that add to it, in the scheme's order."""
        if not self.can_decode(missing):
            raise data_loss(self.name, missing, f"shards of rank {self.k}")
        present = [shard for shard in (*range(self.k), *self.parity_order) if shard not in missing]
        return sorted(independent_rows(self.generator, present, self.k))


@lru_cache(maxsize=1 << 16)
def _rank_suffices(code: GroupedCode, missing: frozenset[int]) -> bool:
    return code._decodes(missing)
