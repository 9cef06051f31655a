"""Base class of codes with repair groups: exact decodability, and repair from fewer than k shards."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb

import numpy as np

from stripesim.models.coding.errors import require
from stripesim.models.coding.galois import (
    Bytes,
    columns_independent,
    independent_rows,
    patterns_independent,
)
from stripesim.models.coding.protocol import ObjectRepair, ShardExtent, shard_extents
from stripesim.models.coding.reed_solomon import ReedSolomon

Group = frozenset[int]

#: Beyond this number of patterns of one size, `failures_tolerated` is a proven lower bound.
PATTERNS_MAX = 300_000


@dataclass(frozen=True)
class GroupedCode(ReedSolomon):
    """A systematic linear code with groups in which any one shard follows from the others.

    Stripes are written and read as in `ReedSolomon`. Only the choice of repair sources differs.

    A shard repaired in one group may help to repair another in a second group. If some shard cannot be
    repaired this way, or repair would need more than k sources, k independent shards are read and the stripe
    is decoded. The unavailable shards are then erasures as well.
    """

    @property
    @abstractmethod
    def groups(self) -> tuple[Group, ...]:
        """Sets of shards in which any one is a linear combination of the others."""

    @property
    @abstractmethod
    def generator(self) -> Bytes:
        """Generator matrix, uint8 of shape (k + m, k): the identity above the parity rows."""

    @property
    def parity_order(self) -> Sequence[int]:
        """Parities, ordered by preference for decoding."""
        return range(self.k, self.width)

    @property
    def surely_tolerated(self) -> int:
        """Number of arbitrary shard losses known to be tolerated without a search."""
        return 0

    @cached_property
    def parity_check(self) -> Bytes:
        """Parity-check matrix, uint8 of shape (m, k + m). Its product with the shards is zero."""
        return np.concatenate(
            [self.generator[self.k :], np.eye(self.m, dtype=np.uint8)], axis=1
        )

    @cached_property
    def failures_tolerated(self) -> int:
        """Number of arbitrary shard losses tolerated, by trying all patterns (up to 300,000 per size)."""
        size = self.surely_tolerated + 1
        while (
            patterns := comb(self.width, size)
        ) <= PATTERNS_MAX and self.decodable_patterns(size) == patterns:
            size += 1
        return size - 1

    def can_decode(self, missing: frozenset[int]) -> bool:
        """Return True if the remaining shards have rank k."""
        self._check_shards(missing)
        return _can_decode(self, frozenset(missing))

    def decodable_patterns(self, size: int) -> int:
        """Count the sets of `size` missing shards that leave the data readable.

        Parameters
        ----------
        size
            Number of missing shards, 0 to k + m.

        Returns
        -------
        int
            Number of decodable sets out of binomial(k + m, size).

        Raises
        ------
        SchemeError
            If `size` is out of range.
        """
        require(
            0 <= size <= self.width, f"{self.name}: size", size, f"0 to {self.width}"
        )
        if size <= self.m:
            return self._count(size)
        return 0

    def _decodes(self, missing: frozenset[int]) -> bool:
        """Return True if the data survives. `can_decode` caches the result."""
        return bool(columns_independent(self.parity_check[None, :, sorted(missing)])[0])

    def _count(self, size: int) -> int:
        return sum(
            int(batch.sum()) for batch in patterns_independent(self.parity_check, size)
        )

    def _repair_reads(
        self, repair: ObjectRepair
    ) -> tuple[tuple[ShardExtent, ...], int]:
        """Repair shard by shard within groups if that is cheaper, else decode."""
        sources = repair.sources
        erasures = len(repair.lost | repair.unavailable)
        local = self._local_sources(repair.lost, repair.unavailable)
        if local is not None and len(local) <= len(sources):
            sources = local
            erasures = len(repair.lost)
        return shard_extents(sources, ((0, repair.shard_bytes),)), erasures

    def _local_sources(
        self, lost: frozenset[int], unavailable: frozenset[int]
    ) -> list[int] | None:
        """Return the shards that repair the lost ones group by group, or None if that is impossible."""
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
        """Return the k shards to read: data first, then useful parities in order of preference."""
        present = [
            shard
            for shard in (*range(self.k), *self.parity_order)
            if shard not in missing
        ]
        return sorted(independent_rows(self.generator, present, self.k))


@lru_cache(maxsize=1 << 16)
def _can_decode(code: GroupedCode, missing: frozenset[int]) -> bool:
    return code._decodes(missing)
