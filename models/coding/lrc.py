"""Locally repairable codes: the Xorbas form, and Ceph's lrc plugin in its simple form."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np

from stripesim.models.coding.errors import require
from stripesim.models.coding.galois import (
    Bytes,
    cauchy_matrix,
    invert,
    matrix_product,
    vandermonde_matrix,
)
from stripesim.models.coding.grouped import Group, GroupedCode
from stripesim.models.coding.protocol import SHARDS_MAX


@dataclass(frozen=True)
class LocalCode(GroupedCode):
    """Data, Reed-Solomon parities, then the local parities, each the XOR of one local group."""

    locality: int
    not_optimised_because: ClassVar[str] = "Ceph's lrc plug-in does not support it"

    @property
    @abstractmethod
    def local_parities(self) -> int:
        """Number of local groups, each with its own parity."""

    @property
    @abstractmethod
    def coefficients(self) -> Bytes:
        """Rows of the Reed-Solomon parities, uint8 of shape (parities, k)."""

    @property
    def global_parities(self) -> int:
        """Number of Reed-Solomon parities."""
        return self.m - self.local_parities

    @property
    def first_local(self) -> int:
        """Index of the first local parity."""
        return self.width - self.local_parities

    @property
    def surely_tolerated(self) -> int:
        """Number of arbitrary losses that the Reed-Solomon part alone tolerates."""
        return self.global_parities

    @cached_property
    def generator(self) -> Bytes:
        """Generator matrix, uint8 of shape (k + m, k): the identity above the parity rows."""
        above = np.concatenate([np.eye(self.k, dtype=np.uint8), self.coefficients])
        groups = self.groups[: self.local_parities]
        local = [np.bitwise_xor.reduce(above[sorted(group)[:-1]]) for group in groups]
        return np.concatenate([above, np.stack(local)])


@dataclass(frozen=True)
class LRC(LocalCode):
    r"""A locally repairable code of the Xorbas form, written ``lrc:k,m,l``.

    m counts all parities: one local parity per group of data shards, the rest Reed-Solomon. The locality l, 1
    to k - 1, is the largest number of data shards in a local group. The ceil(k / locality) groups are as
    equal as possible, with the larger ones first.

    Notes
    -----
    Shards are numbered as follows: k data shards, g = m - ceil(k / locality) Reed-Solomon parities, then the
    local parities. In GF(2^8), with x_j the shards of the Reed-Solomon part,

    .. math::
        \sum_{j < k + g} \alpha^{ij} x_j = 0 \quad (0 \le i < g), \qquad
        s_a = \sum_{j \in G_a} x_j \tag{1}

    Row i = 0 of (1) states that these shards sum to zero, so the sum of the local parities equals the sum of
    the Reed-Solomon parities. This *implied* parity is not stored. A lost Reed-Solomon parity is repaired
    from the g - 1 others and the local parities.

    Not every pattern of m erasures is decodable. The rank of the generator matrix alone decides, see
    `can_decode`. Any g erasures are decodable. For ``lrc:10,6,5`` these are 4, as the distance of the code is
    5.

    With g = 1, the only Reed-Solomon parity is the implied one itself, so it is stored twice.

    In the (n, k, r) notation of Sathiamoorthy et al. and others, ``lrc:10,6,5`` is (16, 10, 5). They also
    write (10, 6, 5).

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

    def __post_init__(self) -> None:
        require(self.k >= 2, f"{self.name}: k", self.k, "at least 2")
        wanted = f"1 to k - 1 = {self.k - 1}"
        require(
            1 <= self.locality < self.k, f"{self.name}: locality", self.locality, wanted
        )
        local = self.local_parities
        wanted = (
            f"at least {local + 1}: {local} local parities and one Reed-Solomon parity"
        )
        require(self.global_parities >= 1, f"{self.name}: m", self.m, wanted)
        # The powers of the generator repeat after 255 exponents.
        require(
            self.width < SHARDS_MAX,
            f"{self.name}: k + m",
            self.width,
            f"at most {SHARDS_MAX - 1}",
        )

    @property
    def name(self) -> str:
        """Name in the form ``lrc:k,m,l``."""
        return f"lrc:{self.k},{self.m},{self.locality}"

    @property
    def local_parities(self) -> int:
        """Number of local groups, each with its own parity."""
        return -(-self.k // self.locality)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Sets of shards in which any one is the XOR of the others."""
        ends = [
            -(-self.k * index // self.local_parities)
            for index in range(self.local_parities + 1)
        ]
        local = [
            frozenset({*range(ends[index], ends[index + 1]), self.first_local + index})
            for index in range(self.local_parities)
        ]
        implied = frozenset(range(self.k, self.width))
        return (*local, implied)

    @property
    def coefficients(self) -> Bytes:
        """Rows of equation (1), which form a Vandermonde matrix, solved for the parities."""
        check = vandermonde_matrix(self.first_local, self.global_parities)[
            self.first_local :
        ]
        return matrix_product(invert(check[:, self.k :]), check[:, : self.k])

    @property
    def parity_order(self) -> Sequence[int]:
        """Parities, ordered by preference for decoding: local ones first."""
        return (*range(self.first_local, self.width), *range(self.k, self.first_local))

    @cached_property
    def failures_tolerated(self) -> int:
        """Number of arbitrary shard losses tolerated. Some larger sets are decodable too, see `can_decode`.

        Notes
        -----
        At least g, which the Reed-Solomon part alone tolerates, and at most g + 1, the bound of Gopalan et
        al. (IEEE Trans. Inf. Theory 58 (11), 2012). A group of more than g data shards settles the question:
        if g + 1 of its data shards are lost, its local parity adds nothing to the Reed-Solomon parities and
        the other local parities. Otherwise all patterns are tried, as in `GroupedCode`.
        """
        largest = max(len(group) - 1 for group in self.groups[: self.local_parities])
        if largest > self.global_parities:
            return self.global_parities
        return super().failures_tolerated


@dataclass(frozen=True)
class CephLRC(LocalCode):
    """The layered code of Ceph's lrc plugin in its simple form, written ``lrc-ceph:k,m,l``.

    The m of this class counts all parities: Ceph's m Reed-Solomon parities and one local parity per group.
    The locality is Ceph's l, the number of data shards and Reed-Solomon parities in a local group. `ceph_lrc`
    builds the code from Ceph's own three numbers.

    Notes
    -----
    Each local parity is the XOR of l shards, k / groups of them data. Reed-Solomon parities also have local
    parities, and no parity is implied.

    Decoding proceeds by layers, as in the plugin. It first repairs groups that have lost one shard, then the
    Reed-Solomon layer if that has lost no more shards than it has parities. Such a decoder fails for some
    patterns of full rank, and `can_decode` follows the decoder.

    Deviation: Ceph interleaves data and parity shards, whereas data come first here. The groups are the same
    up to this renumbering, which `ceph_order` states.

    References
    ----------
    Ceph 16.2, ``src/erasure-code/lrc/ErasureCodeLrc.cc``, ``parse_kml`` and ``_minimum_to_decode``.

    Examples
    --------
    >>> code = ceph_lrc(4, 2, 3)
    >>> code.name, code.width, [sorted(group) for group in code.groups]
    ('lrc-ceph:4,2,3', 8, [[0, 1, 4, 6], [2, 3, 5, 7]])
    """

    @property
    def name(self) -> str:
        """Name in the form ``lrc-ceph:k,m,l``, where m counts Reed-Solomon parities as in Ceph."""
        return f"lrc-ceph:{self.k},{self.global_parities},{self.locality}"

    @property
    def local_parities(self) -> int:
        """Number of local groups, each with its own parity."""
        return self.width // (self.locality + 1)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Sets of shards in which any one is the XOR of the others."""
        count = self.local_parities
        data = self.k // count
        coded = self.global_parities // count
        return tuple(
            frozenset(range(index * data, (index + 1) * data))
            | frozenset(range(self.k + index * coded, self.k + (index + 1) * coded))
            | {self.first_local + index}
            for index in range(count)
        )

    @property
    def ceph_order(self) -> Sequence[int]:
        """Shard at each place of a placement group in Ceph, group by group: data, parities, local parity.

        Examples
        --------
        >>> ceph_lrc(4, 2, 3).ceph_order
        (0, 1, 4, 6, 2, 3, 5, 7)
        """
        return tuple(shard for group in self.groups for shard in sorted(group))

    @property
    def coefficients(self) -> Bytes:
        """Parity rows of a Cauchy matrix."""
        return cauchy_matrix(self.k, self.global_parities)[self.k :]

    def _decodes(self, missing: frozenset[int]) -> bool:
        left = set(missing)
        for group in self.groups:
            if len(left & group) == 1:
                left -= group
        return sum(shard < self.first_local for shard in left) <= self.global_parities

    def _count(self, size: int) -> int:
        return sum(
            self._decodes(frozenset(pattern))
            for pattern in combinations(range(self.width), size)
        )


def ceph_lrc(k: int, m: int, locality: int) -> CephLRC:
    """Build Ceph's lrc code from its own parameters.

    Parameters
    ----------
    k
        Data shards.
    m
        Reed-Solomon parities.
    locality
        Shards of a local group without its parity (Ceph's l), at least 2 and a divisor of k + m. The number
        of groups must divide both k and m.

    Raises
    ------
    SchemeError
        If these conditions do not hold, or the code has more than 256 shards.
    """
    name = f"lrc-ceph:{k},{m},{locality}"
    for key, value, least in (("k", k, 1), ("m", m, 1), ("l", locality, 2)):
        require(value >= least, f"{name}: {key}", value, f"at least {least}")
    require(
        (k + m) % locality == 0, f"{name}: l", locality, f"a divisor of k + m = {k + m}"
    )
    groups = (k + m) // locality
    for key, value in (("k", k), ("m", m)):
        require(
            value % groups == 0,
            f"{name}: {key}",
            value,
            f"a multiple of (k + m) / l = {groups}",
        )
    require(
        k + m + groups <= SHARDS_MAX,
        f"{name}: shards",
        k + m + groups,
        f"at most {SHARDS_MAX}",
    )
    return CephLRC(k=k, m=m + groups, locality=locality)
