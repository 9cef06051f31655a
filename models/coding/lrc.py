"""Locally repairable codes: local parities mend one lost shard from few, Reed-Solomon parities the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import ClassVar

from stripesim.models.coding.errors import require
from stripesim.models.coding.galois import (
    Bytes,
    invert,
    matrix_product,
    patterns_independent,
    vandermonde_matrix,
)
from stripesim.models.coding.grouped import PATTERNS_MAX, Group, GroupedCode, append_locals
from stripesim.models.coding.protocol import SHARDS_MAX


@dataclass(frozen=True)
class LRC(GroupedCode):
    r"""A locally repairable code of the Xorbas form, written ``lrc:k,m,l``.

    Parameters
    ----------
    k : int
        Data shards, at least 2.
    m : int
        Parity shards in all: one local parity for each group of data shards, the rest Reed-Solomon.
    locality : int
        Most data shards in a local group, 1 to k - 1; there are ceil(k / locality) groups, as equal as
        they can be, the larger ones first.

    Notes
    -----
    Shards are numbered: k data, then g = m - ceil(k / locality) Reed-Solomon parities, then the local
    parities. In GF(2^8), with x_j the shards of the Reed-Solomon part,

    .. math::
        \sum_{j < k + g} \alpha^{ij} x_j = 0 \quad (0 \le i < g), \qquad
        s_a = \sum_{j \in G_a} x_j \tag{1}

    Row i = 0 of (1) says that all of them add up to zero, so the sum of the local parities equals the
    sum of the Reed-Solomon parities: an *implied* parity, stored nowhere. A lost Reed-Solomon parity is
    mended from the g - 1 others and the local parities.

    Not every pattern of m erasures can be decoded. Whether one can is the rank of the generator
    matrix, and nothing else: `can_decode`. Any g erasures can. For ``lrc:10,6,5`` these are 4, the
    code's distance being 5.

    With g = 1 the one Reed-Solomon parity is the implied one, and stored twice over.

    In the (n, k, r) notation of Sathiamoorthy et al. and others ``lrc:10,6,5`` is (16, 10, 5); they
    also write (10, 6, 5).

    References
    ----------
    M. Sathiamoorthy et al., "XORing Elephants: Novel Erasure Codes for Big Data", VLDB 2013, sections
    2 and 3 (Figure 2, Theorem 5).

    Examples
    --------
    >>> code = LRC(k=10, m=6, locality=5)
    >>> code.failures_tolerated, code.decodable_patterns(5), code.decodable_patterns(6)
    (4, 4364, 7358)
    >>> plan = code.plan_repair(lost=frozenset({0}), object_size_bytes=40960, geometry=code.geometry(4096))
    >>> [extent.shard for extent in plan.reads]
    [1, 2, 3, 4, 14]
    """

    locality: int

    not_optimised_because: ClassVar[str] = "Ceph's lrc plug-in does not support it"

    def __post_init__(self) -> None:
        require(self.k >= 2, f"{self.name}: k", self.k, "at least 2")
        wanted = f"1 to k - 1 = {self.k - 1}"
        require(1 <= self.locality < self.k, f"{self.name}: locality", self.locality, wanted)
        local = self.local_parities
        wanted = f"at least {local + 1}: {local} local parities and one Reed-Solomon parity"
        require(self.global_parities >= 1, f"{self.name}: m", self.m, wanted)
        # The last power of the field's generator is the first one again.
        require(self.width < SHARDS_MAX, f"{self.name}: k + m", self.width, f"at most {SHARDS_MAX - 1}")

    @property
    def name(self) -> str:
        """``lrc:k,m,l``."""
        return f"lrc:{self.k},{self.m},{self.locality}"

    @property
    def local_parities(self) -> int:
        """Local groups, each with one parity of its own."""
        return -(-self.k // self.locality)

    @property
    def global_parities(self) -> int:
        """Reed-Solomon parities."""
        return self.m - self.local_parities

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Sets of shards of which any one is the exclusive-or of the others."""
        first_local = self.k + self.global_parities
        groups = []
        for index in range(self.local_parities):
            start, stop = (-(-self.k * i // self.local_parities) for i in (index, index + 1))
            groups.append(frozenset({*range(start, stop), first_local + index}))
        implied = frozenset(range(self.k, self.width))
        return (*groups, implied)

    @cached_property
    def generator(self) -> Bytes:
        """The generator matrix, shape (k + m, k): the identity above the parity rows."""
        # The rows of equation (1) are those of a Vandermonde matrix.
        check = vandermonde_matrix(self.k + self.global_parities, self.global_parities)
        check = check[self.k + self.global_parities :]
        parity = matrix_product(invert(check[:, self.k :]), check[:, : self.k])
        return append_locals(parity, self.groups[: self.local_parities])

    @property
    def parity_order(self) -> Sequence[int]:
        """Local parities before the others."""
        first_local = self.k + self.global_parities
        return (*range(first_local, self.width), *range(self.k, first_local))

    @cached_property
    def failures_tolerated(self) -> int:
        """Any so many shards may be lost; some larger sets may be too, see `can_decode`.

        Notes
        -----
        At least g, for the Reed-Solomon part bears these alone, and at most g + 1, the bound of
        Gopalan et al. A group of more than g data shards settles it: of g + 1 lost data shards of one
        group the local parity tells nothing that the Reed-Solomon parities and the other local
        parities do not. Otherwise all patterns of g + 1 are tried; beyond 300,000 of them g is
        given, which may be one too few.

        References
        ----------
        P. Gopalan et al., "On the Locality of Codeword Symbols", IEEE Trans. Inf. Theory 58 (11), 2012.
        """
        safe = self.global_parities
        largest = max(len(group) - 1 for group in self.groups[: self.local_parities])
        if largest > safe or comb(self.width, safe + 1) > PATTERNS_MAX:
            return safe
        patterns = patterns_independent(self.parity_check, safe + 1)
        return safe + int(all(batch.all() for batch in patterns))
