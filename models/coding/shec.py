"""SHEC codes: each parity covers a shingle of the data, so that one lost shard needs few others."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from stripesim.models.coding.errors import require
from stripesim.models.coding.galois import Bytes, cauchy_matrix
from stripesim.models.coding.grouped import Group, GroupedCode

#: Limits of Ceph's plugin.
K_MAX = 12
WIDTH_MAX = 20


@dataclass(frozen=True)
class Shec(GroupedCode):
    """A shingled erasure code, written ``shec:k,m,c``.

    It has at most 12 data shards and 20 shards in total. The parities cover each data shard c times, 1 to m.

    Notes
    -----
    m1 of the m parities form a layer that covers each data shard c1 times, the others a layer that covers it
    c - c1 times. The split is the one with the fewest mean reads for one lost shard, as in the plugin's
    ``multiple`` technique. Parity r of a layer of n covers the data shards from floor(r k / n) to
    floor((r + c) k / n), wrapping around at the end.

    Not every loss of m shards is tolerated, but commonly any loss of c is. `can_decode` computes the rank of
    this matrix. A lost shard is rebuilt from the smallest shingle that contains it.

    Deviation: coefficients are from a Cauchy matrix, whereas Ceph uses jerasure's Vandermonde matrix. Where
    coefficients decide, other patterns are decodable. If several shards are lost and shingles cannot repair
    them one by one, k shards are read, whereas Ceph searches for fewer.

    References
    ----------
    Miyamae et al., "Erasure Code with Shingled Local Parity Groups for Efficient Recovery from Multiple Disk
    Failures", HotDep 2014; Ceph, ``src/erasure-code/shec/ErasureCodeShec.cc``,
    ``shec_reedsolomon_coding_matrix`` and ``shec_calc_recovery_efficiency1``.

    Examples
    --------
    >>> [sorted(group) for group in Shec(4, 3, 2).groups]
    [[0, 1, 2, 3, 4], [0, 1, 5], [2, 3, 6]]
    """

    c: int

    not_optimised_because: ClassVar[str] = (
        "the shec plug-in lacks FLAG_EC_PLUGIN_OPTIMIZED_SUPPORTED"
    )

    def __post_init__(self) -> None:
        require(1 <= self.k <= K_MAX, f"{self.name}: k", self.k, f"1 to {K_MAX}")
        m_max = min(self.k, WIDTH_MAX - self.k)
        require(1 <= self.m <= m_max, f"{self.name}: m", self.m, f"1 to {m_max}")
        require(1 <= self.c <= self.m, f"{self.name}: c", self.c, f"1 to m = {self.m}")

    @property
    def name(self) -> str:
        """Name in the form ``shec:k,m,c``."""
        return f"shec:{self.k},{self.m},{self.c}"

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Each parity with the data shards that it covers."""
        shingles = min(
            (self._shingles(*split) for split in self._splits()), key=self._reads
        )
        return tuple(
            frozenset({*shingle, self.k + index})
            for index, shingle in enumerate(shingles)
        )

    @cached_property
    def generator(self) -> Bytes:
        """Generator matrix, uint8 of shape (k + m, k): the identity above the parity rows."""
        matrix = cauchy_matrix(self.k, self.m)
        for index, group in enumerate(self.groups):
            outside = np.array([shard not in group for shard in range(self.k)])
            matrix[self.k + index, outside] = 0
        return matrix

    def _splits(self) -> Iterator[tuple[int, int]]:
        """Yield the splits (m1, c1) of m parities and c coverings over two layers, one possibly empty."""
        for c1 in range(self.c // 2 + 1):
            for m1 in range(self.m + 1):
                m2 = self.m - m1
                c2 = self.c - c1
                if (
                    c1 <= m1
                    and c2 <= m2
                    and (m1 == 0) == (c1 == 0)
                    and (m2 == 0) == (c2 == 0)
                ):
                    yield m1, c1

    def _shingles(self, m1: int, c1: int) -> list[list[int]]:
        return [
            [
                shard % self.k
                for shard in range(row * self.k // rows, (row + cover) * self.k // rows)
            ]
            for rows, cover in ((m1, c1), (self.m - m1, self.c - c1))
            for row in range(rows)
        ]

    def _reads(self, shingles: list[list[int]]) -> int:
        """Sum the reads that rebuild data shards from their smallest shingle and parities from their own."""
        smallest = [
            min(len(s) for s in shingles if shard in s) for shard in range(self.k)
        ]
        return sum(smallest) + sum(len(shingle) for shingle in shingles)
