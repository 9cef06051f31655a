"""Codes with local parities: the Xorbas form, and Ceph's lrc plugin in its simple form."""

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
    """Data, Reed-Solomon parities, then one parity for each local group, its exclusive-or."""

    locality: int
    not_optimised_because: ClassVar[str] = "Ceph's lrc plug-in does not support it"

    @property
    @abstractmethod
    def local_parities(self) -> int:
        """Local groups, each with its own parity."""

    @property
    @abstractmethod
    def coefficients(self) -> Bytes:
        """The Reed-Solomon rows, shape (parities, k)."""

    @property
    def global_parities(self) -> int:
        """Reed-Solomon parities."""
        return self.m - self.local_parities

    @property
    def first_local(self) -> int:
        """The first local parity."""
        return self.width - self.local_parities

    @property
    def surely_tolerated(self) -> int:
        """The Reed-Solomon part alone bears its number of parities."""
        return self.global_parities

    @cached_property
    def generator(self) -> Bytes:
        """The generator matrix, shape (k + m, k): the identity above the parity rows."""
        above = np.concatenate([np.eye(self.k, dtype=np.uint8), self.coefficients])
        groups = self.groups[: self.local_parities]
        local = [np.bitwise_xor.reduce(above[sorted(group)[:-1]]) for group in groups]
        return np.concatenate([above, np.stack(local)])


@dataclass(frozen=True)
class LRC(LocalCode):
    r"""A locally repairable code of the Xorbas form, written ``lrc:k,m,l``.

    m counts all parities: one local parity for each group of data shards, the rest Reed-Solomon. Locality is
    most data shards of a local group, 1 to k - 1; there are ceil(k / locality) groups, as equal as they can
    be, the larger ones first.

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
        # The last power of the field's generator is the first one again.
        require(
            self.width < SHARDS_MAX,
            f"{self.name}: k + m",
            self.width,
            f"at most {SHARDS_MAX - 1}",
        )

    @property
    def name(self) -> str:
        """``lrc:k,m,l``."""
        return f"lrc:{self.k},{self.m},{self.locality}"

    @property
    def local_parities(self) -> int:
        """Local groups, each with its own parity."""
        return -(-self.k // self.locality)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Sets of shards of which any one is the exclusive-or of the others."""
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
        """The rows of equation (1), which are those of a Vandermonde matrix, solved for the parities."""
        check = vandermonde_matrix(self.first_local, self.global_parities)[
            self.first_local :
        ]
        return matrix_product(invert(check[:, self.k :]), check[:, : self.k])

    @property
    def parity_order(self) -> Sequence[int]:
        """Local parities before the others."""
        return (*range(self.first_local, self.width), *range(self.k, self.first_local))

    @cached_property
    def failures_tolerated(self) -> int:
        """Number of shards whose loss is always bearable; some larger sets are too, see `can_decode`.

        At least g, for the Reed-Solomon part bears these alone, and at most g + 1, the bound of Gopalan et
        al. (IEEE Trans. Inf. Theory 58 (11), 2012). A group of more than g data shards settles it: of g + 1
        lost data shards of one group the local parity tells nothing that the Reed-Solomon parities and the
        other local parities do not. Otherwise all patterns are tried as in `GroupedCode`.
        """
        largest = max(len(group) - 1 for group in self.groups[: self.local_parities])
        if largest > self.global_parities:
            return self.global_parities
        return super().failures_tolerated


@dataclass(frozen=True)
class CephLRC(LocalCode):
    """The layered code of Ceph's lrc plugin in its simple form, written ``lrc-ceph:k,m,l``.

    Its m counts all parities: Ceph's m Reed-Solomon parities and one local parity per group. Locality is
    Ceph's l: shards of a local group, data and Reed-Solomon parities together.

    Use `ceph_lrc` to make one from Ceph's own three numbers. Each local parity is the exclusive-or of
    l shards, k / groups of them data; Reed-Solomon parities have local parities too, none is implied.

    Decoding goes by layers, as in the plugin: groups with one shard lost are mended first, then the
    Reed-Solomon layer if it has lost at most its number of parities. Some patterns that have full
    rank are lost to such a decoder: `can_decode` follows the decoder.

    Deviation: Ceph mixes data and parity in the order of shards; here data come first. Which shard
    belongs to which group is the same up to that renumbering.

    See Ceph 16.2, ``src/erasure-code/lrc/ErasureCodeLrc.cc``, ``parse_kml`` and ``_minimum_to_decode``.

    >>> code = ceph_lrc(4, 2, 3)
    >>> code.name, code.width, [sorted(group) for group in code.groups]
    ('lrc-ceph:4,2,3', 8, [[0, 1, 4, 6], [2, 3, 5, 7]])
    """

    @property
    def name(self) -> str:
        """``lrc-ceph:k,m,l`` with Ceph's m, the Reed-Solomon parities."""
        return f"lrc-ceph:{self.k},{self.global_parities},{self.locality}"

    @property
    def local_parities(self) -> int:
        """Local groups, each with its own parity."""
        return self.width // (self.locality + 1)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Sets of shards of which any one is the exclusive-or of the others."""
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
    def coefficients(self) -> Bytes:
        """Rows of a Cauchy matrix."""
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
    """Build Ceph's lrc from its k, m (Reed-Solomon parities) and l, a group's shards without its parity.

    `locality` is at least 2 and divides k + m, and the number of groups that gives divides k and m.
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
