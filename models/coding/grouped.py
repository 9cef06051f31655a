"""Base of codes with repair groups: exact decodability, and repairs from groups smaller than k."""

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
from stripesim.models.coding.protocol import Repair, ShardExtent, shard_extents
from stripesim.models.coding.reed_solomon import ReedSolomon

Group = frozenset[int]

#: Above this number of patterns of one size `failures_tolerated` is a proven lower bound.
PATTERNS_MAX = 300_000


@dataclass(frozen=True)
class GroupedCode(ReedSolomon):
    """A systematic linear code with groups of shards of which any one follows from the others.

    Stripes are written and read as those of `ReedSolomon`; only the choice of sources differs.

    A shard mended in one group may help to mend another in a second group. Where some shard
    cannot be mended so, or it would take more than k sources, k independent shards are read and
    the stripe is decoded, the unavailable shards being erasures as well.
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
        """Number of shards whose loss is always bearable, known without search."""
        return 0

    @cached_property
    def parity_check(self) -> Bytes:
        """A parity-check matrix, shape (m, k + m): its product with the shards is zero."""
        return np.concatenate(
            [self.generator[self.k :], np.eye(self.m, dtype=np.uint8)], axis=1
        )

    @cached_property
    def failures_tolerated(self) -> int:
        """Number of shards whose loss is always bearable: all patterns are tried, up to 300,000 of a size."""
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
        """Count the sets of `size` missing shards, of binomial(k + m, size), that leave the data readable."""
        require(
            0 <= size <= self.width, f"{self.name}: size", size, f"0 to {self.width}"
        )
        if size <= self.m:
            return self._count(size)
        return 0

    def _decodes(self, missing: frozenset[int]) -> bool:
        """Return True if the data survives; `can_decode` caches the answer."""
        return bool(columns_independent(self.parity_check[None, :, sorted(missing)])[0])

    def _count(self, size: int) -> int:
        return sum(
            int(batch.sum()) for batch in patterns_independent(self.parity_check, size)
        )

    def _repair_reads(self, repair: Repair) -> tuple[tuple[ShardExtent, ...], int]:
        """Mend shard by shard inside groups where that does, else decode."""
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
        """Return the shards from which the lost ones can be mended group by group; None if they cannot."""
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
        """Return the k shards to read: data first, then parities that add to it, in the scheme's order."""
        if not self.can_decode(missing):
            raise self._data_loss(missing, f"shards of rank {self.k}")
        present = [
            shard
            for shard in (*range(self.k), *self.parity_order)
            if shard not in missing
        ]
        return sorted(independent_rows(self.generator, present, self.k))


@lru_cache(maxsize=1 << 16)
def _can_decode(code: GroupedCode, missing: frozenset[int]) -> bool:
    return code._decodes(missing)
